//go:build cgo || ossl_nocgo

package differential

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestDifferentialServerName checks the acknowledgement of a client's name on the wire: RFC 6066,
// section 3.
func TestDifferentialServerName(t *testing.T) {
	for _, version := range tlstest.Versions {
		for _, name := range []string{tlstest.ServerName, ""} {
			for _, way := range []string{"Certificates", "GetCertificate", "GetConfigForClient", "hello retried"} {
				t.Run(fmt.Sprintf("%s/%q/%s", tlstest.VersionName(version), name, way), func(t *testing.T) {
					cc, sc := tlstest.Resuming(version)
					cc.ServerName = name
					cc.InsecureSkipVerify = name == ""
					cert := sc.Certificates[0]
					switch way {
					case "GetCertificate":
						sc.Certificates = nil
						sc.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &cert, nil }
					case "GetConfigForClient":
						inner := sc.Clone()
						sc.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return inner, nil }
					case "hello retried":
						cc.CurvePreferences = []tls.CurveID{tls.CurveP256, tls.CurveP384} // with a key for the first
						sc.CurvePreferences = []tls.CurveID{tls.CurveP384}
					}
					std := cc.Clone()
					std.ClientSessionCache = tls.NewLRUClientSessionCache(0)
					stdServer, osslServer := tlstest.StdServer(sc.Clone()), ossltest.Server(t, sc)
					for _, resumed := range []bool{false, true} {
						want := serverNameAcks(t, stdServer, std, resumed)
						if full := name != "" && !resumed; (want == "server_name of 0 bytes") != full {
							t.Fatalf("resumed %t: crypto/tls answers %q", resumed, want)
						}
						if got := serverNameAcks(t, osslServer, cc, resumed); got != want {
							t.Errorf("resumed %t: answers %q, crypto/tls %q", resumed, got, want)
						}
					}
				})
			}
		}
	}
}

// serverNameAcks makes a connection and returns the server_name extensions of the server's
// messages, in words.
func serverNameAcks(t *testing.T, server tlstest.End, config *tls.Config, resumed bool) string {
	t.Helper()
	rec, log := new(tlstest.Recording), new(tlstest.KeyLog)
	config = config.Clone() // which shares the session cache
	config.KeyLogWriter = log
	a, b := tlstest.Buffered()
	client, s := tls.Client(rec.Tap(tlstest.ClientRole, a), config), server(rec.Tap(tlstest.ServerRole, b))
	defer client.Close()
	defer s.Close()
	done := make(chan error, 1)
	go func() {
		_, err := io.CopyN(s, s, 1)
		done <- err
		s.Close()
	}()
	if _, err := client.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(client, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := client.ConnectionState().DidResume; got != resumed {
		t.Fatalf("resumed: %t", got)
	}
	var acks []string
	for _, m := range tlstest.Messages(rec.Decipher(tlstest.ServerRole, log)) {
		rest := m[4:]
		switch m[0] {
		case tlstest.MsgServerHello:
			rest = rest[2+32:]
			rest = rest[1+int(rest[0])+2+1:]
		case tlstest.MsgEncryptedExtensions:
		default:
			continue
		}
		if len(rest) == 0 {
			continue
		}
		for rest = rest[2:]; len(rest) > 0; {
			typ, n := binary.BigEndian.Uint16(rest), int(binary.BigEndian.Uint16(rest[2:]))
			if typ == 0 {
				acks = append(acks, fmt.Sprintf("server_name of %d bytes", n))
			}
			rest = rest[4+n:]
		}
	}
	return strings.Join(acks, ", ")
}
