//go:build cgo || ossl_nocgo

package resumption

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/session"
)

// TestSessionOfAnotherLendsNoCertificate offers a session of a client with a certificate in a
// handshake that can't resume it. The session's ID is sent in the clear, and libssl looks it up
// before the client has proven that the session is its own. The new session must belong to a client
// without a certificate.
func TestSessionOfAnotherLendsNoCertificate(t *testing.T) {
	for _, store := range []string{"tickets", "cache"} {
		for _, auth := range []tls.ClientAuthType{tls.RequestClientCert, tls.VerifyClientCertIfGiven} {
			t.Run(fmt.Sprintf("%s/%v", store, auth), func(t *testing.T) {
				cc, sc := tlstest.Resuming(tls.VersionTLS13)
				sc.ClientAuth, sc.ClientCAs = auth, tlstest.CA().Pool()
				var opts []ossl.Option
				if store == "cache" {
					opts = append(opts, ossl.WithSessionCache(session.NewCache(8)))
				}
				server := ossltest.Server(t, sc, opts...)
				cc.ClientSessionCache = new(tlstest.OneSlot)
				cert, none := tlstest.ClientCert(tlstest.P256), new(tls.Certificate)
				pretends := &cert // a client that takes the session for its own, and then shows no certificate
				cc.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
					shown := pretends
					pretends = none
					return shown, nil
				}
				mallory := ossltest.Client(t, cc, ossl.WithTLS13CipherSuites(tls.TLS_AES_128_GCM_SHA256))
				cc = cc.Clone()
				cc.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil }
				alice := ossltest.Client(t, cc, ossl.WithTLS13CipherSuites(tls.TLS_AES_256_GCM_SHA384)) // of another hash

				if _, s := tlstest.Visit(t, alice, server); len(s.PeerCertificates) == 0 {
					t.Fatal("no certificate")
				}
				for i, resumed := range []bool{false, true} {
					_, s := tlstest.Visit(t, mallory, server)
					if gives, known := ticketAfterMisfit(); i == 1 && known {
						resumed = gives
					} else if i == 1 {
						resumed = s.DidResume
					}
					if s.DidResume != resumed || len(s.PeerCertificates) > 0 || len(s.VerifiedChains) > 0 {
						t.Fatalf("visit %d: DidResume is %v, with %d certificates and %d chains", i, s.DidResume,
							len(s.PeerCertificates), len(s.VerifiedChains))
					}
				}
			})
		}
	}
}

// ticketAfterMisfit reports whether libssl gives a ticket to a client that has offered a valid
// ticket with another hash, as late patch releases do. known is false for the releases between the
// latest known not to give one and the oldest known to give one.
func ticketAfterMisfit() (gives, known bool) {
	switch version := ossltest.Version(); version {
	case "3.0.2", "3.1.4", "3.2.1", "3.3.2", "3.4.1", "3.5.0":
		return false, true
	default:
		for _, since := range []string{"3.0.22", "3.5.7", "3.6.3"} {
			if strings.HasPrefix(version, since[:strings.LastIndexByte(since, '.')+1]) {
				return true, ossltest.AtLeast(since)
			}
		}
		return ossltest.AtLeast("3.0"), !ossltest.AtLeast("3.0") || ossltest.AtLeast("3.7")
	}
}

