//go:build cgo || ossl_nocgo

package fips

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/session"
)

// TestFIPSEvidence checks, by the module's own description, that a Context that asks for FIPS mode
// has it, and that other connections don't change.
func TestFIPSEvidence(t *testing.T) {
	ossltest.NeedFIPS(t)
	client, server := ossltest.FIPSClient(t), ossltest.FIPSServer(t)
	m := client.FIPS()
	if m == nil || m.Name == "" || !m.Running || !strings.HasPrefix(m.Version, ossltest.Version()[:2]) ||
		!strings.Contains(m.Path, "fips") {
		t.Fatalf("the module: %+v", m)
	}
	if text := m.String(); !strings.Contains(text, m.Version) || !strings.Contains(text, "running") {
		t.Error(text)
	}
	a, b := tlstest.Buffered()
	c, s := client.Client(a, ""), server.Server(b)
	defer c.Close()
	defer s.Close()
	go s.Handshake()
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	for _, conn := range []*ossl.Conn{c, s} {
		if got := conn.FIPS(); got == nil || *got != *m {
			t.Errorf("a connection's module: %+v", got)
		}
	}
	if ossltest.RequireFIPS {
		return
	}
	// Nothing else has changed.
	chacha := func(c *tls.Config) {
		c.CipherSuites = []uint16{tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256}
		c.CurvePreferences = []tls.CurveID{tls.X25519, tls.CurveP256}
		c.MaxVersion = tls.VersionTLS12
	}
	plainClient, plainServer := ossltest.NewPlainContext(t, tlstest.ClientConfig(chacha)), ossltest.NewPlainContext(t,
		tlstest.ServerConfig(chacha))
	state, _ := tlstest.Visit(t, ossltest.ClientOf(plainClient), ossltest.ServerOf(plainServer))
	if state.CipherSuite != tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 || state.CurveID != tls.X25519 {
		t.Errorf("outside of FIPS mode: %s, %v", tls.CipherSuiteName(state.CipherSuite), state.CurveID)
	}
	if plainClient.FIPS() != nil {
		t.Error("a Context that nobody wants in FIPS mode is in it")
	}
}

// TestFIPSHandshakes negotiates everything that is approved, with crypto/tls and with itself, on
// both record paths.
func TestFIPSHandshakes(t *testing.T) {
	ossltest.NeedFIPS(t)
	type choice struct {
		version, suite uint16
		group          tls.CurveID
		key            tlstest.KeyKind
	}
	var choices []choice
	for _, group := range ossltest.FIPSGroups {
		choices = append(choices, choice{tls.VersionTLS12, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, group, tlstest.RSA2048},
			choice{tls.VersionTLS13, tls.TLS_AES_128_GCM_SHA256, group, tlstest.P384})
	}
	choices = append(choices,
		choice{tls.VersionTLS12, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, tls.CurveP256, tlstest.RSA2048},
		choice{tls.VersionTLS12, tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256, tls.CurveP256, tlstest.RSA2048},
		choice{tls.VersionTLS12, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.CurveP256, tlstest.P256},
		choice{tls.VersionTLS12, tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256, tls.CurveP256, tlstest.P256},
		choice{tls.VersionTLS13, tls.TLS_AES_256_GCM_SHA384, tls.CurveP256, tlstest.RSA2048})
	if ossltest.AtLeast("3.5") {
		choices = append(choices, choice{tls.VersionTLS13, tls.TLS_AES_128_GCM_SHA256, tls.X25519MLKEM768, tlstest.P256},
			choice{tls.VersionTLS13, tls.TLS_AES_128_GCM_SHA256, tls.SecP256r1MLKEM768, tlstest.P256})
	}
	for _, path := range []ossl.RecordPath{ossl.RecordsAuto, ossl.RecordsLibssl} {
		for _, ch := range choices {
			t.Run(fmt.Sprintf("%d/%s/%v/%s", path, tls.CipherSuiteName(ch.suite), ch.group, ch.key), func(t *testing.T) {
				edit := func(c *tls.Config) {
					c.MinVersion, c.MaxVersion = ch.version, ch.version
					if ch.version == tls.VersionTLS12 {
						c.CipherSuites = []uint16{ch.suite}
					}
					c.CurvePreferences = []tls.CurveID{ch.group}
				}
				cc := tlstest.ClientConfig(tlstest.Certificates(tlstest.ClientCert(tlstest.RSA2048)), edit)
				sc := tlstest.ServerConfig(tlstest.Certificates(tlstest.ServerCert(ch.key)), edit,
					tlstest.AskClient(tls.RequireAndVerifyClientCert))
				stdC, stdS := tlstest.StdClient(cc), tlstest.StdServer(sc)
				fc, fs := cc.Clone(), sc.Clone()
				fc.RootCAs, fs.ClientCAs = nil, nil
				opts := ossltest.FIPSOptions(ossl.WithRecordPath(path))
				if ch.version == tls.VersionTLS13 {
					opts = append(opts, ossl.WithTLS13CipherSuites(ch.suite))
				}
				oursC, oursS := ossltest.ClientOf(ossltest.NewPlainContext(t, fc, opts...)), ossltest.ServerOf(ossltest.NewPlainContext(t,
					fs, opts...))
				for _, pair := range [][2]tlstest.End{{oursC, oursS}, {oursC, stdS}, {stdC, oursS}} {
					state, _ := tlstest.Visit(t, pair[0], pair[1])
					if state.Version != ch.version || state.CipherSuite != ch.suite || state.CurveID != ch.group {
						t.Errorf("%x, %s, %v", state.Version, tls.CipherSuiteName(state.CipherSuite), state.CurveID)
					}
				}
			})
		}
	}
}

