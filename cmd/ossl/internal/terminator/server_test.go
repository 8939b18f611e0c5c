package terminator_test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/localca"
	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestReload: new connections get the new configuration, and the old configuration's idle connections
// are closed. A configuration that is wrong changes nothing.
func TestReload(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		w := newWorld(t)
		one, two := w.folder(map[string]string{"index.html": "one"}), w.folder(map[string]string{"index.html": "two"})
		config := w.config(engine, terminator.Site{Root: one})
		r := w.start(config)
		protocols(t, func(t *testing.T, http2 bool) {
			client := r.client(http2, nil)
			reload := func(change func(*terminator.Config), want string) {
				t.Helper()
				changed := *config
				changed.Sites = []terminator.Site{config.Sites[0]}
				change(&changed)
				err := r.Reload(context.Background(), &changed)
				if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
					t.Errorf("error %v, want %q", err, want)
				}
			}
			reload(func(c *terminator.Config) { c.Sites[0].Root = one }, "")
			for _, c := range []struct {
				name   string
				change func(*terminator.Config)
				want   string
			}{
				{"no folder", func(c *terminator.Config) { c.Sites[0].Root += "/none" }, "no such file"},
				{"no certificate", func(c *terminator.Config) {
					c.Sites[0].Pairs = []terminator.Pair{{Cert: "none", Key: "none"}}
				}, "no such file"},
				{"no authority", func(c *terminator.Config) { c.Sites[0].ClientCA = []string{"none"} }, "no such file"},
				{"other address", func(c *terminator.Config) { c.Listen = []string{"127.0.0.1:1"} }, "listen can't change"},
				{"other engine", func(c *terminator.Config) {
					c.Engine = map[string]string{"ossl": "go", "go": "ossl"}[engine]
				}, "engine can't change"},
				{"other admin", func(c *terminator.Config) { c.Admin = "127.0.0.1:1" }, "admin can't change"},
			} {
				t.Run(c.name, func(t *testing.T) {
					reload(c.change, c.want)
					if _, body := get(t, client, "https://localhost/"); body != "one" {
						t.Errorf("%q after a failed reload", body)
					}
				})
			}
			reload(func(c *terminator.Config) { c.Sites[0].Root = two }, "")
			if _, body := get(t, r.client(http2, nil), "https://localhost/"); body != "two" {
				t.Errorf("%q after the reload", body)
			}
			reload(func(c *terminator.Config) { c.Sites[0].Root = one }, "")
		})
	})
}

// TestReloadUnderway: a request that began before a reload finishes under the old configuration.
func TestReloadUnderway(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		w, backend := newWorld(t), listen(t)
		config := w.config(engine, tcp(backend.Addr().String()))
		r := w.start(config)
		client := r.mustDial(nil)
		conn := accept(t, backend)
		changed := *config
		other := listen(t)
		changed.Sites = []terminator.Site{config.Sites[0]}
		changed.Sites[0].Backend.To = other.Addr().String()
		if err := r.Reload(context.Background(), &changed); err != nil {
			t.Fatal(err)
		}
		write(t, client, "old")
		if got := read(t, conn, 3); got != "old" {
			t.Errorf("got %q", got)
		}
		write(t, r.mustDial(nil), "new")
		if got := read(t, accept(t, other), 3); got != "new" {
			t.Errorf("got %q", got)
		}
	})
}

// TestReloadInHandshake: a client whose handshake has not begun yet at a reload is served.
func TestReloadInHandshake(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		w := newWorld(t)
		config := w.config(engine, terminator.Site{Root: w.folder(map[string]string{"index.html": "x"})})
		r := w.start(config)
		protocols(t, func(t *testing.T, http2 bool) {
			raw, err := net.Dial("tcp", r.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer raw.Close()
			get(t, r.client(false, nil), "https://localhost/") // accepted after raw
			changed := *config
			if err := r.Reload(context.Background(), &changed); err != nil {
				t.Fatal(err)
			}
			client := r.client(http2, nil)
			client.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) { return raw, nil }
			if status, body := get(t, client, "https://localhost/"); status != 200 || body != "x" {
				t.Errorf("%d %q", status, body)
			}
		})
	})
}

