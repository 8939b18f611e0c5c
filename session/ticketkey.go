package session

// A TicketKey seals session tickets: AES in CBC mode under Cipher, authenticated by HMAC-SHA256 under MAC, which is what libssl's
// tickets are made of (RFC 5077, section 4). Name finds the key again; it is in each ticket in the clear.
type TicketKey struct {
	Name   [16]byte
	Cipher []byte // 16 bytes for AES-128, 32 for AES-256
	MAC    []byte // 16 or 32 bytes
}
