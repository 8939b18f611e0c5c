//go:build cgo || ossl_nocgo

package differential

import (
	"crypto/tls"
	"fmt"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// underHandshakeKeys replaces a message of a peer's encrypted TLS 1.3 flight, in which the first
// message is 0, by others. Any peer that has exchanged keys with the victim can send them, before
// any authentication.
func underHandshakeKeys(t *testing.T, log *tlstest.KeyLog, label string, at uint64, messages string) func() tlstest.Fault {
	return func() tlstest.Fault {
		var n uint64
		return tlstest.Records(func(_ int, record []byte) [][]byte {
			if record[0] != tlstest.TypeApplicationData {
				return [][]byte{record}
			}
			if n++; n-1 != at {
				return [][]byte{record}
			}
			keys, err := tlstest.Keys13(tls.TLS_AES_128_GCM_SHA256, log.Secret(label))
			if err != nil {
				t.Error(err)
			}
			keys.SkipTo(at)
			return [][]byte{keys.Seal(tlstest.TypeHandshake, []byte(messages))}
		})
	}
}

// TestUnauthenticatedPostHandshake sends messages that belong after a handshake during it, in place
// of each message of the peer's flight. They must be refused before they have an effect, as in
// crypto/tls.
func TestUnauthenticatedPostHandshake(t *testing.T) {
	const ticket = "\x04\x00\x00\x13" + "\x00\x00\x1c\x20" + "\x01\x02\x03\x04" + "\x01\x07" + "\x00\x05" + "hello" + "\x00\x00"
	for _, message := range []struct{ name, bytes string }{
		{"KeyUpdate", "\x18\x00\x00\x01\x00"},
		{"KeyUpdate requested", "\x18\x00\x00\x01\x01"},
		{"40 KeyUpdates", strings.Repeat("\x18\x00\x00\x01\x01", 40)},
		{"NewSessionTicket", ticket},
		{"40 NewSessionTickets", strings.Repeat(ticket, 40)},
	} {
		for _, victim := range []struct {
			role  tlstest.Role
			label string
			last  uint64 // EncryptedExtensions, Certificate, CertificateVerify, Finished; the last three of a client
		}{
			{tlstest.ClientRole, "SERVER_HANDSHAKE_TRAFFIC_SECRET", 3},
			{tlstest.ServerRole, "CLIENT_HANDSHAKE_TRAFFIC_SECRET", 2},
		} {
			for at := range victim.last + 1 {
				t.Run(fmt.Sprintf("%s/%s/%d", victim.role, message.name, at), func(t *testing.T) {
					for _, impl := range []tlstest.Impl{tlstest.Std, ossltest.UnderTest} {
						log := new(tlstest.KeyLog)
						fault := underHandshakeKeys(t, log, victim.label, at, message.bytes)
						keep := func(c *tls.Config) { c.KeyLogWriter = log }
						c := tlstest.Case{Shared: true,
							Client: tlstest.ClientWith(tlstest.Only(tls.VersionTLS13), keep,
								tlstest.Certificates(tlstest.ClientCert(tlstest.P256))),
							Server: tlstest.ServerWith(tlstest.AskClient(tls.RequireAndVerifyClientCert), keep)}
						p := tlstest.Pairing{Client: impl, Server: tlstest.Std}
						c.ServerFault = fault
						if victim.role == tlstest.ServerRole {
							p = tlstest.Pairing{Client: tlstest.Std, Server: impl}
							c.ClientFault, c.ServerFault = fault, nil
						}
						o := tlstest.Run(p, c)
						own, peers := o.Client, o.Server
						if victim.role == tlstest.ServerRole {
							own, peers = o.Server, o.Client
						}
						if own.HandshakeErr == nil || o.Hung {
							t.Errorf("%s: the handshake succeeds, or hangs: %t", impl.Name(), o.Hung)
						}
						got, want := fmt.Sprint(peers.HandshakeErr, peers.TalkErr), "remote error: tls: unexpected message"
						if impl != tlstest.Std && victim.role == tlstest.ClientRole {
							// Before its own flight a libssl client has no key for its alert, which
							// a server can't read.
							got, want = fmt.Sprint(own.HandshakeErr), "local error: tls: unexpected message"
						}
						if !strings.Contains(got, want) {
							t.Errorf("%s: the peer got %q; the victim: %v", impl.Name(), got, own.HandshakeErr)
						}
					}
				})
			}
		}
	}
}