// TestResumption: clients resume, also after a reload, and on another server with the same ticket
// key.
func TestResumption(t *testing.T) {
	w := newWorld(t)
	key := filepath.Join(w.dir, "ticket.key")
	random := make([]byte, 80)
	_, _ = rand.Read(random)
	w.write(key, string(random))
	root := w.folder(map[string]string{"index.html": "x"})
	for _, c := range []struct {
		name   string
		change func(*terminator.Config)
		other  bool // another server resumes too
	}{
		{"default", func(*terminator.Config) {}, false},
		{"policy", func(c *terminator.Config) { c.Policy = terminator.DefaultPolicy }, false},
		{"ticket key", func(c *terminator.Config) { c.TicketKeys = []string{key} }, true},
		{"sessions", func(c *terminator.Config) { c.Sessions = 100 }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := w.config("ossl", terminator.Site{Root: root})
			c.change(config)
			r := w.start(config)
			cache := tls.NewLRUClientSessionCache(0)
			resumes := func(r *running, name string, want bool) {
				t.Helper()
				conn := r.mustDial(func(config *tls.Config) { config.ClientSessionCache = cache; config.MaxVersion = tls.VersionTLS12 })
				write(t, conn, "GET / HTTP/1.0\r\nHost: localhost\r\n\r\n")
				_, _ = io.ReadAll(conn)
				if got := conn.ConnectionState().DidResume; got != want {
					t.Errorf("%s: DidResume is %v", name, got)
				}
			}
			resumes(r, "first", false)
			resumes(r, "second", true)
			changed := *config
			if err := r.Reload(context.Background(), &changed); err != nil {
				t.Fatal(err)
			}
			resumes(r, "after a reload", true)
			resumes(w.start(config), "other server", c.other)
		})
	}
}

// TestTicketKeyFileChanges: a server takes the ticket key that replaces its own, and refuses garbage.
func TestTicketKeyFileChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	root := w.folder(map[string]string{"index.html": "x"})
	start := func(name string) (r *running, file string, key []byte) {
		t.Helper()
		file, key = filepath.Join(w.dir, name), make([]byte, 80)
		_, _ = rand.Read(key)
		w.write(file, string(key))
		config := w.config("ossl", terminator.Site{Root: root})
		config.Limits.RatePerSource = 0
		config.TicketKeys = []string{file}
		return w.start(config), file, key
	}
	first, _, key := start("first.key")
	second, file, _ := start("second.key")
	resumes := func() bool { // a session of the first server on the second
		cache, resumed := tls.NewLRUClientSessionCache(0), false
		for _, r := range []*running{first, second} {
			conn := r.mustDial(func(config *tls.Config) { config.ClientSessionCache = cache; config.MaxVersion = tls.VersionTLS12 })
			resumed = conn.ConnectionState().DidResume
			_ = conn.Close()
		}
		return resumed
	}
	if resumes() {
		t.Fatal("resumed with another key")
	}
	for _, step := range []struct{ text, logged string }{
		{string(key), `msg="ticket keys replaced"`}, {"garbage", `msg="ticket keys not replaced"`},
	} {
		w.write(file, step.text)
		second.log.await(t, step.logged)
		if !resumes() {
			t.Errorf("%s: not resumed", step.logged)
		}
	}
}

// TestCertificateChanges: a certificate that is replaced while the server runs is used; garbage
// isn't, and is logged.
func TestCertificateChanges(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, engine string) {
		w := newWorld(t)
		config := w.config(engine, terminator.Site{Root: w.folder(map[string]string{"index.html": "x"})})
		config.Limits.RatePerSource = 0
		r := w.start(config)
		pair := config.Sites[0].Pairs[0]
		serial := func() string {
			conn := r.mustDial(nil)
			defer conn.Close()
			return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
		}
		first := serial()
		next := w.pair(false, "localhost")
		for _, move := range []struct{ from, to string }{{next.Key, pair.Key}, {next.Cert, pair.Cert}} {
			if err := os.Rename(move.from, move.to); err != nil {
				t.Fatal(err)
			}
		}
		changed := *config
		if err := r.Reload(context.Background(), &changed); err != nil {
			t.Fatal(err)
		}
		second := serial()
		if second == first {
			t.Error("the new certificate isn't used")
		}
		w.write(pair.Cert, "garbage")
		if err := r.Reload(context.Background(), &changed); err == nil {
			t.Error("garbage is accepted")
		}
		for deadline := time.Now().Add(patience); !strings.Contains(r.log.String(), "certificate not replaced"); {
			if serial() != second || time.Now().After(deadline) {
				t.Fatal("the old certificate is gone, or nothing was logged")
			}
			<-time.After(50 * time.Millisecond) // somebody looks at the files each second
		}
		if serial() != second {
			t.Error("the old certificate is gone")
		}
		next = w.pair(false, "localhost")
		for _, move := range []struct{ from, to string }{{next.Key, pair.Key}, {next.Cert, pair.Cert}} {
			if err := os.Rename(move.from, move.to); err != nil {
				t.Fatal(err)
			}
		}
		for deadline := time.Now().Add(patience); serial() == second; <-time.After(50 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the third certificate isn't used")
			}
		}
	})
}

