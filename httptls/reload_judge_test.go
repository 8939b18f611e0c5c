package httptls_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/httptls"
)

// newReloader returns a Reloader that checks its files in each handshake, and the list of the
// errors that it reports.
func newReloader(t *testing.T, cert *tls.Certificate) (r *httptls.Reloader, certFile, keyFile string, errs *reported) {
	t.Helper()
	certFile, keyFile = writePair(t, cert)
	r, err := httptls.NewReloader(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	r.Interval = time.Nanosecond
	httptls.SetPatience(r, time.Minute) // for busy machines
	errs = new(reported)
	r.OnError = errs.add
	return r, certFile, keyFile, errs
}

// gives returns the certificate that r returns in a handshake.
func gives(t *testing.T, r *httptls.Reloader) int64 {
	t.Helper()
	cert, err := r.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	return cert.Leaf.SerialNumber.Int64()
}

func expectCert(t *testing.T, r *httptls.Reloader, want *tls.Certificate, why string) {
	t.Helper()
	if got := gives(t, r); got != want.Leaf.SerialNumber.Int64() {
		t.Errorf("%s: certificate %d is given, not %d", why, got, want.Leaf.SerialNumber)
	}
}

// shakeWith returns the error of a handshake between ctx's server and crypto/tls's client.
func shakeWith(ctx *ossl.Context) error {
	l, err := ctx.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	served := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			err = conn.(*ossl.Conn).Handshake()
			_ = conn.Close()
		}
		served <- err
	}()
	conn, err := tls.Dial("tcp", l.Addr().String(), clientConfig())
	if err == nil {
		defer conn.Close()
	}
	return errors.Join(err, <-served)
}

// The server that uses a pair checks it, since its requirements may be stricter than the defaults.
func TestReloaderTriesPairAsServer(t *testing.T) {
	strong, weak := leaf(ecKey()), leaf(rsaKey()) // for security level 3
	start := map[string]func(t *testing.T, r *httptls.Reloader) func() error{
		"Server": func(t *testing.T, r *httptls.Reloader) func() error {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			server := &httptls.Server{
				Server:  &http.Server{TLSConfig: &tls.Config{GetCertificate: r.GetCertificate}},
				Options: []ossl.Option{ossl.WithSecurityLevel(3)},
			}
			go func() { _ = server.ServeTLS(l, "", "") }()
			t.Cleanup(func() { _ = server.Close() })
			return func() error {
				conn, err := tls.Dial("tcp", l.Addr().String(), clientConfig())
				if err == nil {
					err = conn.Close()
				}
				return err
			}
		},
		"Context": func(t *testing.T, r *httptls.Reloader) func() error {
			ctx, err := ossl.NewContext(&tls.Config{GetCertificate: r.GetCertificate}, ossl.WithSecurityLevel(3))
			if err != nil {
				t.Fatal(err)
			}
			return func() error { return shakeWith(ctx) }
		},
		"chosen Context": func(t *testing.T, r *httptls.Reloader) func() error {
			chosen := &tls.Config{
				GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) { return r.GetCertificate(h) },
				MaxVersion:     tls.VersionTLS12,
				CipherSuites:   []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
			}
			ctx, err := ossl.NewContext(&tls.Config{
				GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return chosen, nil },
			})
			if err != nil {
				t.Fatal(err)
			}
			return func() error { return shakeWith(ctx) }
		},
	}
	for name, start := range start {
		t.Run(name, func(t *testing.T) {
			r, certFile, keyFile, errs := newReloader(t, strong)
			connect := start(t, r)
			if err := connect(); err != nil {
				t.Fatal(err)
			}
			writePairTo(t, weak, certFile, keyFile)
			for range 3 {
				if err := connect(); err != nil {
					t.Errorf("a pair that the server can't use is used: %v", err)
				}
			}
			if n := errs.count(); n != 1 {
				t.Errorf("it is reported %d times: %v", n, errs.errs)
			}
			var e *ossl.ConfigError
			if err := r.Reload(); !errors.As(err, &e) {
				t.Errorf("Reload: %v", err)
			}
			next := leaf(ecKey())
			writePairTo(t, next, certFile, keyFile)
			if err := connect(); err != nil {
				t.Error(err)
			}
			expectCert(t, r, next, "a good pair")
		})
	}
}

