package connstate

// Resign returns b with the MAC that its core needs, if b has room for a core.
func Resign(b []byte) []byte {
	b = append([]byte(nil), b...)
	if len(b) < headerLen {
		return b
	}
	n := headerLen + int(b[headerLen-3])<<16 + int(b[headerLen-2])<<8 + int(b[headerLen-1])
	if n < headerLen+secretsLen || n+macLen > len(b) {
		return b
	}
	copy(b[n:], mac(b[:n]))
	return b
}