// TestCertificateChangesUnseen: a server that no client visits still replaces its certificate, so
// that the next client doesn't get one that may have expired since. The authorities of clients stay
// as they were at the start, even if their file has changed.
func TestCertificateChangesUnseen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := w.config("ossl", terminator.Site{Root: w.folder(map[string]string{"index.html": "x"})})
	authorities := filepath.Join(w.dir, "clients.pem")
	text, err := os.ReadFile(w.authority.File)
	if err != nil {
		t.Fatal(err)
	}
	w.write(authorities, string(text))
	config.Sites[0].ClientCA = []string{authorities}
	r := w.start(config)
	client := w.certificates(w.pair(true, "client"))
	serial := func() string {
		conn := r.mustDial(func(config *tls.Config) { config.Certificates = client })
		defer conn.Close()
		write(t, conn, "GET / HTTP/1.0\r\nHost: localhost\r\n\r\n")
		if answer, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.0 200 ") {
			t.Errorf("got %q, %v", answer, err)
		}
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	first := serial()
	w.write(authorities, "garbage")
	pair, next := config.Sites[0].Pairs[0], w.pair(false, "localhost")
	for _, move := range []struct{ from, to string }{{next.Key, pair.Key}, {next.Cert, pair.Cert}} {
		if err := os.Rename(move.from, move.to); err != nil {
			t.Fatal(err)
		}
	}
	r.log.await(t, `msg="certificate replaced" site=* certificate=1 until=20`)
	if serial() == first {
		t.Error("the first client after the change got the old certificate")
	}
}

// TestLimits: connections above the limits wait or are closed, and the log reports it.
func TestLimits(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		w := newWorld(t)
		server := func(change func(*terminator.Limits)) (*running, net.Listener) {
			backend := listen(t)
			config := w.config(engine, tcp(backend.Addr().String()))
			change(&config.Limits)
			return w.start(config), backend
		}
		t.Run("connections", func(t *testing.T) {
			r, backend := server(func(l *terminator.Limits) { l.Connections = 2 })
			first := r.mustDial(nil)
			r.mustDial(nil)
			done := make(chan error, 1)
			go func() {
				_, err := r.dial(nil)
				done <- err
			}()
			r.log.await(t, "msg=limit", "limit=connections")
			select {
			case err := <-done:
				t.Errorf("a third connection: %v", err)
			default:
			}
			_ = accept(t, backend).Close()
			_ = accept(t, backend).Close()
			_ = first.Close()
			if err := <-done; err != nil {
				t.Errorf("a connection after another one's end: %v", err)
			}
		})
		t.Run("per address", func(t *testing.T) {
			r, backend := server(func(l *terminator.Limits) { l.PerAddress = 2 })
			first := r.mustDial(nil)
			r.mustDial(nil)
			if _, err := r.dial(nil); err == nil {
				t.Error("a third connection is accepted")
			}
			r.log.await(t, "limit=per-address", "client=127.0.0.1:")
			_ = accept(t, backend).Close() // the order of the two is open
			_ = accept(t, backend).Close()
			_ = first.Close()
			for late := time.Now().Add(patience); ; { // the place is free after the access line
				_, err := r.dial(nil)
				if err == nil {
					break
				}
				if time.Now().After(late) {
					t.Fatalf("a connection after another one's end: %v", err)
				}
			}
		})
		t.Run("address rate", func(t *testing.T) {
			r, _ := server(func(l *terminator.Limits) { l.RatePerSource = 0.001 })
			r.mustDial(nil)
			if _, err := r.dial(nil); err == nil {
				t.Error("a second connection is accepted")
			}
			r.log.await(t, "limit=address-rate")
		})
		t.Run("rate beside an address that has exceeded its own", func(t *testing.T) {
			config := w.config(engine, tcp(listen(t).Addr().String()))
			config.AcceptProxy = []string{"127.0.0.1"}
			config.Limits.Rate, config.Limits.RatePerSource = 1.01, 0.001 // two and one at once
			r := w.start(config)
			from := func(address string) net.Conn {
				conn, err := net.Dial("tcp", r.addr)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = conn.Close() })
				write(t, conn, "PROXY TCP4 "+address+" 192.0.2.9 1 2\r\n")
				return conn
			}
			for range 40 { // would use up the rate of 40 seconds
				from("192.0.2.1")
			}
			r.log.await(t, "limit=address-rate")
			conn := from("192.0.2.2")
			_ = conn.SetDeadline(time.Now().Add(patience))
			if err := tls.Client(conn, &tls.Config{RootCAs: w.roots, ServerName: "localhost"}).Handshake(); err != nil {
				t.Error(err)
			}
		})
		t.Run("rate", func(t *testing.T) {
			r, _ := server(func(l *terminator.Limits) { l.Rate = 0.001 })
			r.mustDial(nil)
			conn, err := net.Dial("tcp", r.addr) // the kernel accepts it
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := r.log.never("client=" + conn.LocalAddr().String()); err != nil {
				t.Error(err)
			}
		})
	})
}