// With UsedBy a Context checks pairs before its first handshake.
func TestReloaderUsedBy(t *testing.T) {
	ec, rsa := leaf(ecKey()), leaf(rsaKey())
	r, certFile, keyFile, _ := newReloader(t, ec)
	strict, err := ossl.NewContext(nil, ossl.WithSecurityLevel(3))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.UsedBy(strict); err != nil {
		t.Error(err)
	}
	writePairTo(t, rsa, certFile, keyFile)
	if err := r.Reload(); err == nil {
		t.Error("a pair that a Context can't use is used")
	}
	expectCert(t, r, ec, "refused")

	// A Context that can't use the current pair doesn't count, unless it is the only one.
	r, certFile, keyFile, _ = newReloader(t, rsa)
	var e *ossl.ConfigError
	if err := r.UsedBy(strict); !errors.As(err, &e) {
		t.Errorf("UsedBy: %v", err)
	}
	next := leaf(rsaKey())
	writePairTo(t, next, certFile, keyFile)
	if err := r.Reload(); err == nil {
		t.Error("a pair that the only Context can't use is used")
	}
	lax, err := ossl.NewContext(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.UsedBy(lax); err != nil {
		t.Error(err)
	}
	if err := r.Reload(); err != nil {
		t.Error(err)
	}
	expectCert(t, r, next, "a renewal that one of two Contexts can use, as before")
	runtime.KeepAlive(strict)
	runtime.KeepAlive(lax)
}

// dated returns a certificate like another, with other dates.
func dated(notBefore, notAfter time.Time) *tls.Certificate {
	return certify(authority(), ecKey(), &x509.Certificate{Subject: pkix.Name{CommonName: "dated"}, NotBefore: notBefore,
		NotAfter: notAfter, KeyUsage: x509.KeyUsageDigitalSignature})
}

// A pair that is not valid now doesn't replace a valid one, until this changes.
func TestReloaderDates(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	var clock atomic.Pointer[time.Time]
	set := func(at time.Time) { clock.Store(&at) }
	hour := time.Hour
	good := dated(now.Add(-hour), now.Add(10*hour))
	r, certFile, keyFile, errs := newReloader(t, good)
	set(now)
	httptls.SetClock(r, func() time.Time { return *clock.Load() })

	refused := func(cert *tls.Certificate, why string) {
		t.Helper()
		before := errs.count()
		writePairTo(t, cert, certFile, keyFile)
		for range 3 {
			set(clock.Load().Add(time.Second))
			expectCert(t, r, good, why)
		}
		if n := errs.count() - before; n != 1 {
			t.Errorf("%s: reported %d times: %v", why, n, errs.errs)
		}
		var invalid x509.CertificateInvalidError
		if err := r.Reload(); !errors.As(err, &invalid) || invalid.Reason != x509.Expired {
			t.Errorf("%s: %v", why, err)
		}
		expectCert(t, r, good, why)
	}
	refused(dated(now.Add(-10*hour), now.Add(-hour)), "expired")
	early := dated(now.Add(2*hour), now.Add(20*hour))
	refused(early, "not yet valid")
	settle(t, certFile, keyFile)
	expectCert(t, r, good, "not yet valid, and settled")
	before := errs.count()
	set(now.Add(3 * hour))
	expectCert(t, r, early, "its time has come")
	if n := errs.count() - before; n != 0 {
		t.Errorf("reported %d times", n)
	}

	// If neither is valid, the one in the files is used.
	good = early
	next := dated(now.Add(30*hour), now.Add(40*hour))
	refused(next, "not yet valid")
	settle(t, certFile, keyFile)
	expectCert(t, r, good, "not yet valid, and settled")
	set(now.Add(21 * hour))
	expectCert(t, r, next, "the one before has expired")
}

// settle sets the times of the files back far enough to be trusted.
func settle(t *testing.T, names ...string) {
	t.Helper()
	at := time.Now().Add(-time.Hour)
	for _, name := range names {
		if err := os.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
	}
}

// A Reloader starts with an expired certificate, as crypto/tls's servers do.
func TestReloaderStartsWithExpired(t *testing.T) {
	expired := dated(time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour))
	r, certFile, keyFile, errs := newReloader(t, expired)
	expectCert(t, r, expired, "all there is")
	next := dated(time.Now().Add(-2*time.Hour), time.Now().Add(time.Hour))
	writePairTo(t, next, certFile, keyFile)
	if err := r.Reload(); err != nil {
		t.Error(err)
	}
	expectCert(t, r, next, "renewed")
	if errs.count() != 0 {
		t.Error(errs.errs)
	}
}

