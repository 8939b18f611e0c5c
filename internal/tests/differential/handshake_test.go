//go:build cgo || ossl_nocgo

package differential

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// good plays a case that must succeed with crypto/tls, and checks that client and server agree in
// each pairing.
func good(t *testing.T, c tlstest.Case) {
	t.Helper()
	var want *tlstest.Outcome
	for _, p := range pairings() {
		got := tlstest.Run(p, c)
		if want == nil {
			want = got
			mustPass(t, want)
		} else {
			compare(t, p, want, got)
		}
		if got.Client.Handshake != "ok" || got.Server.Handshake != "ok" {
			continue // compared already
		}
		if !got.SameTLSUnique() {
			t.Errorf("%s: the ends differ on tls-unique", p.Name())
		}
		if a, b := sortedLines(got.ClientLog), sortedLines(got.ServerLog); a != b || a == "" {
			t.Errorf("%s: the key logs differ\nclient:\n%s\nserver:\n%s", p.Name(), a, b)
		}
	}
}

// sortedLines are the lines of a key log, except those that crypto/tls doesn't write.
func sortedLines(log *tlstest.KeyLog) string {
	lines := slices.DeleteFunc(slices.Sorted(strings.Lines(log.String())), func(line string) bool {
		return strings.HasPrefix(line, "EXPORTER_SECRET ") || strings.HasPrefix(line, "RSA ")
	})
	return strings.Join(lines, "")
}

// TestDifferentialHandshake compares good handshakes: versions, keys, mutual or not, ALPN or not.
func TestDifferentialHandshake(t *testing.T) {
	defer checkStale(t)
	for _, version := range tlstest.Versions {
		for _, kind := range tlstest.KeyKinds {
			for _, mutual := range []bool{false, true} {
				for _, alpn := range []bool{false, true} {
					name := fmt.Sprintf("%s/%s/mutual=%v/alpn=%v", tlstest.VersionName(version), kind, mutual, alpn)
					t.Run(name, func(t *testing.T) {
						client := []func(*tls.Config){tlstest.Only(version)}
						server := []func(*tls.Config){tlstest.Only(version), tlstest.Certificates(tlstest.ServerCert(kind))}
						if mutual {
							client = append(client, tlstest.Certificates(tlstest.ClientCert(kind)))
							server = append(server, tlstest.AskClient(tls.RequireAndVerifyClientCert))
						}
						if alpn {
							client = append(client, tlstest.Protocols("h2", "http/1.1"))
							server = append(server, tlstest.Protocols("http/1.1", "h2"))
						}
						good(t, tlstest.Case{Client: tlstest.ClientWith(client...), Server: tlstest.ServerWith(server...)})
					})
				}
			}
		}
	}
}

// TestDifferentialDefaults compares the choices of client and server whose configurations limit
// nothing, not even groups.
func TestDifferentialDefaults(t *testing.T) {
	defer checkStale(t)
	any := tlstest.Curves()
	for _, kind := range tlstest.KeyKinds {
		t.Run(string(kind), func(t *testing.T) {
			good(t, tlstest.Case{Client: tlstest.ClientWith(any),
				Server: tlstest.ServerWith(any, tlstest.Certificates(tlstest.ServerCert(kind)))})
		})
		t.Run(string(kind)+"/client at most TLS 1.2", func(t *testing.T) {
			good(t, tlstest.Case{
				Client: tlstest.ClientWith(any, func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }),
				Server: tlstest.ServerWith(tlstest.Certificates(tlstest.ServerCert(kind))),
			})
		})
		t.Run(string(kind)+"/server at most TLS 1.2", func(t *testing.T) {
			good(t, tlstest.Case{
				Client: tlstest.ClientWith(any),
				Server: tlstest.ServerWith(any, tlstest.Certificates(tlstest.ServerCert(kind)),
					func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }),
			})
		})
	}
}

