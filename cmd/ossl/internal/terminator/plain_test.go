package terminator_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// plain returns a configuration for clients without TLS, with a backend for backend.test.
func (w *world) plain(engine string, to ...string) *terminator.Config {
	backend := terminator.Backend{CA: w.authority.File, Name: "backend.test"}
	backend.SetTo(to)
	return &terminator.Config{Listen: []string{"127.0.0.1:0"}, Engine: engine, Plain: true, Limits: terminator.DefaultLimits(),
		AccessLog: true, Sites: []terminator.Site{{Backend: backend}}}
}

// dialPlain makes a connection without TLS.
func (r *running) dialPlain() net.Conn {
	r.t.Helper()
	network := "tcp"
	if filepath.IsAbs(r.addr) {
		network = "unix"
	}
	conn, err := net.DialTimeout(network, r.addr, patience)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return conn
}

// TestPlain: a client without TLS reaches a backend with TLS, which gets the proxy's certificate. The end of
// either direction is passed on, and sessions are resumed.
func TestPlain(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		w, l := newWorld(t), listen(t)
		secure := &tls.Config{Certificates: w.certificates(w.pair(false, "backend.test")),
			ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: w.roots}
		own := w.pair(true, "proxy")
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			secure.MinVersion, secure.MaxVersion = version, version
			config := w.plain(engine, "tls://"+l.Addr().String())
			config.Listen = []string{"unix:" + filepath.Join(shortFolder(t), "s")}
			config.Sites[0].Backend.Cert, config.Sites[0].Backend.Key = own.Cert, own.Key
			r := w.start(config)
			for i, first := range []string{"client", "backend"} {
				client := r.dialPlain().(halfCloser)
				backend := tls.Server(accept(t, l), secure)
				if first == "client" {
					halfClose(t, client, backend)
				} else {
					halfClose(t, backend, client)
				}
				if state := backend.ConnectionState(); len(state.PeerCertificates) != 1 || state.DidResume != (i == 1) {
					t.Errorf("%d certificates, resumed %v", len(state.PeerCertificates), state.DidResume)
				}
				r.log.await(t, "msg=connection", "name=backend.test", `tls="`+tls.VersionName(version)+`"`,
					map[int]string{0: "resumed=false", 1: "resumed=true"}[i], `error=""`)
			}
			if strings.Contains(r.log.String(), "subject") {
				t.Error("the log has the subject of a client without TLS")
			}
		}
	})
}

// TestBackendTruncates: if a backend closes without close_notify, its client gets the data, and no
// regular end.
func TestBackendTruncates(t *testing.T) {
	const size = 1 << 20
	engines(t, func(t *testing.T, engine string) {
		w, l := newWorld(t), listen(t)
		secure := &tls.Config{Certificates: w.certificates(w.pair(false, "backend.test"))}
		go handle(l, func(conn net.Conn) { _, _ = io.WriteString(tls.Server(conn, secure), strings.Repeat("x", size)) })
		config := w.plain(engine, "tls://"+l.Addr().String())
		r := w.start(config)
		s := w.start(w.config(engine, terminator.Site{Backend: config.Sites[0].Backend}))
		for name, client := range map[string]net.Conn{"plain": r.dialPlain(), "TLS": s.mustDial(nil)} {
			n, err := io.Copy(io.Discard, client)
			if n != size || err == nil {
				t.Errorf("%s: the client got %d bytes, and %v", name, n, err)
			}
		}
		r.log.await(t, "msg=connection", "sent=1048576", "unexpected EOF")
	})
}

// TestPlainCutOff: the backend of a client that is cut off gets no close_notify, and no regular end.
func TestPlainCutOff(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		w, l := newWorld(t), listen(t)
		r := w.start(w.plain(engine, "tls://"+l.Addr().String()))
		client := r.dialPlain()
		backend := tls.Server(accept(t, l), &tls.Config{Certificates: w.certificates(w.pair(false, "backend.test"))})
		write(t, client, "x")
		read(t, backend, 1)
		resetNow(client)
		if n, err := backend.Read(make([]byte, 1)); n != 0 || err == nil || errors.Is(err, io.EOF) {
			t.Errorf("the backend got %d bytes, %v, want an error that is not io.EOF", n, err)
		}
	})
}

