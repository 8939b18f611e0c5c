package httptls_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ossl-go/ossl/httptls"
)

// servedSerial returns the serial number of the certificate in a new handshake.
func servedSerial(t *testing.T, addr string) int64 {
	t.Helper()
	conn, err := tls.Dial("tcp", addr, clientConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// reported collects the errors of a Reloader.
type reported struct {
	mu   sync.Mutex
	errs []error
}

func (r *reported) add(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, err)
}

func (r *reported) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.errs)
}

func serveReloader(t *testing.T, r *httptls.Reloader) *running {
	config := &tls.Config{GetCertificate: r.GetCertificate, SessionTicketsDisabled: true}
	return openSSL.start(t, &http.Server{TLSConfig: config, Handler: http.HandlerFunc(hello)})
}

func TestReload(t *testing.T) {
	first, second := leaf(ecKey()), leaf(rsaKey())
	certFile, keyFile := writePair(t, first)
	r, err := httptls.NewReloader(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	r.Interval = -1 // by Reload only
	s := serveReloader(t, r)
	open, err := tls.Dial("tcp", s.addr, clientConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()

	expect := func(want *tls.Certificate) {
		t.Helper()
		if got := servedSerial(t, s.addr); got != want.Leaf.SerialNumber.Int64() {
			t.Errorf("certificate %d is served, not %d", got, want.Leaf.SerialNumber)
		}
	}
	expect(first)
	writePairTo(t, second, certFile, keyFile)
	expect(first)
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	expect(second)

	// An existing connection continues.
	_, _ = io.WriteString(open, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	if answer, err := io.ReadAll(open); err != nil || !strings.HasSuffix(string(answer), "hello") {
		t.Errorf("%q, %v", answer, err)
	}

	// An unusable pair is refused each time it is tried, and the previous pair stays.
	writePairTo(t, leaf(ecKey()), "", keyFile)
	for range 2 {
		if err := r.Reload(); err == nil || !strings.Contains(err.Error(), "does not match") && !strings.Contains(err.Error(), "type") {
			t.Errorf("a key that doesn't match: %v", err)
		}
	}
	expect(second)
	for name, content := range map[string]string{"empty": "", "no PEM": "nothing", "half": "-----BEGIN CERTIFICATE-----\nMIIB"} {
		writeFile(t, certFile, []byte(content))
		if err := r.Reload(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	_ = os.Remove(certFile)
	if err := r.Reload(); !os.IsNotExist(unwrapAll(err)) {
		t.Errorf("no file: %v", err)
	}
	expect(second)
	writePairTo(t, first, certFile, keyFile)
	if err := r.Reload(); err != nil {
		t.Error(err)
	}
	expect(first)
}

func unwrapAll(err error) error {
	for {
		inner, ok := err.(interface{ Unwrap() error })
		if !ok || inner.Unwrap() == nil {
			return err
		}
		if _, isPath := err.(*os.PathError); isPath {
			return err
		}
		err = inner.Unwrap()
	}
}

// A Reloader follows the files by itself: replaced by renaming, as tools do, and by a symbolic
// link, as Kubernetes does.
func TestReloaderFollowsFiles(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "current")
	certs := []*tls.Certificate{leaf(ecKey()), leaf(ecKey()), leaf(ecKey())}
	old := time.Now().Add(-time.Hour) // the same for all, as archives restore files
	for i, cert := range certs {
		sub := filepath.Join(dir, string(rune('a'+i)))
		if err := os.Mkdir(sub, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"cert.pem", "key.pem"} {
			writePairTo(t, cert, filepath.Join(sub, "cert.pem"), filepath.Join(sub, "key.pem"))
			if err := os.Chtimes(filepath.Join(sub, name), old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	point := func(to string) {
		t.Helper()
		next := filepath.Join(dir, "next")
		if err := os.Symlink(to, next); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, link); err != nil {
			t.Fatal(err)
		}
	}
	point("a")
	r, err := httptls.NewReloader(filepath.Join(link, "cert.pem"), filepath.Join(link, "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	r.Interval = time.Nanosecond
	httptls.SetPatience(r, time.Minute) // for busy machines
	var errs reported
	r.OnError = errs.add
	s := serveReloader(t, r)
	for i, name := range []string{"a", "b", "c", "b"} {
		if i > 0 {
			point(name)
		}
		if got := servedSerial(t, s.addr); got != certs[name[0]-'a'].Leaf.SerialNumber.Int64() {
			t.Errorf("%s: certificate %d is served", name, got)
		}
	}

	// One file after the other: the mismatch is reported once, not for each handshake, and the new
	// pair is used in the end.
	last := certs[0]
	writePairTo(t, last, filepath.Join(dir, "b", "cert.pem"), "")
	for range 5 {
		if got := servedSerial(t, s.addr); got != certs[1].Leaf.SerialNumber.Int64() {
			t.Errorf("certificate %d is served with another one's key", got)
		}
	}
	if errs.count() != 1 {
		t.Errorf("reported %d times: %v", errs.count(), errs.errs)
	}
	writePairTo(t, last, "", filepath.Join(dir, "b", "key.pem"))
	if got := servedSerial(t, s.addr); got != last.Leaf.SerialNumber.Int64() {
		t.Errorf("certificate %d is served in the end", got)
	}
}

// A key that OpenSSL considers weak is refused, though crypto/tls would use it.
func TestReloadWeakKey(t *testing.T) {
	strong := leaf(ecKey())
	certFile, keyFile := writePair(t, strong)
	r, err := httptls.NewReloader(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	r.Interval = -1
	writePairTo(t, leaf(weakKey(t)), certFile, keyFile)
	if err := r.Reload(); err == nil {
		t.Error("a key of 1024 bits is used")
	}
	s := serveReloader(t, r)
	if got := servedSerial(t, s.addr); got != strong.Leaf.SerialNumber.Int64() {
		t.Errorf("certificate %d is served", got)
	}
}

// Handshakes and reloads at once: each handshake gets one pair or the other, never a mixture.
func TestReloadDuringHandshakes(t *testing.T) {
	a, b := leaf(ecKey()), leaf(ecKey())
	certFile, keyFile := writePair(t, a)
	r, err := httptls.NewReloader(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	r.Interval = time.Nanosecond
	r.OnError = func(error) {} // expected while one file is written and the other is not yet
	s := serveReloader(t, r)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				conn, err := tls.Dial("tcp", s.addr, clientConfig())
				if err != nil {
					t.Error(err)
					return
				}
				_ = conn.Close()
			}
		})
	}
	for i := range 30 {
		writePairTo(t, []*tls.Certificate{a, b}[i%2], certFile, keyFile)
		_ = r.Reload()
		_ = servedSerial(t, s.addr)
	}
	close(stop)
	wg.Wait()
}

func TestNewReloaderErrors(t *testing.T) {
	certFile, keyFile := writePair(t, leaf(ecKey()))
	if _, err := httptls.NewReloader(keyFile, certFile); err == nil {
		t.Error("the files were taken the wrong way round")
	}
	if _, err := httptls.NewReloader(certFile, certFile+".none"); err == nil {
		t.Error("no key")
	}
}