// signsBy returns a server's certificate for a key that is to sign by these algorithms only.
func signsBy(schemes ...tls.SignatureScheme) tls.Certificate {
	cert := tlstest.ServerCert(tlstest.RSA2048)
	cert.SupportedSignatureAlgorithms = schemes
	return cert
}

// TestFIPSRefusedByName checks that a configuration that FIPS mode can't honour is refused when the
// Context is made, and that the error names the field or option.
func TestFIPSRefusedByName(t *testing.T) {
	ossltest.NeedFIPS(t)
	ring, err := session.NewRing(session.NewTicketKey())
	if err != nil {
		t.Fatal(err)
	}
	opaqueCert, _ := tlstest.Opaque(tlstest.P256, tlstest.ServerName)
	for _, test := range []struct {
		name, field string
		edit        func(*tls.Config)
		opts        []ossl.Option
	}{
		{name: "nothing"},
		{name: "roots besides WithRoots", field: "RootCAs", edit: func(c *tls.Config) { c.RootCAs = tlstest.CA().Pool() }},
		{name: "client roots besides WithClientRoots", field: "ClientCAs",
			edit: func(c *tls.Config) { c.ClientCAs = tlstest.CA().Pool() }},
		{name: "ChaCha20", field: "CipherSuites",
			edit: func(c *tls.Config) { c.CipherSuites = []uint16{tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256} }},
		{name: "RSA key exchange", field: "CipherSuites",
			edit: func(c *tls.Config) { c.CipherSuites = []uint16{tls.TLS_RSA_WITH_AES_128_GCM_SHA256} }},
		{name: "SHA-1 MAC", field: "CipherSuites",
			edit: func(c *tls.Config) { c.CipherSuites = []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA} }},
		{name: "ChaCha20 of TLS 1.3", field: "WithTLS13CipherSuites",
			opts: []ossl.Option{ossl.WithTLS13CipherSuites(tls.TLS_CHACHA20_POLY1305_SHA256)}},
		{name: "X25519", field: "CurvePreferences",
			edit: func(c *tls.Config) { c.CurvePreferences = []tls.CurveID{tls.CurveP256, tls.X25519} }},
		{name: "SHA-1 signatures", field: "WithSignatureAlgorithms",
			opts: []ossl.Option{ossl.WithSignatureAlgorithms(tls.PSSWithSHA256, tls.PKCS1WithSHA1)}},
		{name: "security level", field: "WithSecurityLevel", opts: []ossl.Option{ossl.WithSecurityLevel(1)}},
		{name: "kernel TLS", field: "WithKernelTLS", opts: []ossl.Option{ossl.WithKernelTLS()}},
		{name: "pre-shared keys", field: "WithPSK", opts: []ossl.Option{ossl.WithPSK(noPSK)}},
		{name: "remembered chains", field: "WithVerifiedChainCache", opts: []ossl.Option{ossl.WithVerifiedChainCache(10)}},
		{name: "no remembered chains", opts: []ossl.Option{ossl.WithVerifiedChainCache(0)}},
		{name: "keys derived in Go", field: "SessionTicketKey", edit: func(c *tls.Config) {
			c.SessionTicketsDisabled = false
			c.SetSessionTicketKeys([][32]byte{{1}})
		}},
		{name: "keys given", edit: func(c *tls.Config) { c.SessionTicketsDisabled = false },
			opts: []ossl.Option{ossl.WithTicketKeys(ring)}},
		{name: "a crypto.Signer", field: "Certificates", edit: tlstest.Certificates(opaqueCert)},
		{name: "a key of another provider", field: "Certificates",
			edit: tlstest.Certificates(ossltest.LoadedPair(t, tlstest.P256, tlstest.ServerName))},
		{name: "RSA-1024", field: "Certificates", edit: tlstest.Certificates(tlstest.ServerCert(tlstest.RSA1024))},
		{name: "SHA-1 signatures of a key", field: "Certificates",
			edit: tlstest.Certificates(signsBy(tls.PSSWithSHA256, tls.PKCS1WithSHA1))},
		{name: "approved signatures of a key", edit: tlstest.Certificates(signsBy(tls.PSSWithSHA256, tls.PKCS1WithSHA256))},
		{name: "nobody", field: "WithRoots", opts: []ossl.Option{ossl.WithRoots(ossl.Roots{})}},
		{name: "no client's", field: "WithClientRoots", opts: []ossl.Option{ossl.WithClientRoots(ossl.Roots{})}},
		{name: "no file", field: "WithRoots", opts: []ossl.Option{ossl.WithRoots(ossl.Roots{Files: []string{"/nonexistent.pem"}})}},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := tlstest.ServerConfig(ossltest.Approved)
			if test.edit != nil {
				test.edit(config)
			}
			_, err := ossl.NewContext(config, ossltest.FIPSOptions(test.opts...)...)
			var refused *ossl.ConfigError
			switch {
			case test.field == "":
				if err != nil {
					t.Error(err)
				}
			case !errors.As(err, &refused) || refused.Field != test.field:
				t.Errorf("%v, want a ConfigError for %s", err, test.field)
			}
		})
	}
	if ossltest.RequireFIPS {
		return
	}
	for _, opt := range []ossl.Option{ossl.WithRoots(ossltest.TrustedRoots()), ossl.WithClientRoots(ossltest.TrustedRoots())} {
		var refused *ossl.ConfigError
		if _, err := ossl.NewContext(&tls.Config{}, opt); !errors.As(err, &refused) {
			t.Errorf("roots without FIPS mode: %v", err)
		}
	}
}