// TestTakeoverBetweenAnyTwoBytes divides the bytes after the handshake at each position between two
// reads: the connection is taken over while it is read.
func TestTakeoverBetweenAnyTwoBytes(t *testing.T) {
	cc, sc := tlstest.Resuming(tls.VersionTLS13)
	client, server := ossltest.NewContext(t, cc), ossltest.NewContext(t, sc)
	words := []string{"first", "second", "third"}
	for cut, all := 0, 1; cut < all; cut++ {
		a, b := tlstest.Buffered()
		at := &cutConn{Conn: a}
		c, s := client.Client(at, ""), server.Server(b)
		done := make(chan error, 1)
		go func() {
			err := s.Handshake()
			for _, word := range words {
				if err == nil {
					_, err = io.WriteString(s, word)
				}
			}
			if err == nil {
				err = s.CloseWrite()
			}
			done <- err
		}()
		if err := c.Handshake(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		at.first, at.cutting, at.read = cut, true, 0
		got, err := io.ReadAll(c)
		if string(got) != "firstsecondthird" || err != nil {
			t.Errorf("cut after %d bytes: read %q, %v", cut, got, err)
		}
		all = at.read
		c.Close()
		s.Close()
	}
}

// cutConn, if cutting is set, divides its input after first bytes: no Read returns bytes from both
// parts.
type cutConn struct {
	net.Conn
	cutting     bool
	first, read int
}

func (c *cutConn) Read(b []byte) (int, error) {
	if c.cutting && c.read < c.first {
		b = b[:min(len(b), c.first-c.read)]
	}
	n, err := c.Conn.Read(b)
	c.read += n
	return n, err
}

// TestSuiteNoLongerAllowed makes client or server stop allowing the suite of a TLS 1.2 session:
// crypto/tls does not resume it then.
func TestSuiteNoLongerAllowed(t *testing.T) {
	one, other := tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384
	suites := func(ids ...uint16) func(*tls.Config) { return func(c *tls.Config) { c.CipherSuites = ids } }
	for _, where := range []string{"client", "server"} {
		for _, way := range []string{"ossl-ossl", "ossl-std", "std-ossl", "ossl-ossl cache"} {
			t.Run(where+"/"+way, func(t *testing.T) {
				cc, sc := tlstest.Resuming(tls.VersionTLS12)
				sc.Certificates = []tls.Certificate{tlstest.ServerCert(tlstest.P256)}
				sc.SetSessionTicketKeys([][32]byte{{1}})
				var opts []ossl.Option
				if way == "ossl-ossl cache" {
					sc.SessionTicketsDisabled = true
					opts = append(opts, ossl.WithSessionCache(session.NewCache(8)))
				}
				ends := func() (client, server tlstest.End) {
					client, server = ossltest.Client(t, cc), ossltest.Server(t, sc, opts...)
					switch way {
					case "ossl-std":
						server = tlstest.StdServer(sc)
					case "std-ossl":
						client = tlstest.StdClient(cc)
					}
					return client, server
				}
				suites(one)(cc)
				client, server := ends()
				tlstest.WantResumed(t, client, server, false)
				tlstest.WantResumed(t, client, server, true)
				if where == "client" {
					cc = cc.Clone()
					suites(other)(cc)
				} else {
					cc, sc = cc.Clone(), sc.Clone()
					suites(one, other)(cc)
					suites(other)(sc)
				}
				client, server = ends()
				tlstest.WantResumed(t, client, server, false)
				tlstest.WantResumed(t, client, server, true)
			})
		}
	}
}

// cutting is an implementation that divides its client's input.
type cutting struct {
	tlstest.Impl
	conn *cutConn
}

func (i *cutting) Client(conn net.Conn, config *tls.Config) tlstest.Conn {
	i.conn = &cutConn{Conn: conn}
	return i.Impl.Client(i.conn, config)
}

// TestTakeoverInsideOfTickets divides tickets among records, and the records among reads: the
// connection is not taken over while libssl has a part of a message.
func TestTakeoverInsideOfTickets(t *testing.T) {
	ticket := []byte{4, 0, 0, 4 + 4 + 1 + 1 + 2 + 8 + 2, // RFC 8446, section 4.6.1: lifetime, age_add, nonce, ticket, extensions
		0, 0, 100, 0, 1, 2, 3, 4, 1, 0, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0}
	for _, padding := range []int{0, 1, 20} {
		for cut := 1; cut < len(ticket); cut++ {
			cc, _ := tlstest.Resuming(tls.VersionTLS13)
			impl := &cutting{Impl: ossltest.UnderTest}
			h := tlstest.Hijack(t, impl, tlstest.ServerRole, cc, tlstest.ServerConfig())
			first := h.SealPadded(tlstest.TypeHandshake, ticket, padding)
			first = append(first, h.SealPadded(tlstest.TypeHandshake, ticket[:cut], padding)...)
			impl.conn.cutting, impl.conn.first, impl.conn.read = true, len(first), 0
			h.SendRaw(first)
			h.Send(tlstest.TypeHandshake, ticket[cut:])
			h.Send(tlstest.TypeApplicationData, []byte("first"))
			h.Send(tlstest.TypeHandshake, append(ticket[:len(ticket):len(ticket)], ticket[:cut]...))
			h.Send(tlstest.TypeHandshake, ticket[cut:])
			h.Send(tlstest.TypeApplicationData, []byte("second"))
			h.Send(tlstest.TypeAlert, []byte{1, 0})
			if got, err := io.ReadAll(h.Victim); string(got) != "firstsecond" || err != nil {
				t.Errorf("cut after %d bytes, padding of %d: read %q, %v", cut, padding, got, err)
			}
			h.Victim.Close()
		}
	}
}
