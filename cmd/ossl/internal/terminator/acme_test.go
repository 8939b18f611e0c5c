package terminator_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/asn1"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// nowhere is the directory of an authority that can't be reached.
const nowhere = "https://127.0.0.1:1/dir"

// acmeConfig returns a configuration with ACME, whose authority is down, and the folder of the storage for it.
func acmeConfig(w *world, engine string, sites ...terminator.Site) (*terminator.Config, string) {
	for i := range sites {
		sites[i].ACME = true
	}
	c := &terminator.Config{Listen: []string{"127.0.0.1:0"}, Engine: engine, Sites: sites, Limits: terminator.DefaultLimits(),
		AccessLog: true, ACME: terminator.ACME{Directory: nowhere, Storage: filepath.Join(w.dir, "state", "acme")}}
	return c, filepath.Join(c.ACME.Storage, "127.0.0.1-1-dir")
}

// stored returns the contents of a file of the storage with a certificate.
func (w *world) stored(names ...string) string {
	w.t.Helper()
	pair := w.pair(false, names...)
	var text []byte
	for _, name := range []string{pair.Key, pair.Cert} {
		part, err := os.ReadFile(name)
		if err != nil {
			w.t.Fatal(err)
		}
		text = append(text, part...)
	}
	return string(text)
}

// TestACMESettings: settings that can't be honoured are refused by name.
func TestACMESettings(t *testing.T) {
	type (
		config = terminator.Config
		site   = terminator.Site
	)
	for want, change := range map[string]func(c *config, s *site){
		"":                                    func(*config, *site) {},
		"acme-email needs a site with acme":   func(c *config, s *site) { s.ACME, c.ACME.Email = false, "a@b.test" },
		"acme-agree needs a site with acme":   func(c *config, s *site) { s.ACME, c.ACME = false, terminator.ACME{Agree: true} },
		"either acme or a certificate":        func(_ *config, s *site) { s.Pairs = []terminator.Pair{{Cert: "c", Key: "k"}} },
		"acme needs the site's names":         func(_ *config, s *site) { s.Names = nil },
		`"*.a.test" stands for many names`:    func(_ *config, s *site) { s.Names = []string{"b.test", "*.a.test"} },
		`"*" stands for many names`:           func(_ *config, s *site) { s.Names = []string{"*"} },
		`"127.0.0.1" is an address`:           func(_ *config, s *site) { s.Names = []string{"127.0.0.1"} },
		`"a..test" is not a DNS name`:         func(_ *config, s *site) { s.Names = []string{"a..test"} },
		`acme-directory "http://a.test/"`:     func(c *config, _ *site) { c.ACME.Directory = "http://a.test/" },
		"acme-agree is missing: Let's Encry":  func(c *config, _ *site) { c.ACME.Directory = "" },
		"acme-eab-id and acme-eab-key":        func(c *config, _ *site) { c.ACME.EABID = "x" },
		`acme-email "b.test" is not`:          func(c *config, _ *site) { c.ACME.Email = "b.test" },
		"acme can't be used in FIPS mode":     func(c *config, _ *site) { c.FIPS = true },
		"acme-storage is missing: with user,": func(c *config, _ *site) { c.ACME.Storage, c.User = "", "nobody" },
	} {
		c := &terminator.Config{Listen: []string{"127.0.0.1:0"}, Engine: "ossl", Limits: terminator.DefaultLimits(),
			Sites: []terminator.Site{{Root: ".", Names: []string{"a.test"}, ACME: true}},
			ACME:  terminator.ACME{Directory: nowhere, Storage: "s"}}
		change(c, &c.Sites[0])
		if !c.Sites[0].ACME {
			c.Sites[0].Pairs = []terminator.Pair{{Cert: "c", Key: "k"}}
		}
		if c.User != "" && runtime.GOOS == "windows" {
			continue
		}
		if err := c.Check(); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}

	t.Setenv("STATE_DIRECTORY", "/var/lib/ossl:/var/lib/other")
	c := &terminator.Config{Listen: []string{"127.0.0.1:0"}, Engine: "ossl", Limits: terminator.DefaultLimits(),
		Sites: []terminator.Site{{Root: ".", Names: []string{"a.test"}, ACME: true}}, ACME: terminator.ACME{Agree: true}}
	err := c.Check()
	if a := c.ACME; err != nil || a.Storage != "/var/lib/ossl/acme" || a.Directory != terminator.DefaultACMEDirectory {
		t.Errorf("defaults: %+v, %v", c.ACME, err)
	}
}