// TestFIPSPeersRefused: a peer that has only algorithms that are not approved is refused, with
// crypto/tls's alert.
func TestFIPSPeersRefused(t *testing.T) {
	ossltest.NeedFIPS(t)
	for _, test := range []struct {
		name    string
		version uint16
		alert   string // to the client, "" if the crypto/tls server sends an alert first
		edit    func(*tls.Config)
	}{
		{"ChaCha20", tls.VersionTLS12, "handshake failure", func(c *tls.Config) {
			c.CipherSuites = []uint16{tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256}
		}},
		{"RSA key exchange", tls.VersionTLS12, "handshake failure", func(c *tls.Config) {
			c.CipherSuites = []uint16{tls.TLS_RSA_WITH_AES_128_GCM_SHA256}
		}},
		{"X25519", tls.VersionTLS12, "handshake failure", func(c *tls.Config) { c.CurvePreferences = []tls.CurveID{tls.X25519} }},
		{"X25519", tls.VersionTLS13, "handshake failure", func(c *tls.Config) { c.CurvePreferences = []tls.CurveID{tls.X25519} }},
	} {
		t.Run(fmt.Sprintf("%s/%s", test.name, tls.VersionName(test.version)), func(t *testing.T) {
			a, b := tlstest.Buffered()
			s := ossltest.FIPSServer(t).Server(b)
			c := tls.Client(a, tlstest.ClientConfig(tlstest.Only(test.version), test.edit))
			done := make(chan error, 1)
			go func() {
				done <- s.Handshake()
				s.Close()
			}()
			err := c.Handshake()
			if err == nil || !strings.Contains(err.Error(), test.alert) {
				t.Errorf("client: %v", err)
			}
			if err := <-done; err == nil {
				t.Error("the server accepts it")
			}

			a, b = tlstest.Buffered()
			ours, theirs := ossltest.FIPSClient(t).Client(a, ""), tls.Server(b,
				tlstest.ServerConfig(tlstest.Only(test.version), test.edit))
			go func() {
				done <- theirs.Handshake()
				theirs.Close()
			}()
			if err := ours.Handshake(); err == nil {
				t.Error("the client accepts it")
			}
			ours.Close()
			if err := <-done; err == nil {
				t.Error("the server is served")
			}
		})
	}
	rsa1024 := tlstest.ServerCert(tlstest.RSA1024)
	for _, version := range tlstest.Versions {
		a, b := tlstest.Buffered()
		c, s := ossltest.FIPSClient(t).Client(a, ""), tls.Server(b,
			tlstest.ServerConfig(tlstest.Only(version), tlstest.Certificates(rsa1024)))
		done := make(chan error, 1)
		go func() {
			err := s.Handshake()
			if err == nil { // TLS 1.3: the client's alert comes later
				_, err = s.Read(make([]byte, 1))
			}
			done <- err
		}()
		err := c.Handshake()
		c.Close()
		var invalid *tls.CertificateVerificationError
		if !errors.As(err, &invalid) {
			t.Errorf("RSA-1024, %s: %v", tls.VersionName(version), err)
		}
		if err := <-done; err == nil || !strings.Contains(err.Error(), "bad certificate") {
			t.Errorf("RSA-1024, %s, server: %v", tls.VersionName(version), err)
		}
	}
}