// TestPlainVerifies: a backend that the proxy can't verify gets no data, and another one is tried.
func TestPlainVerifies(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		w, other := newWorld(t), newWorld(t)
		serve := func(pair terminator.Pair) string {
			l := listen(t)
			secure := &tls.Config{Certificates: w.certificates(pair)}
			go handle(l, func(conn net.Conn) {
				secured := tls.Server(conn, secure)
				if err := secured.Handshake(); err == nil {
					_, _ = io.Copy(secured, secured)
					_ = secured.CloseWrite()
				}
			})
			return "tls://" + l.Addr().String()
		}
		good := serve(w.pair(false, "backend.test"))
		for name, bad := range map[string]string{
			"name": serve(w.pair(false, "other.test")), "authority": serve(other.pair(false, "backend.test")),
		} {
			alone := w.start(w.plain(engine, bad))
			client, err := net.Dial("tcp", alone.addr)
			if err == nil { // else the RST came before the connection was seen
				_, err = client.Read(make([]byte, 1))
				_ = client.Close()
			}
			if err == nil || errors.Is(err, io.EOF) {
				t.Errorf("%s: the client got %v, want an error that is not io.EOF", name, err)
			}
			alone.log.await(t, "level=ERROR", "msg=backend")
			config := w.plain(engine, bad, good)
			config.Sites[0].Backend.Check = "connect"
			both := w.start(config)
			both.log.await(t, `msg="backend fails"`)
			client = both.dialPlain()
			write(t, client, "x")
			if got := read(t, client, 1); got != "x" {
				t.Errorf("%s: %q", name, got)
			}
		}
	})
}

// TestPlainAddresses: a server for clients without TLS listens where other machines can't reach it, unless
// a setting allows that. A reload can't make it one.
func TestPlainAddresses(t *testing.T) {
	w, log := newWorld(t), slog.New(slog.DiscardHandler)
	for _, c := range []struct {
		address            string
		insecure, accepted bool
	}{
		{"127.0.0.1:0", false, true}, {"localhost:0", false, true}, {"unix:" + filepath.Join(shortFolder(t), "s"), false, true},
		{"0.0.0.0:0", false, false}, {":0", false, false}, {"0.0.0.0:0", true, true},
	} {
		config := w.plain("ossl", "tls://127.0.0.1:1")
		config.Listen, config.InsecureListen = []string{"127.0.0.1:0", c.address}, c.insecure
		if c.accepted {
			config.Admin = "127.0.0.1:0"
			r := w.start(config)
			_, admin := r.Addrs()
			if status, body := get(t, http.DefaultClient, "http://"+admin.String()+"/metrics"); status != 200 ||
				!strings.Contains(body, "\nossl_serve_backend_up{") || strings.Contains(body, "\nossl_serve_ticket_key") {
				t.Errorf("metrics: %d, %s", status, body)
			}
			secure := w.config("ossl", tcp("tls://127.0.0.1:1"))
			secure.Listen, secure.Admin = config.Listen, config.Admin
			if err := r.Reload(context.Background(), secure); err == nil || !strings.Contains(err.Error(), "plain can't change") {
				t.Errorf("reload: %v", err)
			}
			if err := r.Reload(context.Background(), config); err != nil {
				t.Error(err)
			}
			continue
		}
		if err := config.Check(); err != nil {
			t.Fatal(err)
		}
		s, err := terminator.Start(context.Background(), config, log, log)
		if err == nil || !strings.Contains(err.Error(), "insecure-listen") {
			t.Errorf("%s: %v", c.address, err)
		}
		if s != nil {
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			s.Drain(ended)
		}
	}
}

