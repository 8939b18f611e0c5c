//go:build cgo || ossl_nocgo

package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// runnerTest acts as the runner, with crypto/tls and with the shim in this process.
type runnerTest struct {
	name   string
	server bool // the shim's role
	flags  []string
	config func(*tls.Config) // the runner's configuration
	abrupt bool              // the runner closes without close_notify
	fails  bool              // the shim fails
	fresh  bool              // the runner forgets its session after each connection
}

func TestShim(t *testing.T) {
	certs := writeCredentials(t)
	withCurve := func(ids ...tls.CurveID) func(*tls.Config) {
		return func(c *tls.Config) { c.CurvePreferences = ids }
	}
	exports := []string{"-export-keying-material", "16", "-export-label", "label", "-export-context", "context"}
	add := []string{"-new-x509-credential"}
	both := slices.Concat(add, certs[tlstest.P256], add, certs[tlstest.RSA2048])
	anyClient := func(c *tls.Config) { c.ClientAuth = tls.RequireAnyClientCert }
	for _, test := range []runnerTest{
		{name: "echo"},
		{name: "abrupt end", abrupt: true},
		{name: "abrupt end, checked", abrupt: true, flags: []string{"-check-close-notify"}, fails: true},
		{name: "regular end, checked", flags: []string{"-check-close-notify"}},
		{name: "byte by byte", flags: []string{"-async"}},
		{name: "implicit", flags: []string{"-implicit-handshake"}},
		{name: "version", flags: []string{"-max-version", "771", "-expect-version", "771"}},
		{name: "other version", flags: []string{"-max-version", "771", "-expect-version", "772"}, fails: true},
		{name: "other version, implicit", flags: []string{"-implicit-handshake", "-no-tls13", "-expect-version", "772"}, fails: true},
		{name: "group", flags: []string{"-expect-curve-id", "24"}, config: withCurve(tls.CurveP384)},
		{name: "other group", flags: []string{"-expect-curve-id", "24"}, config: withCurve(tls.CurveP256), fails: true},
		{name: "unexpected protocol", flags: []string{"-advertise-alpn", "\x03foo", "-select-alpn", "foo", "-expect-alpn", "bar"},
			config: func(c *tls.Config) { c.NextProtos = []string{"foo"} }, fails: true},
		{name: "signature", flags: []string{"-expect-peer-signature-algorithm", "1027", "-require-any-client-certificate"}},
		{name: "signature, TLS 1.2", flags: []string{"-expect-peer-signature-algorithm", "1027", "-require-any-client-certificate",
			"-max-version", "771"}},
		{name: "other signature", flags: []string{"-expect-peer-signature-algorithm", "2052", "-require-any-client-certificate"},
			fails: true},
		{name: "export", flags: exports},
		{name: "credential", flags: slices.Concat(both, []string{"-expect-selected-credential", "0"}), config: anyClient},
		{name: "other credential", flags: slices.Concat(both, []string{"-expect-selected-credential", "1"}), config: anyClient,
			fails: true},
		{name: "chain refused", flags: []string{"-verify-fail", "-verify-peer"}, fails: true},
		{name: "resumed", flags: []string{"-resume-count", "2"}},
		{name: "resumed, TLS 1.2", flags: []string{"-resume-count", "2", "-max-version", "771", "-expect-ticket-renewal"}},
		{name: "resumed from a cache", flags: []string{"-resume-count", "2", "-with-session-cache"}},
		{name: "resumed, implicit", flags: []string{"-resume-count", "1", "-implicit-handshake"}},
		{name: "resumed, not to be", flags: []string{"-resume-count", "1", "-expect-session-miss"}, fails: true},
		{name: "not resumed", flags: []string{"-resume-count", "1", "-expect-session-miss"}, fresh: true},
		{name: "not resumed, to be", flags: []string{"-resume-count", "1"}, fresh: true, fails: true},
		{name: "refused when resumed", flags: []string{"-resume-count", "1", "-on-resume-verify-fail", "-reverify-on-resume",
			"-verify-peer", "-use-custom-verify-callback"}, fails: true},
		{name: "accepted when resumed", flags: []string{"-resume-count", "1", "-on-resume-verify-fail", "-verify-peer",
			"-use-custom-verify-callback"}},
	} {
		for _, server := range []bool{false, true} {
			test.server = server
			if test.name == "unexpected protocol" && server {
				continue // a server's selection is its expectation
			}
			t.Run(test.name+"/"+map[bool]string{false: "client", true: "server"}[server], func(t *testing.T) {
				flags := test.flags
				if server && (len(flags) == 0 || flags[0] != "-new-x509-credential") {
					flags = slices.Concat(certs[tlstest.P256], flags)
				}
				test.run(t, slices.Concat(flags, []string{"-trust-cert", certs["CA"][0]}))
			})
		}
	}
}