// withoutEMS removes the extended master secret from ClientHellos that are written.
type withoutEMS struct{ net.Conn }

func (c withoutEMS) Write(b []byte) (int, error) {
	if len(b) > 5 && b[0] == 22 && b[5] == 1 {
		// Change the extension's type to an unknown one.
		b = bytes.Replace(b, []byte{0, 23, 0, 0}, []byte{0xfa, 0xfa, 0, 0}, 1)
	}
	return c.Conn.Write(b)
}

// TestFIPSMasterSecret: TLS 1.2 keys are derived from the extended master secret or not at all.
func TestFIPSMasterSecret(t *testing.T) {
	ossltest.NeedFIPS(t)
	const want = "Extended Master Secret"
	a, b := tlstest.Buffered()
	done := make(chan error, 1)
	s := ossltest.FIPSServer(t, tlstest.Only(tls.VersionTLS12)).Server(b)
	go func() { done <- s.Handshake() }()
	c := tls.Client(withoutEMS{a}, tlstest.ClientConfig(tlstest.Only(tls.VersionTLS12)))
	if err := c.Handshake(); err == nil || !strings.Contains(err.Error(), "remote error: tls: handshake failure") {
		t.Errorf("client: %v", err)
	}
	if err := <-done; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("FIPS server: %v", err)
	}

	a, b = tlstest.Buffered()
	theirs := tls.Server(b, tlstest.ServerConfig(tlstest.Only(tls.VersionTLS12)))
	go func() { done <- theirs.Handshake() }()
	ours := ossltest.FIPSClient(t, tlstest.Only(tls.VersionTLS12)).Client(withoutEMS{a}, "")
	if err := ours.Handshake(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("FIPS client: %v", err)
	}
	if err := <-done; err == nil || !strings.Contains(err.Error(), "remote error: tls: handshake failure") {
		t.Errorf("server: %v", err)
	}
}