// A chain that is only half written is not mistaken for a shorter one.
func TestReloaderHalfWrittenChain(t *testing.T) {
	issuer := certify(authority(), ecKey(), &x509.Certificate{Subject: pkix.Name{CommonName: "an intermediate"},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	cert := leaf(ecKey())
	r, certFile, keyFile, errs := newReloader(t, cert)
	renewed := leaf(ecKey())
	leafPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: renewed.Certificate[0]})
	issuerPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: issuer.Certificate[0]})
	writePairTo(t, renewed, "", keyFile)
	for _, n := range []int{len("-----BEGIN CERTIFICATE-----"), len(issuerPEM) / 2, len(issuerPEM) - len("-----\n")} {
		writeFile(t, certFile, slices.Concat(leafPEM, issuerPEM[:n]))
		if err := r.Reload(); err == nil {
			t.Errorf("a chain whose second certificate is cut after %d bytes is used", n)
		}
		expectCert(t, r, cert, "half written")
	}
	writeFile(t, certFile, slices.Concat(leafPEM, issuerPEM))
	if got, _ := r.GetCertificate(nil); len(got.Certificate) != 2 || gives(t, r) != renewed.Leaf.SerialNumber.Int64() {
		t.Errorf("whole: a chain of %d", len(got.Certificate))
	}
	if errs.count() > 1 {
		t.Errorf("reported %d times", errs.count())
	}
}

// A Context whose configuration GetConfigForClient has not returned for a long time is freed, and
// can't check pairs. It must not prevent a renewal.
func TestReloaderPassesOverFreedContext(t *testing.T) {
	first, next := leaf(ecKey()), leaf(ecKey())
	r, certFile, keyFile, _ := newReloader(t, first)
	var used *ossl.Context // kept, so that the Reloader still knows it
	byReloader := &tls.Config{GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
		used = ossl.ContextOf(h)
		return r.GetCertificate(h)
	}}
	chosen := byReloader
	ctx, err := ossl.NewContext(&tls.Config{
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return chosen, nil },
	}, ossl.WithConfigurationCache(1<<20))
	if err != nil {
		t.Fatal(err)
	}
	if err := shakeWith(ctx); err != nil {
		t.Fatal(err)
	}
	for i := 0; !errors.Is(used.CheckCertificate(first), net.ErrClosed); i++ {
		if i == 1000 {
			t.Fatal("the Context is not freed")
		}
		chosen = &tls.Config{
			Certificates:     []tls.Certificate{*first},
			VerifyConnection: func(tls.ConnectionState) error { _ = i; return nil }, // a different one each time
		}
		if err := shakeWith(ctx); err != nil {
			t.Fatal(err)
		}
	}
	writePairTo(t, next, certFile, keyFile)
	if err := r.Reload(); err != nil {
		t.Error(err)
	}
	expectCert(t, r, next, "after Reload")
	runtime.KeepAlive(used)
}
