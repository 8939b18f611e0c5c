package httptls_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/httptls"
)

// newAuthority returns an authority of clients, and a client's certificate.
func newAuthority(name string) (ca, client *tls.Certificate) {
	ca = certify(nil, ecKey(), &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	return ca, certify(ca, ecKey(), &x509.Certificate{
		Subject: pkix.Name{CommonName: "client of " + name}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func pemOf(certs ...*tls.Certificate) (text []byte) {
	for _, cert := range certs {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]})...)
	}
	return text
}

// newClientCAs returns a ClientCAReloader that checks its file in each handshake.
func newClientCAs(t *testing.T, cas ...*tls.Certificate) (r *httptls.ClientCAReloader, file string, errs *reported) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "clients.pem")
	writeFile(t, file, pemOf(cas...))
	r, err := httptls.NewClientCAReloader(file)
	if err != nil {
		t.Fatal(err)
	}
	r.Interval = time.Nanosecond
	httptls.SetCAPatience(r, time.Minute) // for busy machines
	errs = new(reported)
	r.OnError = errs.add
	return r, file, errs
}

// serveClientCAs starts a server that requires clients of the authorities, and returns a function
// that requests from it with a client's certificate.
func serveClientCAs(t *testing.T, server *httptls.Server) (visit func(client *tls.Certificate) error) {
	t.Helper()
	if server.TLSConfig == nil {
		server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*serverCert()}, ClientAuth: tls.RequireAndVerifyClientCert}
	}
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Proto, " ", r.TLS.VerifiedChains[0][0].Subject.CommonName)
	})
	server.ErrorLog = discardLog
	l := listen(t)
	go func() { _ = server.ServeTLS(l, "", "") }()
	t.Cleanup(func() { _ = server.Close() })
	return func(client *tls.Certificate) error {
		config := clientConfig()
		config.Certificates = []tls.Certificate{*client}
		transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
		defer transport.CloseIdleConnections()
		resp, err := (&http.Client{Transport: transport}).Get("https://" + l.Addr().String())
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if want := "HTTP/2.0 " + client.Leaf.Subject.CommonName; err == nil && string(body) != want {
			err = fmt.Errorf("answered %q, not %q", body, want)
		}
		return err
	}
}

// A server's authorities of clients follow the file; a bad file changes nothing.
func TestClientCAReloader(t *testing.T) {
	testClientCAReloader(t, &httptls.Server{Server: new(http.Server)})
}