// run runs the test with the runner and the shim in this process.
func (test *runnerTest) run(t *testing.T, flags []string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	flags = append([]string{"-port", port, "-shim-id", "77", "-host-name", tlstest.ServerName}, flags...)
	if test.server {
		flags = append(flags, "-server")
	}
	parsed, err := parseFlags(flags)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- test.exchanges(listener, &parsed.initial) }()
	err = run(parsed)
	listener.Close() // the runner expects no more connections
	if peer := <-done; peer != nil && !test.fails {
		t.Errorf("runner: %v", peer)
	}
	if (err != nil) != test.fails {
		t.Errorf("shim: %v; should fail: %v", err, test.fails)
	}
	var u unimplemented
	if errors.As(err, &u) {
		t.Errorf("shim: %v", err)
	}
}

// exchanges is the runner's end of all connections.
func (test *runnerTest) exchanges(listener net.Listener, s *settings) error {
	var config *tls.Config
	for range s.resumeCount + 1 {
		if config == nil || test.fresh {
			config = test.runnerConfig()
		}
		if err := test.exchange(listener, s, config); err != nil {
			return err
		}
	}
	return nil
}

func (test *runnerTest) runnerConfig() *tls.Config {
	config := &tls.Config{
		InsecureSkipVerify: true,
		ServerName:         tlstest.ServerName, // the key for sessions
		ClientSessionCache: tls.NewLRUClientSessionCache(0),
		Certificates:       []tls.Certificate{tlstest.ServerCert(tlstest.P256)},
	}
	if test.config != nil {
		test.config(config)
	}
	if test.server {
		config.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
	}
	return config
}

// exchange is the runner's end of one connection.
func (test *runnerTest) exchange(listener net.Listener, s *settings, config *tls.Config) error {
	conn, err := listener.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	id := make([]byte, 8)
	if _, err := io.ReadFull(conn, id); err != nil || binary.LittleEndian.Uint64(id) != 77 {
		return errors.Join(err, errors.New("wrong identity "+strconv.Quote(string(id))))
	}
	c := tls.Server(conn, config)
	if test.server {
		c = tls.Client(conn, config)
	}
	if err := c.Handshake(); err != nil {
		return err
	}
	if n := s.exportKeyingMaterial; n > 0 {
		state := c.ConnectionState()
		want, err := state.ExportKeyingMaterial(s.exportLabel, nil, n)
		if err != nil {
			return err
		}
		got := make([]byte, n)
		if _, err := io.ReadFull(c, got); err != nil || string(got) != string(want) {
			return errors.Join(err, errors.New("other keying material"))
		}
	}
	if _, err := io.WriteString(c, "ping"); err != nil {
		return err
	}
	echo := make([]byte, 4)
	if _, err := io.ReadFull(c, echo); err != nil {
		return err
	}
	for i := range echo {
		echo[i] ^= 0xff
	}
	if string(echo) != "ping" {
		return errors.New("wrong echo " + strconv.Quote(string(echo)))
	}
	if test.abrupt {
		return nil
	}
	if err := c.CloseWrite(); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, conn)
	return nil
}

// writeCredentials writes certificates and keys to files and returns the flags that name them.
func writeCredentials(t *testing.T) map[tlstest.KeyKind][]string {
	dir := t.TempDir()
	write := func(name, kind string, ders ...[]byte) string {
		file := filepath.Join(dir, name)
		for _, der := range ders {
			if err := appendLine(file, string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))); err != nil {
				t.Fatal(err)
			}
		}
		return file
	}
	flags := map[tlstest.KeyKind][]string{"CA": {write("ca", "CERTIFICATE", tlstest.CA().Cert.Raw)}}
	for _, kind := range []tlstest.KeyKind{tlstest.P256, tlstest.RSA2048} {
		cert := tlstest.ServerCert(kind)
		key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
		if err != nil {
			t.Fatal(err)
		}
		flags[kind] = []string{
			"-cert-file", write(string(kind), "CERTIFICATE", cert.Certificate...),
			"-key-file", write(string(kind)+".key", "PRIVATE KEY", key),
		}
	}
	return flags
}