// TestACMEFile: the keys of a configuration file.
func TestACMEFile(t *testing.T) {
	c, err := terminator.ParseFile([]byte(`listen = ["127.0.0.1:0"]
acme-directory = "https://ca.test/dir"
acme-email = "a@a.test"
acme-roots = "roots.pem"
acme-storage = "/s"
acme-agree = true
acme-eab-id = "kid"
acme-eab-key = "eab"
[[site]]
names = ["a.test"]
acme = true
root = "."
`))
	if err != nil {
		t.Fatal(err)
	}
	want := terminator.ACME{Email: "a@a.test", Directory: "https://ca.test/dir", Roots: "roots.pem", Storage: "/s", Agree: true,
		EABID: "kid", EABKey: "eab"}
	if c.ACME != want || !c.Sites[0].ACME {
		t.Errorf("%+v, %v", c.ACME, c.Sites[0].ACME)
	}
}

// TestACMEStored: while the authority is down, a certificate in the storage is served, and a site without one
// fails in the handshake until it is there.
func TestACMEStored(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, engine string) {
		w := newWorld(t)
		root := w.folder(map[string]string{"index.html": "x"})
		c, folder := acmeConfig(w, engine, terminator.Site{Root: root, Names: []string{"a.test"}},
			terminator.Site{Root: root, Names: []string{"b.test", "c.test"}})
		certificates := filepath.Join(folder, "certificates")
		if err := os.MkdirAll(certificates, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(c.ACME.Storage, 0o700); err != nil {
			t.Fatal(err)
		}
		w.write(filepath.Join(certificates, "a.test.pem"), w.stored("a.test"))
		job := strings.TrimSuffix(filepath.Base(c.ACMEFile(&c.Sites[1])), ".pem")
		for kind, key := range map[string]string{"tls-alpn-01": "c.test", "http-01": "token"} { // of a process that was killed
			if err := os.Mkdir(filepath.Join(folder, kind), 0o700); err != nil {
				t.Fatal(err)
			}
			pose(t, w, folder, kind, key, "c.test token.thumb "+job)
			pose(t, w, folder, kind, "a.test", "c.test token.thumb other") // of a server with other names
		}
		r := w.start(c)
		to := func(name string) error {
			conn, err := r.dial(func(c *tls.Config) { c.ServerName = name })
			_ = conn.Close()
			return err
		}
		if err := to("a.test"); err != nil {
			t.Error(err)
		}
		r.log.await(t, "no certificate yet", "site=b.test")
		r.log.await(t, "acme: no certificate", "site=b.test", "connect", "again in")
		for _, kind := range []string{"tls-alpn-01", "http-01"} {
			if left, err := os.ReadDir(filepath.Join(folder, kind)); err != nil || len(left) != 1 || left[0].Name() != "a.test" {
				t.Errorf("answers to former challenges are left: %v, %v", left, err)
			}
		}
		if err := to("c.test"); err == nil {
			t.Error("a handshake without a certificate")
		}
		r.log.await(t, "handshake", "the site has no certificate yet")
		if strings.Contains(r.log.String(), `acme: no certificate" site=a.test`) {
			t.Error("a certificate that isn't due is ordered")
		}
		w.write(c.ACMEFile(&c.Sites[1]), w.stored("b.test", "c.test"))
		for end := time.Now().Add(patience); to("c.test") != nil; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the certificate isn't served")
			}
		}
		if status, body := get(t, r.client(true, nil), "https://b.test/"); status != http.StatusOK || body != "x" {
			t.Errorf("%d: %s", status, body)
		}
	})
}

// TestACMEFiles: sites with other names have other files, in whatever order their names are.
func TestACMEFiles(t *testing.T) {
	c := &terminator.Config{ACME: terminator.ACME{Directory: nowhere, Storage: "s"}}
	file := func(names ...string) string { return filepath.Base(c.ACMEFile(&terminator.Site{Names: names})) }
	a, ab, ba, ac := file("a.test"), file("a.test", "b.test"), file("b.test", "a.test"), file("a.test", "c.test")
	if a != "a.test.pem" || ab != ba || ab == a || ab == ac || !strings.HasPrefix(ab, "a.test+") {
		t.Error(a, ab, ba, ac)
	}
}

// pose puts an answer to a challenge into the storage of a server.
func pose(t *testing.T, w *world, folder, kind, key, text string) {
	t.Helper()
	w.write(filepath.Join(folder, kind, key), text)
}