func testClientCAReloader(t *testing.T, server *httptls.Server) {
	caA, clientA := newAuthority("A")
	caB, clientB := newAuthority("B")
	r, file, errs := newClientCAs(t, caA)
	server.ClientCAs = r
	visit := serveClientCAs(t, server)
	expect := func(what string, a, b bool) {
		t.Helper()
		for _, c := range []struct {
			client *tls.Certificate
			good   bool
		}{{clientA, a}, {clientB, b}} {
			if err := visit(c.client); (err == nil) != c.good {
				t.Errorf("%s: %s: %v", what, c.client.Leaf.Subject.CommonName, err)
			}
		}
	}
	expect("A", true, false)
	writeFile(t, file, pemOf(caA, caB))
	expect("A and B", true, true)
	writeFile(t, file, pemOf(caB))
	expect("B", false, true)

	both := pemOf(caA, caB)
	key, err := x509.MarshalPKCS8PrivateKey(caA.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"empty": nil, "text": []byte("A and B"), "half": both[:len(both)*3/4],
		"half a line": both[:len(both)-len("-----\n")], "a key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
		"damaged": slices.Concat(pemOf(caA), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caB.Certificate[0][:100]})),
	} {
		before := errs.count()
		writeFile(t, file, text)
		expect(name, false, true)
		if n := errs.count() - before; n != 1 {
			t.Errorf("%s: reported %d times: %v", name, n, errs.errs[before:])
		}
		if err := r.Reload(); err == nil {
			t.Errorf("%s: Reload returns no error", name)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	expect("no file", false, true)
	if err := r.Reload(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	writeFile(t, file, both)
	expect("A and B, after faults", true, true)
}

// The set follows a symbolic link, as Kubernetes replaces files, and all files are one set.
func TestClientCAReloaderSeveralFiles(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "current")
	caA, clientA := newAuthority("A")
	caB, clientB := newAuthority("B")
	caC, clientC := newAuthority("C")
	old := time.Now().Add(-time.Hour) // the same for all
	for name, cas := range map[string][2]*tls.Certificate{"1": {caA, caB}, "2": {caB, caC}} {
		sub := filepath.Join(dir, name)
		if err := os.Mkdir(sub, 0o700); err != nil {
			t.Fatal(err)
		}
		for i, ca := range cas {
			file := filepath.Join(sub, fmt.Sprint(i))
			writeFile(t, file, pemOf(ca))
			if err := os.Chtimes(file, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	point := func(to string) {
		next := filepath.Join(dir, "next")
		if err := os.Symlink(to, next); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, link); err != nil {
			t.Fatal(err)
		}
	}
	point("1")
	r, err := httptls.NewClientCAReloader(filepath.Join(link, "0"), filepath.Join(link, "1"))
	if err != nil {
		t.Fatal(err)
	}
	r.Interval = time.Nanosecond
	httptls.SetCAPatience(r, time.Minute)
	visit := serveClientCAs(t, &httptls.Server{Server: new(http.Server), ClientCAs: r})
	for _, step := range []struct {
		to   string
		good [3]bool
	}{{"1", [3]bool{true, true, false}}, {"2", [3]bool{false, true, true}}, {"1", [3]bool{true, true, false}}} {
		point(step.to)
		for i, client := range []*tls.Certificate{clientA, clientB, clientC} {
			if err := visit(client); (err == nil) != step.good[i] {
				t.Errorf("%s: %s: %v", step.to, client.Leaf.Subject.CommonName, err)
			}
		}
	}
}

// A client whose authority is no longer trusted is refused, with its session too, as by crypto/tls.
// ossl resumes no session of another set.
func TestClientCAReloaderResumption(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			var want string
			for _, std := range []bool{true, false} {
				caA, clientA := newAuthority("A")
				caB, clientB := newAuthority("B")
				r, file, _ := newClientCAs(t, caA, caB)
				config := r.Config(&tls.Config{
					Certificates: []tls.Certificate{*serverCert()}, ClientAuth: tls.RequireAndVerifyClientCert, MaxVersion: version,
				})
				l, err := tls.Listen("tcp", "127.0.0.1:0", config)
				if !std {
					l, err = ossl.Listen("tcp", "127.0.0.1:0", config)
				}
				if err != nil {
					t.Fatal(err)
				}
				server := &http.Server{Handler: http.HandlerFunc(hello), ErrorLog: discardLog}
				server.SetKeepAlivesEnabled(false)
				go func() { _ = server.Serve(l) }()
				defer server.Close()
				caches := map[*tls.Certificate]tls.ClientSessionCache{}
				var seen []string
				visit := func(step string) {
					for _, client := range []*tls.Certificate{clientA, clientB} {
						if caches[client] == nil {
							caches[client] = tls.NewLRUClientSessionCache(1)
						}
						c := clientConfig()
						c.ServerName, c.Certificates, c.ClientSessionCache = "localhost", []tls.Certificate{*client}, caches[client]
						result := "refused"
						if conn, err := tls.Dial("tcp", l.Addr().String(), c); err == nil {
							_, _ = io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n")
							if answer, err := io.ReadAll(conn); err == nil && strings.HasSuffix(string(answer), "hello") {
								result = fmt.Sprint("resumed ", conn.ConnectionState().DidResume)
							}
							_ = conn.Close()
						}
						seen = append(seen, step+" "+client.Leaf.Subject.CommonName+": "+result)
					}
				}
				visit("first")
				visit("again")
				writeFile(t, file, pemOf(caB))
				visit("without A")
				writeFile(t, file, pemOf(caA, caB))
				visit("with A again")
				got := strings.Join(seen, "\n")
				accepted := strings.NewReplacer("resumed true", "accepted", "resumed false", "accepted").Replace(got)
				if std {
					want = accepted
				} else if accepted != want {
					t.Errorf("got:\n%s\nwith crypto/tls:\n%s", accepted, want)
				}
				for _, line := range []string{
					"again client of A: resumed true", "without A client of A: refused",
					fmt.Sprint("without A client of B: resumed ", std),
					fmt.Sprint("with A again client of A: resumed ", version == tls.VersionTLS13),
				} {
					if !slices.Contains(seen, line) {
						t.Errorf("not %q in:\n%s", line, got)
					}
				}
			}
		})
	}
}