// TestDifferentialSuite compares a handshake with each TLS 1.2 suite that both have, including
// suites that only an explicit list enables.
func TestDifferentialSuite(t *testing.T) {
	defer checkStale(t)
	for _, id := range []uint16{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA,
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA, tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256,
		tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA,
		tls.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA, tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256,
		tls.TLS_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_RSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_RSA_WITH_AES_128_CBC_SHA, tls.TLS_RSA_WITH_AES_256_CBC_SHA, tls.TLS_RSA_WITH_AES_128_CBC_SHA256,
	} {
		kind := tlstest.RSA2048
		if strings.Contains(tls.CipherSuiteName(id), "ECDSA") {
			kind = tlstest.P256
		}
		t.Run(tls.CipherSuiteName(id), func(t *testing.T) {
			good(t, tlstest.Case{
				Client: tlstest.ClientWith(tlstest.Only(tls.VersionTLS12), tlstest.Suites(id)),
				Server: tlstest.ServerWith(tlstest.Only(tls.VersionTLS12), tlstest.Suites(id),
					tlstest.Certificates(tlstest.ServerCert(kind))),
			})
		})
		// Whether it is on without being asked for is crypto/tls's choice too.
		t.Run(tls.CipherSuiteName(id)+"/by default", func(t *testing.T) {
			cert := tlstest.Certificates(tlstest.ServerCert(kind))
			differ(t, tlstest.Case{Client: tlstest.ClientWith(tlstest.Only(tls.VersionTLS12), tlstest.Suites(id)),
				Server: tlstest.ServerWith(cert)})
			differ(t, tlstest.Case{Server: tlstest.ServerWith(tlstest.Only(tls.VersionTLS12), tlstest.Suites(id), cert)})
		})
	}
	// The server's list decides as much as the client's, and the order is always crypto/tls's
	// own.
	a, b := tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256
	for _, order := range [][]uint16{{a, b}, {b, a}} {
		t.Run(fmt.Sprintf("order/%x", order), func(t *testing.T) {
			good(t, tlstest.Case{
				Client: tlstest.ClientWith(tlstest.Only(tls.VersionTLS12), tlstest.Suites(order...)),
				Server: tlstest.ServerWith(tlstest.Only(tls.VersionTLS12), tlstest.Suites(order[1], order[0])),
			})
		})
	}
}

func isHybrid(g tls.CurveID) bool {
	return g == tls.X25519MLKEM768 || g == tls.SecP256r1MLKEM768 || g == tls.SecP384r1MLKEM1024
}

func stdHasGroup(g tls.CurveID) bool {
	o := tlstest.Run(pairings()[0], tlstest.Case{Client: tlstest.ClientWith(tlstest.Curves(g)),
		Server: tlstest.ServerWith(tlstest.Curves(g))})
	return o.Client.Handshake == "ok"
}

// TestDifferentialGroup compares a handshake in each group that both have.
func TestDifferentialGroup(t *testing.T) {
	defer checkStale(t)
	all := []tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP384, tls.CurveP521, tls.X25519MLKEM768,
		tls.SecP256r1MLKEM768, tls.SecP384r1MLKEM1024}
	for _, version := range tlstest.Versions {
		for _, group := range all {
			if isHybrid(group) && version != tls.VersionTLS13 {
				continue // these are not TLS 1.2 groups
			}
			t.Run(fmt.Sprintf("%s/%d", tlstest.VersionName(version), group), func(t *testing.T) {
				if isHybrid(group) && !ossltest.AtLeast("3.5") {
					t.Skipf("%s has no ML-KEM; 3.5 has", ossltest.Version())
				}
				if !stdHasGroup(group) {
					t.Skipf("crypto/tls of %s has no such group, or has it switched off (GODEBUG tlssecpmlkem)", runtime.Version())
				}
				for _, kind := range []tlstest.KeyKind{tlstest.RSA2048, tlstest.P256} {
					t.Run(string(kind), func(t *testing.T) {
						good(t, tlstest.Case{
							Client: tlstest.ClientWith(tlstest.Only(version), tlstest.Curves(group)),
							Server: tlstest.ServerWith(tlstest.Only(version), tlstest.Curves(group), tlstest.Certificates(tlstest.ServerCert(kind))),
						})
					})
				}
			})
		}
		// Only the server's list is short: in TLS 1.3 that takes a HelloRetryRequest.
		t.Run(tlstest.VersionName(version)+"/client has to be told", func(t *testing.T) {
			good(t, tlstest.Case{
				Client: tlstest.ClientWith(tlstest.Only(version)),
				Server: tlstest.ServerWith(tlstest.Only(version), tlstest.Curves(tls.CurveP384),
					tlstest.Certificates(tlstest.ServerCert(tlstest.RSA2048))),
			})
		})
		t.Run(tlstest.VersionName(version)+"/two lists", func(t *testing.T) {
			good(t, tlstest.Case{
				Client: tlstest.ClientWith(tlstest.Only(version), tlstest.Curves(tls.CurveP256, tls.X25519)),
				Server: tlstest.ServerWith(tlstest.Only(version), tlstest.Curves(tls.X25519, tls.CurveP256)),
			})
		})
	}
}