// TestACMEChallengeTLS: a handshake that offers only acme-tls/1 gets the answer to a challenge,
// without a client certificate, and nothing else: the server closes the connection. All other
// handshakes are as without a challenge.
func TestACMEChallengeTLS(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		for _, kind := range []string{"HTTP", "TCP"} {
			t.Run(kind, func(t *testing.T) {
				w := newWorld(t)
				backend := listen(t)
				site := terminator.Site{Names: []string{"a.test"}, ClientCA: []string{filepath.Join(w.dir, "ca", "ca.pem")},
					ClientAllow: []string{"dns:client.test"}}
				if kind == "TCP" {
					site.Backend.To = backend.Addr().String()
				} else {
					site.Root = w.folder(map[string]string{"index.html": "x"})
				}
				c, folder := acmeConfig(w, engine, site)
				other := site
				other.Names, other.Pairs, other.ACME = []string{"b.test"}, []terminator.Pair{w.pair(false, "b.test")}, false
				c.Sites = append(c.Sites, other)
				r := w.start(c)
				w.write(filepath.Join(folder, "certificates", "a.test.pem"), w.stored("a.test"))
				client := w.certificates(w.pair(true, "client.test"))
				dial := func(name string, with bool, protocols ...string) (*tls.Conn, error) {
					return r.dial(func(c *tls.Config) {
						c.ServerName, c.NextProtos, c.InsecureSkipVerify = name, protocols, true
						if with {
							c.Certificates = client
						}
					})
				}
				for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) { // until it is served
					if _, err := dial("a.test", true); err == nil {
						break
					} else if time.Now().After(end) {
						t.Fatal(err)
					}
				}
				if kind == "TCP" {
					_ = accept(t, backend).Close()
				}

				refused := func(name string) {
					t.Helper()
					if conn, err := dial(name, true, "acme-tls/1"); err == nil {
						t.Errorf("without a challenge for %s: %s", name, conn.ConnectionState().PeerCertificates[0].Subject)
					}
				}
				refused("a.test")
				pose(t, w, folder, "tls-alpn-01", "a.test", "a.test token.thumb other")
				pose(t, w, folder, "tls-alpn-01", "b.test", "b.test token.thumb other")
				refused("b.test")
				refused("c.test")
				for range 2 {
					conn, err := dial("A.test", false, "acme-tls/1")
					if err != nil {
						t.Fatal(err)
					}
					cert := conn.ConnectionState().PeerCertificates[0]
					id := asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 31} // RFC 8737, section 6.1
					if !slices.Equal(cert.DNSNames, []string{"a.test"}) || !slices.ContainsFunc(cert.UnhandledCriticalExtensions,
						func(e asn1.ObjectIdentifier) bool { return e.Equal(id) }) {
						t.Errorf("%q with %v", cert.DNSNames, cert.UnhandledCriticalExtensions)
					}
					_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
					if text, err := io.ReadAll(conn); len(text) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
						t.Errorf("the connection is served: %q, %v", text, err)
					}
				}
				config, err := terminator.ChallengeConfigs(c)(&tls.ClientHelloInfo{ServerName: "a.test"})
				if err != nil {
					t.Fatal(err)
				}
				for protocol, want := range map[string]bool{"acme-tls/1": true, "http/1.1": false, "": false} { // of a second ClientHello
					if err := config.VerifyConnection(tls.ConnectionState{NegotiatedProtocol: protocol}); (err == nil) != want {
						t.Errorf("the handshake of a challenge goes on with %q: %v", protocol, err)
					}
				}
				for _, protocols := range [][]string{{"acme-tls/1", "http/1.1"}, {"http/1.1", "acme-tls/1"}, {"http/1.1"}, nil} {
					if conn, err := dial("a.test", false, protocols...); err == nil { // with TLS 1.3 the demand comes after the handshake
						if text, err := io.ReadAll(conn); err == nil {
							t.Errorf("%q without a certificate: %q", protocols, text)
						}
					}
					conn, err := dial("a.test", true, protocols...)
					if err != nil {
						t.Fatal(err)
					}
					if got := conn.ConnectionState().NegotiatedProtocol; got == "acme-tls/1" {
						t.Errorf("%q: %q", protocols, got)
					}
					if kind == "TCP" {
						_ = accept(t, backend).Close() // and so no challenge has reached it before
					} else {
						write(t, conn, "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
						if text, _ := io.ReadAll(conn); !bytes.Contains(text, []byte("200 OK")) {
							t.Errorf("%q: %q", protocols, text)
						}
					}
				}
				if err := os.Remove(filepath.Join(folder, "tls-alpn-01", "a.test")); err != nil {
					t.Fatal(err)
				}
				refused("a.test")
			})
		}
	})
}