// never returns an error if a line has been logged.
func (l *logs) never(text string) error {
	if strings.Contains(l.String(), text) {
		return fmt.Errorf("the log has %q", text)
	}
	return nil
}

// TestAdmin: the administrator's address reports whether the server is well.
func TestAdmin(t *testing.T) {
	w, backend := newWorld(t), listen(t)
	config := w.config("ossl", tcp(backend.Addr().String()))
	config.Admin = "127.0.0.1:0"
	r := w.start(config)
	_, admin := r.Addrs()
	url := "http://" + admin.String()
	if status, body := get(t, http.DefaultClient, url+"/healthz"); status != 200 || body != "ok\n" {
		t.Errorf("%d %q", status, body)
	}
	_ = r.mustDial(nil).Close()
	_ = accept(t, backend).Close() // which the server dials after the handshake
	status, body := get(t, http.DefaultClient, url+"/metrics")
	if status != 200 || !strings.Contains(body, "ossl_tls_handshakes_total{") {
		t.Errorf("metrics: %d %q", status, body)
	}
	if status, _ := get(t, http.DefaultClient, url+"/"); status != 404 {
		t.Errorf("/ is answered with %d", status)
	}
	client := r.mustDial(nil)
	conn := accept(t, backend)
	done := make(chan int, 1)
	go func() { done <- r.Drain(context.Background()) }()
	for deadline := time.Now().Add(patience); ; {
		if status, _ := get(t, http.DefaultClient, url+"/healthz"); status == 503 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("a server that ends says that it is well")
		}
	}
	_ = client.CloseWrite()
	_ = conn.Close()
	if cut := <-done; cut != 0 {
		t.Errorf("%d connections were cut off", cut)
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestKinds: with several certificates, each client gets the first one that it can verify, whether
// its key has a URI or a file.
func TestKinds(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		w := newWorld(t)
		ec := w.pair(false, "localhost")
		request := localca.Request{Names: []string{"localhost"}, Kind: localca.RSA, Lifetime: time.Hour}
		issued, err := w.authority.Issue(request, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		byURI := func(p terminator.Pair) terminator.Pair { return terminator.Pair{Cert: p.Cert, Key: "file:" + p.Key} }
		rsa := terminator.Pair{Cert: issued.CertificateFile, Key: issued.KeyFile}
		const both = tls.TLS_AES_128_GCM_SHA256
		for _, c := range []struct {
			pairs []terminator.Pair
			want  map[uint16]string // by the cipher suite that the client offers
		}{
			{[]terminator.Pair{ec, byURI(rsa)}, map[uint16]string{both: "ECDSA",
				tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: "ECDSA", tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256: "RSA"}},
			{[]terminator.Pair{byURI(ec), rsa}, map[uint16]string{both: "ECDSA"}},
			{[]terminator.Pair{byURI(rsa), ec}, map[uint16]string{both: "RSA"}},
		} {
			r := w.start(w.config(engine, terminator.Site{Root: w.folder(nil), Pairs: c.pairs}))
			for suite, want := range c.want {
				conn := r.mustDial(func(config *tls.Config) {
					if suite != both {
						config.MaxVersion, config.CipherSuites = tls.VersionTLS12, []uint16{suite}
					}
				})
				if got := conn.ConnectionState().PeerCertificates[0].PublicKeyAlgorithm.String(); got != want {
					t.Errorf("%v: the certificate has a key of %s, want %s", c.pairs, got, want)
				}
			}
		}
	})
}

// TestExpired: the log warns of a certificate that has expired.
func TestExpired(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		w := newWorld(t)
		issued, err := w.authority.Issue(localca.Request{Names: []string{"localhost"}, Lifetime: time.Nanosecond}, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		pair := terminator.Pair{Cert: issued.CertificateFile, Key: issued.KeyFile}
		r := w.start(w.config(engine, terminator.Site{Root: w.folder(nil), Pairs: []terminator.Pair{w.pair(false, "localhost"), pair}}))
		r.log.await(t, "level=WARN", "a certificate has expired", "site=*", "certificate=2")
		if err := r.log.never("certificate=1"); err != nil {
			t.Error(err)
		}
	})
}
