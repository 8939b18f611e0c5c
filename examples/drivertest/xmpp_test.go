package drivertest

import (
	"crypto/tls"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mellium.im/sasl"
	"mellium.im/xmpp"
	"mellium.im/xmpp/jid"

	"github.com/ossl-go/ossl"
)

// startProsody starts Prosody with the account app@localhost. Its clients connect with TLS from the start.
func startProsody(t *testing.T) *home {
	t.Helper()
	program := lookPath(t, "prosody")
	h := newHome(t)
	accounts := filepath.Join(h.dir, "localhost", "accounts")
	if err := os.MkdirAll(accounts, 0o700); err != nil {
		t.Fatal(err)
	}
	h.write("localhost/accounts/app.dat", []byte("return { [\"password\"] = \"secret\" }\n"))
	config := h.write("prosody.cfg.lua", fmt.Appendf(nil, `data_path = %[1]q
pidfile = %[2]q
daemonize = false
interfaces = { "127.0.0.1" }
c2s_ports = {}
c2s_direct_tls_ports = { %[3]d }
modules_enabled = { "saslauth"; "tls" }
modules_disabled = { "s2s" }
authentication = "internal_plain"
log = { info = "*console" }
VirtualHost "localhost"
ssl = { certificate = %[4]q; key = %[5]q }
c2s_direct_tls_ssl = { certificate = %[4]q; key = %[5]q }
`, h.dir, filepath.Join(h.dir, "pid"), h.port, h.cert, h.key))
	h.start(syscall.SIGTERM, program, "-F", "--config", config)
	return h
}

// TestXMPP binds SCRAM to connections by tls-unique, in TLS 1.2: Prosody 0.12 knows no binding of TLS 1.3.
func TestXMPP(t *testing.T) {
	h := startProsody(t)
	between := relay(t, h)
	plus := []sasl.Mechanism{sasl.ScramSha256Plus, sasl.ScramSha1Plus}
	for _, mechanism := range append(plus, sasl.ScramSha256) {
		t.Run(mechanism.Name, func(t *testing.T) {
			if err := logIn(t, h.addr(), tls.VersionTLS12, mechanism); err != nil {
				t.Error(err)
			}
			bound := strings.HasSuffix(mechanism.Name, "-PLUS")
			if err := logIn(t, between, tls.VersionTLS12, mechanism); (err == nil) == bound {
				t.Errorf("through someone who has the server's key: %v", err)
			}
			if bound {
				return
			}
			if err := logIn(t, h.addr(), tls.VersionTLS13, mechanism); err != nil {
				t.Errorf("TLS 1.3: %v", err)
			}
		})
	}
}

// relay is someone between client and server who has the server's key. It returns the address.
func relay(t *testing.T, h *home) string {
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{ids().server}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer client.Close()
				config := &tls.Config{RootCAs: ids().roots, ServerName: "localhost", MaxVersion: tls.VersionTLS12}
				server, err := tls.Dial("tcp", h.addr(), config)
				if err != nil {
					return
				}
				defer server.Close()
				go io.Copy(client, server)
				io.Copy(server, client)
			}()
		}
	}()
	return l.Addr().String()
}

// logIn makes a session with one mechanism.
func logIn(t *testing.T, addr string, version uint16, mechanism sasl.Mechanism) error {
	t.Helper()
	ctx, err := ossl.NewContext(&tls.Config{RootCAs: ids().roots, ServerName: "localhost", MinVersion: version, MaxVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := ctx.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	address := jid.MustParse("app@localhost")
	features := []xmpp.StreamFeature{xmpp.SASL("", "secret", mechanism), xmpp.BindResource()}
	session, err := xmpp.NewSession(t.Context(), address.Domain(), address, conn, xmpp.Secure,
		xmpp.NewNegotiator(func(*xmpp.Session, *xmpp.StreamConfig) xmpp.StreamConfig {
			return xmpp.StreamConfig{Features: features}
		}))
	if err != nil {
		return err
	}
	return session.Close()
}