// TestACMEChallengeHTTP: the plain listener answers for exactly the token and the name of a challenge.
func TestACMEChallengeHTTP(t *testing.T) {
	w := newWorld(t)
	c, folder := acmeConfig(w, "ossl", terminator.Site{Names: []string{"a.test"}, Root: w.folder(nil)},
		terminator.Site{Names: []string{"e.test"}, Root: w.folder(nil)})
	c.Sites = append(c.Sites, terminator.Site{Names: []string{"b.test", "*.c.test"}, Root: w.folder(nil),
		Pairs: []terminator.Pair{w.pair(false, "b.test")}})
	socket := shortFolder(t) + "/s"
	c.Redirect, c.RedirectPort = []string{"unix:" + socket}, 443
	r := w.start(c)
	pose(t, w, folder, "http-01", "T0-k_n", "a.test T0-k_n.thumb other")
	pose(t, w, folder, "http-01", "none", "a.test other.thumb other")
	pose(t, w, folder, "tls-alpn-01", "a.test", "a.test a.thumb other")
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}}}
	for _, test := range []struct {
		method, host, path string
		status             int
		body               string
	}{
		{"GET", "a.test", "/.well-known/acme-challenge/T0-k_n", 200, "T0-k_n.thumb"},
		{"GET", "A.TEST.:80", "/.well-known/acme-challenge/T0-k_n", 200, "T0-k_n.thumb"},
		{"HEAD", "a.test", "/.well-known/acme-challenge/T0-k_n", 200, ""},
		{"POST", "a.test", "/.well-known/acme-challenge/T0-k_n", 308, ""},
		{"GET", "a.test", "/.well-known/acme-challenge/T0-k_", 404, "404 not found\n"},
		{"GET", "a.test", "/.well-known/acme-challenge/T0-k_n2", 404, "404 not found\n"},
		{"GET", "a.test", "/.well-known/acme-challenge/t0-k_n", 404, "404 not found\n"},
		{"GET", "a.test", "/.well-known/acme-challenge/none", 404, "404 not found\n"},
		{"GET", "a.test", "/.well-known/acme-challenge/", 404, "404 not found\n"},
		{"GET", "a.test", "/.well-known/acme-challenge/..%2Ftls-alpn-01%2Fa.test", 404, "404 not found\n"},
		{"GET", "a.test", "/.well-known/acme-challenge/T0-k_n/", 404, "404 not found\n"},
		{"GET", "e.test", "/.well-known/acme-challenge/T0-k_n", 404, "404 not found\n"},
		{"GET", "a.test", "/x/.well-known/acme-challenge/T0-k_n", 301, ""},
		{"GET", "b.test", "/.well-known/acme-challenge/T0-k_n", 301, ""},
		{"GET", "d.test", "/.well-known/acme-challenge/T0-k_n", 421, "421 misdirected request\n"},
	} {
		request, err := http.NewRequest(test.method, "http://"+test.host+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != test.status || string(body) != test.body {
			t.Errorf("%s %s%s: %d, %q, want %d, %q", test.method, test.host, test.path, resp.StatusCode, body, test.status, test.body)
		}
	}
	r.log.await(t, "msg=redirect", "path=/.well-known/acme-challenge/T0-k_n", "status=200")
}

// TestACMEStorage: the storage is made with access for its user alone, and one that others may enter, or that is
// served, is refused.
func TestACMEStorage(t *testing.T) {
	w := newWorld(t)
	c, _ := acmeConfig(w, "ossl", terminator.Site{Names: []string{"a.test"}, Root: w.folder(nil)})
	r := w.start(c)
	checkStorage(t, c.ACME.Storage)
	refused := func(want string, change func(c *terminator.Config)) {
		t.Helper()
		changed := *c
		changed.Sites = slices.Clone(c.Sites)
		change(&changed)
		log := slog.New(slog.DiscardHandler)
		if s, err := terminator.Start(t.Context(), &changed, log, log); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a start: %v, want %q", err, want)
			if err == nil {
				s.Drain(t.Context())
			}
		}
		if err := r.Reload(t.Context(), &changed); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a reload: %v, want %q", err, want)
		}
	}
	refused("a secret of this server", func(c *terminator.Config) { c.Sites[0].Root = c.ACME.Storage })
	refused("a secret of this server", func(c *terminator.Config) { c.Sites[0].Root = filepath.Dir(c.ACME.Storage) })
	refused("a secret of this server", func(c *terminator.Config) {
		c.Sites[0].Root = filepath.Join(c.ACME.Storage, "127.0.0.1-1-dir", "certificates")
	})
	refused("acme-roots: ", func(c *terminator.Config) { c.ACME.Roots = filepath.Join(w.dir, "none") })
	refused("acme-eab-key: ", func(c *terminator.Config) { c.ACME.EABID, c.ACME.EABKey = "x", filepath.Join(w.dir, "none") })
	if runtime.GOOS == "windows" {
		return
	}
	if err := os.Chmod(c.ACME.Storage, 0o750); err != nil {
		t.Fatal(err)
	}
	refused("others have access", func(*terminator.Config) {})
}

// checkStorage checks the modes in a storage, and that no answer to a challenge is left.
func checkStorage(t *testing.T, folder string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = fs.ModeDir | 0o700
		}
		if err == nil && info.Mode() != want && runtime.GOOS != "windows" {
			t.Errorf("%s: %v", path, info.Mode())
		}
		if in := filepath.Base(filepath.Dir(path)); !d.IsDir() && (in == "http-01" || in == "tls-alpn-01") {
			t.Errorf("left over: %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