// TestDifferentialExport compares exported keying material: client and server of every pairing must
// export the same bytes.
func TestDifferentialExport(t *testing.T) {
	defer checkStale(t)
	talk := func(role tlstest.Role, c tlstest.Conn) (string, error) {
		_, err := tlstest.Echo(role, c)
		var all []byte
		for _, context := range [][]byte{nil, {}, []byte("context")} {
			for _, n := range []int{1, 32, 100} {
				b, err := c.ExportKeyingMaterial("EXPORTER-tlstest", context, n)
				if err != nil || len(b) != n {
					return "", fmt.Errorf("%d bytes: %d, %w", n, len(b), err)
				}
				all = append(all, b...)
			}
		}
		// TLS 1.3 makes no difference between no context and an empty one (RFC 8446, section 7.5).
		if same := bytes.Equal(all[:133], all[133:266]); same != (c.ConnectionState().Version == tls.VersionTLS13) {
			return "", fmt.Errorf("without a context and with an empty one the same: %v", same)
		}
		return fmt.Sprintf("%x", all), err
	}
	for _, version := range tlstest.Versions {
		t.Run(tlstest.VersionName(version), func(t *testing.T) {
			for _, p := range pairings() {
				o := tlstest.Run(p, tlstest.Case{Client: tlstest.ClientWith(tlstest.Only(version)),
					Server: tlstest.ServerWith(tlstest.Only(version)), Talk: talk})
				mustPass(t, o)
				if o.Hung || o.Client.Heard != o.Server.Heard || o.Client.Heard == "" {
					t.Errorf("%s: the ends differ\nclient %s\nserver %s", p.Name(), o.Client.Heard, o.Server.Heard)
				}
			}
		})
	}
}

// TestDifferentialTransport runs handshakes and echoes over transports that deliver bytes in
// unusual portions.
func TestDifferentialTransport(t *testing.T) {
	defer checkStale(t)
	bytewise := func() tlstest.Fault { return tlstest.Chunks(1) }
	for _, version := range tlstest.Versions {
		for _, transport := range []struct {
			name  string
			pair  tlstest.Pair
			fault func() tlstest.Fault
		}{
			{"net.Pipe", tlstest.NetPipe, nil},
			{"TCP", tlstest.Loopback, nil},
			{"byte by byte", tlstest.Buffered, bytewise},
			{"byte by byte over net.Pipe", tlstest.NetPipe, bytewise},
			{"coalesced", tlstest.Buffered, tlstest.Coalesce},
		} {
			if os.Getenv(ossltest.EnvSessions) != "" && strings.HasSuffix(transport.name, "net.Pipe") {
				continue // OpenSSL's clients ask for tickets, and over net.Pipe crypto/tls's server waits until they are read
			}
			t.Run(tlstest.VersionName(version)+"/"+transport.name, func(t *testing.T) {
				good(t, tlstest.Case{
					Client:      tlstest.ClientWith(tlstest.Only(version), tlstest.Certificates(tlstest.ClientCert(tlstest.P256))),
					Server:      tlstest.ServerWith(tlstest.Only(version), tlstest.AskClient(tls.RequireAndVerifyClientCert)),
					Pair:        transport.pair,
					ClientFault: transport.fault,
					ServerFault: transport.fault,
					Talk:        politely,
				})
			})
		}
	}
}

// politely is tlstest.Echo for transports without a buffer, on which a close_notify that the peer
// doesn't read would wait for ever.
func politely(role tlstest.Role, c tlstest.Conn) (string, error) {
	heard, err := tlstest.Echo(role, c)
	if role == tlstest.ClientRole && err == nil {
		if err = c.CloseWrite(); err == nil {
			_, err = readEOF(c)
		}
	} else if err == nil {
		err = c.CloseWrite()
	}
	return heard, err
}