// Handshakes and changes at once: the client that is in both sets is always accepted.
func TestClientCAReloaderDuringHandshakes(t *testing.T) {
	caA, clientA := newAuthority("A")
	caB, _ := newAuthority("B")
	r, file, _ := newClientCAs(t, caA)
	r.OnError = func(error) {} // expected while a file is written
	visit := serveClientCAs(t, &httptls.Server{Server: new(http.Server), ClientCAs: r})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := visit(clientA); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range 30 {
		cas := []*tls.Certificate{caA, caB}[:1+i%2]
		next := file + ".next"
		writeFile(t, next, pemOf(cas...))
		if err := os.Rename(next, file); err != nil {
			t.Fatal(err)
		}
		if err := r.Reload(); err != nil {
			t.Error(err)
		}
		want := x509.NewCertPool()
		for _, ca := range cas {
			want.AddCert(ca.Leaf)
		}
		if !r.Pool().Equal(want) {
			t.Errorf("the pool is not that of the %d authorities in the file", len(cas))
		}
		if err := visit(clientA); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
}

// A program's own GetConfigForClient chooses first, and the authorities are completed.
func TestClientCAReloaderConfig(t *testing.T) {
	caA, clientA := newAuthority("A")
	r, _, _ := newClientCAs(t, caA)
	fail := errors.New("no such client")
	strict := &tls.Config{Certificates: []tls.Certificate{*serverCert()}, ClientAuth: tls.RequireAndVerifyClientCert}
	config := r.Config(&tls.Config{
		Certificates: []tls.Certificate{*serverCert()},
		GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			switch h.ServerName {
			case "strict.test":
				return strict, nil
			case "none.test":
				return nil, fail
			}
			return nil, nil
		},
	})
	l, err := ossl.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	server := &httptls.Server{Server: &http.Server{Handler: http.HandlerFunc(hello), ErrorLog: discardLog}}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	for _, test := range []struct {
		name   string
		client *tls.Certificate
		good   bool
	}{{"strict.test", clientA, true}, {"strict.test", nil, false}, {"none.test", clientA, false}, {"other.test", nil, true}} {
		c := &tls.Config{InsecureSkipVerify: true, ServerName: test.name}
		if test.client != nil {
			c.Certificates = []tls.Certificate{*test.client}
		}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true}}
		resp, err := client.Get("https://" + l.Addr().String())
		if err == nil {
			_ = resp.Body.Close()
		}
		if (err == nil) != test.good {
			t.Errorf("%s, %v: %v", test.name, test.client != nil, err)
		}
	}
	if strict.ClientCAs != nil {
		t.Error("the program's configuration was changed")
	}
}

func TestClientCAReloaderErrors(t *testing.T) {
	if _, err := httptls.NewClientCAReloader(); err == nil {
		t.Error("without files")
	}
	if _, err := httptls.NewClientCAReloader("/nonexistent"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	ca, _ := newAuthority("A")
	r, _, _ := newClientCAs(t, ca)
	cert := []tls.Certificate{*serverCert()}
	for name, config := range map[string]*tls.Config{
		"two sets":        {Certificates: cert, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool()},
		"no verification": {Certificates: cert, ClientAuth: tls.RequireAnyClientCert},
	} {
		server := &httptls.Server{Server: &http.Server{TLSConfig: config}, ClientCAs: r}
		var refused *ossl.ConfigError
		if err := server.ServeTLS(listen(t), "", ""); !errors.As(err, &refused) || refused.Field != "httptls.Server.ClientCAs" {
			t.Errorf("%s: %v", name, err)
		}
	}
	l, err := ossl.Listen("tcp", "127.0.0.1:0", serverConfig())
	if err != nil {
		t.Fatal(err)
	}
	var refused *ossl.ConfigError
	if err := (&httptls.Server{Server: new(http.Server), ClientCAs: r}).Serve(l); !errors.As(err, &refused) {
		t.Errorf("a listener of its own: %v", err)
	}
}