// TestPlainRefuses: settings that a server without TLS for its clients can't honour are refused by name.
func TestPlainRefuses(t *testing.T) {
	for name, change := range map[string]func(*terminator.Config){
		"cert":            func(c *terminator.Config) { c.Sites[0].Pairs = []terminator.Pair{{Cert: "c", Key: "k"}} },
		"acme":            func(c *terminator.Config) { c.Sites[0].ACME = true },
		"acme-email":      func(c *terminator.Config) { c.ACME.Email = "a@example.org" },
		"client-ca":       func(c *terminator.Config) { c.Sites[0].ClientCA = []string{"ca"} },
		"client-optional": func(c *terminator.Config) { c.Sites[0].ClientOptional = true },
		"client-allow":    func(c *terminator.Config) { c.Sites[0].ClientAllow = []string{"cn:a"} },
		"crl":             func(c *terminator.Config) { c.CRLs = []string{"f"} },
		"crl-soft-fail":   func(c *terminator.Config) { c.CRLSoftFail = true },
		"alpn":            func(c *terminator.Config) { c.Sites[0].ALPN = []string{"a"} },
		"policy":          func(c *terminator.Config) { c.Policy = "bsi" },
		"kernel-tls":      func(c *terminator.Config) { c.KernelTLS = true },
		"ticket-key":      func(c *terminator.Config) { c.TicketKeys = []string{"k"} },
		"sessions":        func(c *terminator.Config) { c.Sessions = 1 },
		"redis":           func(c *terminator.Config) { c.Redis, c.RedisSecret = "h:1", "s" },
		"redis-secret":    func(c *terminator.Config) { c.RedisSecret = "s" },
		"redirect":        func(c *terminator.Config) { c.Redirect = []string{"127.0.0.1:0"} },
		"redirect-port":   func(c *terminator.Config) { c.RedirectPort = 1 },
		"http1":           func(c *terminator.Config) { c.HTTP1 = true },
		"header":          func(c *terminator.Config) { c.Sites[0].Headers = []string{"A: b"} },
		"list":            func(c *terminator.Config) { c.Sites[0].List = true },
		"client-cert":     func(c *terminator.Config) { c.Sites[0].Backend.ClientCert = true },
		"names":           func(c *terminator.Config) { c.Sites[0].Names = []string{"a.test"} },
		"one site":        func(c *terminator.Config) { c.Sites = append(c.Sites, c.Sites[0]) },
		"tls://":          func(c *terminator.Config) { c.Sites[0].Backend = terminator.Backend{To: "127.0.0.1:1"} },
		"of TCP":          func(c *terminator.Config) { c.Sites[0].Backend.To = "https://127.0.0.1:1" },
		"with TLS":        func(c *terminator.Config) { c.Sites[0] = terminator.Site{Root: "/srv"} },
		"needs plain":     func(c *terminator.Config) { c.Plain, c.InsecureListen = false, true },
	} {
		config := newWorld(t).plain("ossl", "tls://127.0.0.1:1")
		if err := config.Check(); err != nil {
			t.Fatal(err)
		}
		change(config)
		if err := config.Check(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestInteropPlain: openssl s_server and stunnel behind a proxy for clients without TLS.
func TestInteropPlain(t *testing.T) {
	w := newWorld(t)
	pair := w.pair(false, "backend.test")
	free := listen(t)
	address := free.Addr().String()
	echoes := listen(t)
	go handle(echoes, func(conn net.Conn) { _, _ = io.Copy(conn, conn) })
	_ = free.Close()
	w.write(filepath.Join(w.dir, "stunnel.conf"), "foreground = yes\npid =\n[echo]\naccept = "+address+
		"\nconnect = "+echoes.Addr().String()+"\ncert = "+pair.Cert+"\nkey = "+pair.Key+"\n")
	for _, c := range []struct {
		name, answer string
		args         []string
	}{
		{"openssl", "olleh\n", []string{"s_server", "-accept", address, "-cert", pair.Cert, "-key", pair.Key, "-rev", "-quiet"}},
		{"stunnel", "hello\n", []string{filepath.Join(w.dir, "stunnel.conf")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			program, err := exec.LookPath(c.name)
			if err != nil {
				t.Skipf("%s is not installed", c.name)
			}
			cmd := exec.Command(program, c.args...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			}()
			for late := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) { // until the program listens
				if conn, err := net.Dial("tcp", address); err == nil {
					_ = conn.Close()
					break
				} else if time.Now().After(late) {
					t.Fatal(err)
				}
			}
			engines(t, func(t *testing.T, engine string) {
				r := w.start(w.plain(engine, "tls://"+address))
				client := r.dialPlain()
				write(t, client, "hello\n")
				if got := read(t, client, len(c.answer)); got != c.answer {
					t.Errorf("%q", got)
				}
				if err := client.(*net.TCPConn).CloseWrite(); err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadAll(client); err != nil {
					t.Error(err)
				}
				r.log.await(t, "msg=connection", `tls="TLS 1.3"`, `error=""`)
			})
		})
	}
}
