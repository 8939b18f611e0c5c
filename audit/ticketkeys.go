package audit

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"hash"
	"strings"

	"github.com/ossl-go/ossl/audit/internal/client"
)

// knownBytes fill the keys that are known to everyone. Servers that forgot to make keys have keys
// of zeros (CVE-2020-13777 for example); manuals and tests have the others. See "We Really Need to
// Talk About Session Tickets", USENIX Security 2023.
var knownBytes = []struct {
	name    string
	pattern string
}{
	{"all zero", "\x00"},
	{"all 0xff", "\xff"},
	{"all 0x01", "\x01"},
	{"all '0'", "0"},
	{"all 'a'", "a"},
	{"all 'A'", "A"},
	{"0, 1, 2, …", counting()},
	{"\"0123456789abcdef\"", "0123456789abcdef"},
	{"\"1234567890\"", "1234567890"},
	{"\"changeme\"", "changeme"},
	{"\"deadbeef\"", "\xde\xad\xbe\xef"},
}

func counting() string {
	b := make([]byte, 64)
	for i := range b {
		b[i] = byte(i)
	}
	return string(b)
}

func fill(pattern string, n int) []byte {
	return []byte(strings.Repeat(pattern, n/len(pattern)+1)[:n])
}

// A ticketFormat is one way in which servers seal tickets: parts of a ticket, a cipher and a MAC.
type ticketFormat struct {
	name            string
	iv              int // offset of the IV
	data            int // offset of the encrypted data
	key             int // bytes
	mac             func() hash.Hash
	macKey          int
	stream          bool // counter mode instead of CBC
	derivedBySHA512 bool // keys are those that crypto/tls makes of 32 bytes
}

var ticketFormats = []ticketFormat{
	{"AES-256-CBC as in OpenSSL, nginx and HAProxy", 16, 32, 32, sha256.New, 32, false, false},
	{"AES-128-CBC as in nginx, Apache and HAProxy", 16, 32, 16, sha256.New, 16, false, false},
	{"AES-256-CBC as in GnuTLS", 16, 34, 32, sha1.New, 16, false, false},
	{"AES-128-CTR as in crypto/tls", 0, 16, 16, sha256.New, 16, true, true},
	{"AES-128-CTR as in crypto/tls before Go 1.20", 16, 32, 16, sha256.New, 16, true, true},
}

// weakKey tries known keys on the tickets, without a connection. Without tickets it isn't tested.
func weakKey(sessions []*client.Session) (Outcome, string) {
	tried := false
	for _, s := range sessions {
		if len(s.Ticket) == 0 || tried && len(sessions) > 4 && s != sessions[len(sessions)-1] {
			continue // one ticket at the beginning and one at the end
		}
		tried = true
		if name := weakTicketKey(s.Ticket, s.Secret); name != "" {
			return Outcome{State: Tested}, name
		}
	}
	if !tried {
		return Outcome{State: NotTested}, ""
	}
	return Outcome{State: Tested}, ""
}

// weakTicketKey returns the name of the known key that opens a ticket, or "". The session's secret in
// the plain text proves the key, and else the MAC. (Keys of zeros have the same MAC at all lengths.)
func weakTicketKey(ticket, secret []byte) string {
	type test func(f *ticketFormat, ticket, secret []byte, pattern string) bool
	for _, opens := range []test{(*ticketFormat).decrypts, (*ticketFormat).authenticates} {
		for _, format := range ticketFormats {
			for _, known := range knownBytes {
				if opens(&format, ticket, secret, known.pattern) {
					return known.name + ", " + format.name
				}
			}
		}
	}
	return ""
}

func (f *ticketFormat) keys(pattern string) (key, macKey []byte) {
	if f.derivedBySHA512 {
		sum := sha512.Sum512(fill(pattern, 32))
		return sum[16:32], sum[32:48]
	}
	return fill(pattern, f.key), fill(pattern, f.macKey)
}

func (f *ticketFormat) authenticates(ticket, _ []byte, pattern string) bool {
	_, key := f.keys(pattern)
	mac := hmac.New(f.mac, key)
	end := len(ticket) - mac.Size()
	if end <= f.data {
		return false
	}
	mac.Write(ticket[:end])
	return hmac.Equal(mac.Sum(nil), ticket[end:])
}

// decrypts reports whether the secret is in the ticket. A weak encryption key is enough for an
// eavesdropper, even if the MAC key is good.
func (f *ticketFormat) decrypts(ticket, secret []byte, pattern string) bool {
	key, _ := f.keys(pattern)
	end := len(ticket) - f.mac().Size()
	block, err := aes.NewCipher(key)
	if err != nil || end <= f.data || len(secret) < 16 {
		return false
	}
	sealed := ticket[f.data:end]
	plain := make([]byte, len(sealed))
	if f.stream {
		cipher.NewCTR(block, ticket[f.iv:f.iv+16]).XORKeyStream(plain, sealed)
	} else {
		if len(sealed)%aes.BlockSize != 0 {
			return false
		}
		cipher.NewCBCDecrypter(block, ticket[f.iv:f.iv+16]).CryptBlocks(plain, sealed)
	}
	return bytes.Contains(plain, secret)
}
