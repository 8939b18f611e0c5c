package httptls_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"net/http"
	"os"
	"runtime"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/httptls"
)

// reloadersOf writes pairs and returns their Reloaders, which look in each handshake.
func reloadersOf(t *testing.T, certs ...*tls.Certificate) (rs httptls.Reloaders, files [][2]string, errs *reported) {
	t.Helper()
	errs = new(reported)
	for _, cert := range certs {
		r, certFile, keyFile, _ := newReloader(t, cert)
		r.OnError = errs.add
		rs = append(rs, r)
		files = append(files, [2]string{certFile, keyFile})
	}
	return rs, files, errs
}

// Reloaders choose as crypto/tls does among Certificates.
func TestReloadersChoose(t *testing.T) {
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var certs []*tls.Certificate
	for _, c := range []struct {
		key   crypto.Signer
		names []string
	}{
		{ecKey(), []string{"one.test"}}, {rsaKey(), []string{"one.test", "two.test"}}, {p384, []string{"*.three.test"}},
		{ecKey(), []string{"two.test"}}, {rsaKey(), []string{"a.three.test"}},
	} {
		certs = append(certs, leaf(c.key, c.names...))
	}
	rs, _, _ := reloadersOf(t, certs...)
	config := &tls.Config{SessionTicketsDisabled: true}
	for _, cert := range certs {
		config.Certificates = append(config.Certificates, *cert)
	}
	std := netHTTP.start(t, &http.Server{TLSConfig: config.Clone(), Handler: http.HandlerFunc(hello)})
	listed := openSSL.start(t, &http.Server{TLSConfig: config.Clone(), Handler: http.HandlerFunc(hello)})
	ours := openSSL.start(t, &http.Server{
		TLSConfig: &tls.Config{GetCertificate: rs.GetCertificate, SessionTicketsDisabled: true}, Handler: http.HandlerFunc(hello),
	})
	serial := func(s *running, client *tls.Config) int64 { // 0 if no certificate suits
		conn, err := tls.Dial("tcp", s.addr, client)
		if err != nil {
			return 0
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	chosen := map[int64]bool{}
	for _, name := range []string{
		"one.test", "ONE.test", "two.test", "a.three.test", "b.three.test", "unknown.test", "localhost", "127.0.0.1",
	} {
		for kind, edit := range map[string]func(*tls.Config){
			"any":            func(*tls.Config) {},
			"TLS 1.2":        func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 },
			"TLS 1.2, RSA":   only12(tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
			"TLS 1.2, ECDSA": only12(tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
			"TLS 1.2, no P-256": func(c *tls.Config) {
				only12(tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256)(c)
				c.CurvePreferences = []tls.CurveID{tls.CurveP384}
			},
			"X25519 only": func(c *tls.Config) { c.CurvePreferences = []tls.CurveID{tls.X25519} },
		} {
			client := &tls.Config{ServerName: name, InsecureSkipVerify: true}
			edit(client)
			want, got := serial(std, client), serial(ours, client)
			chosen[got] = true
			// If no certificate suits, crypto/tls goes on with the first, and OpenSSL doesn't.
			if got != want && (got != 0 || serial(listed, client) != 0) {
				t.Errorf("%s, %s: certificate %d, crypto/tls chooses %d", name, kind, got, want)
			}
		}
	}
	if len(chosen) != len(certs)+1 || !chosen[0] {
		t.Errorf("%d of %d certificates were chosen", len(chosen)-1, len(certs))
	}
}

func only12(suite uint16) func(*tls.Config) {
	return func(c *tls.Config) { c.MaxVersion, c.CipherSuites = tls.VersionTLS12, []uint16{suite} }
}

// A pair that can't be used doesn't delay the others.
func TestReloadersAreRenewedSeparately(t *testing.T) {
	one, two := leaf(ecKey(), "one.test"), leaf(ecKey(), "two.test")
	rs, files, errs := reloadersOf(t, one, two)
	s := openSSL.start(t, &http.Server{
		TLSConfig: &tls.Config{GetCertificate: rs.GetCertificate, SessionTicketsDisabled: true}, Handler: http.HandlerFunc(hello),
	})
	served := func(name string) int64 {
		t.Helper()
		conn, err := tls.Dial("tcp", s.addr, &tls.Config{ServerName: name, RootCAs: pool()})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	next := leaf(ecKey(), "two.test")
	writeFile(t, files[0][0], []byte("-----BEGIN CERTIFICATE-----\nMIIB"))
	writePairTo(t, next, files[1][0], files[1][1])
	for range 3 {
		if got := served("one.test"); got != one.Leaf.SerialNumber.Int64() {
			t.Errorf("certificate %d is served", got)
		}
		if got := served("two.test"); got != next.Leaf.SerialNumber.Int64() {
			t.Errorf("certificate %d is served, not the renewed one", got)
		}
	}
	if n := errs.count(); n != 1 {
		t.Errorf("reported %d times: %v", n, errs.errs)
	}
	if err := rs.Reload(); err == nil {
		t.Error("Reload returns no error")
	}
	_ = os.Remove(files[1][1])
	if err := rs.Reload(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Reload returns one of two errors: %v", err)
	}
	strict, err := ossl.NewContext(nil, ossl.WithSecurityLevel(3))
	if err != nil {
		t.Fatal(err)
	}
	if err := rs.UsedBy(strict); err != nil {
		t.Error(err)
	}
	var refused *ossl.ConfigError
	weak, _, _ := reloadersOf(t, one, leaf(rsaKey(), "two.test"))
	if err := weak.UsedBy(strict); !errors.As(err, &refused) {
		t.Errorf("UsedBy: %v", err)
	}
	runtime.KeepAlive(strict)
	if _, err := (httptls.Reloaders{}).GetCertificate(nil); err == nil {
		t.Error("no certificate, and no error")
	}
}

// All files are looked at together: a handshake waits for a slow file system once.
func TestReloadersWaitOnce(t *testing.T) {
	rs, files, _ := reloadersOf(t, leaf(ecKey(), "one.test"), leaf(ecKey(), "two.test"))
	next := []*tls.Certificate{leaf(ecKey(), "one.test"), leaf(ecKey(), "two.test")}
	for i := range rs {
		writePairTo(t, next[i], files[i][0], files[i][1])
	}
	hello := &tls.ClientHelloInfo{ServerName: "one.test", SupportedVersions: []uint16{tls.VersionTLS13},
		SignatureSchemes: []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256}}
	cert, err := rs.GetCertificate(hello)
	if err != nil || cert.Leaf.SerialNumber.Cmp(next[0].Leaf.SerialNumber) != 0 {
		t.Errorf("%v, %v", cert.Leaf.SerialNumber, err)
	}
	for _, r := range rs {
		r.Interval = -1 // the next handshake reads no file
	}
	hello.ServerName = "two.test"
	if cert, err = rs.GetCertificate(hello); err != nil || cert.Leaf.SerialNumber.Cmp(next[1].Leaf.SerialNumber) != 0 {
		t.Errorf("the second pair was not looked at with the first: %v, %v", cert.Leaf.SerialNumber, err)
	}
}