// TestFIPSRoots trusts an authority in each way that Roots has, and checks that no other is
// trusted.
func TestFIPSRoots(t *testing.T) {
	ossltest.NeedFIPS(t)
	dir := t.TempDir()
	pemOf := func(certs ...*x509.Certificate) (text []byte) {
		for _, cert := range certs {
			text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})...)
		}
		return text
	}
	file := filepath.Join(dir, "roots.pem")
	other := filepath.Join(dir, "other.pem")
	folder, empty := filepath.Join(dir, "folder"), filepath.Join(dir, "empty")
	for path, text := range map[string][]byte{
		file: append([]byte("a comment\n"), pemOf(tlstest.OtherCA().Cert, tlstest.CA().Cert)...), other: pemOf(tlstest.OtherCA().Cert),
		filepath.Join(folder, "README"): []byte("no certificate"), filepath.Join(folder, "a.crt"): pemOf(tlstest.CA().Cert),
		filepath.Join(empty, "README"): []byte("none here"),
	} {
		os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	server := tlstest.StdServer(tlstest.ServerConfig())
	try := func(roots *ossl.Roots) error {
		config := tlstest.ClientConfig(ossltest.Approved)
		opts := []ossl.Option{ossl.WithFIPS()}
		if roots != nil {
			opts = append(opts, ossl.WithRoots(*roots))
		}
		_, _, err := tlstest.TryVisit(ossltest.ClientOf(ossltest.NewPlainContext(t, config, opts...)), server)
		return err
	}
	for name, roots := range map[string]ossl.Roots{
		"a file": {Files: []string{file}}, "a folder": {Directories: []string{folder}}, "a certificate": ossltest.TrustedRoots(),
		"several": {Files: []string{other}, Directories: []string{empty, folder}},
	} {
		if err := try(&roots); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Setenv("SSL_CERT_DIR", empty)
	t.Setenv("SSL_CERT_FILE", file)
	for name, roots := range map[string]*ossl.Roots{
		"the system, by default": nil, "the system": {System: true}, "the system and another": {System: true, Files: []string{other}},
	} {
		if err := try(roots); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Setenv("SSL_CERT_FILE", other)
	for name, roots := range map[string]*ossl.Roots{
		"another file": {Files: []string{other}}, "another system": nil,
		"another certificate": {Certificates: []*x509.Certificate{tlstest.OtherCA().Cert}},
	} {
		var unknown x509.UnknownAuthorityError
		if err := try(roots); !errors.As(err, &unknown) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, roots := range map[string]ossl.Roots{
		"an empty folder": {Directories: []string{empty}}, "a file of text": {Files: []string{filepath.Join(empty, "README")}},
		"no folder": {Directories: []string{filepath.Join(dir, "none")}}, "nil": {Certificates: []*x509.Certificate{nil}},
	} {
		var refused *ossl.ConfigError
		if _, err := ossl.NewContext(&tls.Config{}, ossl.WithFIPS(), ossl.WithRoots(roots)); !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFIPSNames: a certificate is for the names and addresses that crypto/tls takes it for.
func TestFIPSNames(t *testing.T) {
	ossltest.NeedFIPS(t)
	cert := tlstest.New(tlstest.Options{Names: []string{"plain.test", "*.wild.test", "192.0.2.1", "2001:db8::1"}})
	for _, name := range []string{
		"plain.test", "PLAIN.test", "plain.test.", "other.test", "sub.plain.test", "a.wild.test", "a.b.wild.test", "wild.test",
		"*.wild.test",
		"192.0.2.1", "192.0.2.2", "[192.0.2.1]", "2001:db8::1", "[2001:db8::1]", "2001:db8::2",
	} {
		config := func(c *tls.Config) { c.ServerName = name }
		_, _, want := tlstest.TryVisit(tlstest.StdClient(tlstest.ClientConfig(config)),
			tlstest.StdServer(tlstest.ServerConfig(tlstest.Certificates(cert))))
		_, _, err := tlstest.TryVisit(ossltest.ClientOf(ossltest.FIPSClient(t, config)),
			tlstest.StdServer(tlstest.ServerConfig(tlstest.Certificates(cert))))
		if (err == nil) != (want == nil) || err != nil && tlstest.Class(err) != tlstest.Class(want) {
			t.Errorf("%q: %v, crypto/tls: %v", name, err, want)
		}
	}
}

// TestFIPSSessions resumes in every way, and verifies again when it does.
func TestFIPSSessions(t *testing.T) {
	ossltest.NeedFIPS(t)
	for _, version := range tlstest.Versions {
		for _, way := range []string{"tickets", "cache"} {
			t.Run(tls.VersionName(version)+"/"+way, func(t *testing.T) {
				now := time.Now()
				clock := func() time.Time { return now }
				cc := tlstest.ClientConfig(tlstest.Only(version), ossltest.Approved, tlstest.Certificates(tlstest.ClientCert(tlstest.P256)))
				cc.ClientSessionCache = tls.NewLRUClientSessionCache(4)
				cc.Time = clock
				sc := tlstest.ServerConfig(tlstest.Only(version), tlstest.AskClient(tls.RequireAndVerifyClientCert), ossltest.Approved)
				sc.SessionTicketsDisabled = false
				options := ossltest.FIPSOptions()
				if way == "cache" {
					sc.SessionTicketsDisabled = true
					options = append(options, ossl.WithSessionCache(session.NewCache(8)))
				}
				client, server := ossltest.ClientOf(ossltest.NewPlainContext(t, cc,
					ossltest.FIPSOptions()...)), ossltest.ServerOf(ossltest.NewPlainContext(t, sc, options...))
				if way == "cache" && version == tls.VersionTLS12 {
					client = ossltest.ClientOf(ossltest.NewPlainContext(t, cc, ossltest.FIPSOptions()...))
				}
				first, _ := tlstest.Visit(t, client, server)
				again, _ := tlstest.Visit(t, client, server)
				if first.DidResume || !again.DidResume {
					t.Fatalf("DidResume: %v, then %v", first.DidResume, again.DidResume)
				}
				if err := tlstest.SameState(first, again); err != nil {
					t.Error(err)
				}
				now = now.AddDate(50, 0, 0) // every certificate has expired
				if _, _, err := tlstest.TryVisit(client, server); err == nil {
					t.Error("a session outlives its certificates")
				}
			})
		}
	}
}

func noPSK(context.Context, string) (*ossl.PSK, error) { return nil, nil }
