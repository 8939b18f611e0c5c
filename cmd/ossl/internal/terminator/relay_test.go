package terminator_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

func tcp(to string) terminator.Site { return terminator.Site{Backend: terminator.Backend{To: to}} }

// A halfCloser is a connection whose directions are closed one by one.
type halfCloser interface {
	io.ReadWriter
	CloseWrite() error
}

// halfClose closes the direction from a to b, and then the other one.
func halfClose(t *testing.T, a, b halfCloser) {
	t.Helper()
	write(t, a, "first")
	if err := a.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(b); err != nil || string(got) != "first" {
		t.Fatalf("%q, %v", got, err)
	}
	write(t, b, "second")
	if err := b.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(a); err != nil || string(got) != "second" {
		t.Fatalf("%q, %v", got, err)
	}
}

// TestHalfClose: the end of either direction is passed on, and the other one goes on.
func TestHalfClose(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		w, l := newWorld(t), listen(t)
		r := w.start(w.config(engine, tcp(l.Addr().String())))
		for _, first := range []string{"client", "backend"} {
			t.Run(first, func(t *testing.T) {
				client := r.mustDial(nil)
				backend := accept(t, l).(*net.TCPConn)
				if first == "client" {
					halfClose(t, client, backend)
				} else {
					halfClose(t, backend, client)
				}
			})
		}
		r.log.await(t, "msg=connection", "received=5", "sent=6", `error=""`)
	})
}

// TestBulk: much data in both directions at the same time arrives whole.
func TestBulk(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		w, l := newWorld(t), listen(t)
		r := w.start(w.config(engine, tcp(l.Addr().String())))
		client := r.mustDial(nil)
		backend := accept(t, l).(*net.TCPConn)
		data := bytes.Repeat([]byte("0123456789abcdef"), 1<<18)
		sent := make(chan error, 2)
		for _, c := range []halfCloser{client, backend} {
			go func() {
				_, err := c.Write(data)
				sent <- errors.Join(err, c.CloseWrite())
			}()
		}
		received := make(chan []byte, 1)
		go func() {
			got, _ := io.ReadAll(backend)
			received <- got
		}()
		if got, err := io.ReadAll(client); err != nil || !bytes.Equal(got, data) {
			t.Errorf("the client got %d bytes, %v", len(got), err)
		}
		if got := <-received; !bytes.Equal(got, data) {
			t.Errorf("the backend got %d bytes", len(got))
		}
		for range 2 {
			if err := <-sent; err != nil {
				t.Error(err)
			}
		}
	})
}

// TestCutOff: if one side is not closed regularly, the other one is not either.
func TestCutOff(t *testing.T) {
	for _, c := range []struct {
		name string
		// breakOff cuts a connection off, and returns the other one, to be read.
		breakOff func(t *testing.T, client *tls.Conn, backend *net.TCPConn) io.Reader
	}{
		{"backend resets", func(t *testing.T, client *tls.Conn, backend *net.TCPConn) io.Reader {
			_ = backend.SetLinger(0)
			_ = backend.Close()
			return client
		}},
		{"client resets", func(t *testing.T, client *tls.Conn, backend *net.TCPConn) io.Reader {
			_ = client.NetConn().(*net.TCPConn).SetLinger(0)
			_ = client.NetConn().Close()
			return backend
		}},
		{"client sends garbage", func(t *testing.T, client *tls.Conn, backend *net.TCPConn) io.Reader {
			write(t, client.NetConn(), "\x17\x03\x03\x00\x20"+strings.Repeat("x", 32))
			return backend
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			engines(t, func(t *testing.T, engine string) {
				w, l := newWorld(t), listen(t)
				r := w.start(w.config(engine, tcp(l.Addr().String())))
				client := r.mustDial(nil)
				backend := accept(t, l).(*net.TCPConn)
				write(t, client, "x")
				read(t, backend, 1)
				write(t, backend, "y")
				read(t, client, 1)
				if n, err := c.breakOff(t, client, backend).Read(make([]byte, 1)); n != 0 || err == nil || errors.Is(err, io.EOF) {
					t.Errorf("the other end: %d bytes, %v, want an error that is not io.EOF", n, err)
				}
			})
		})
	}
}

// TestCutIsLogged: a connection that the server cuts off when it shuts down is in the log.
func TestCutIsLogged(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		w, l := newWorld(t), listen(t)
		r := w.start(w.config(engine, tcp(l.Addr().String())))
		client := r.mustDial(nil)
		defer client.Close()
		write(t, client, "x")
		read(t, accept(t, l), 1)
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		if cut := r.Drain(ended); cut != 1 {
			t.Errorf("%d connections were cut off, want 1", cut)
		}
		if text := r.log.String(); !strings.Contains(text, "msg=connection ") || !strings.Contains(text, "received=1 ") {
			t.Errorf("the connection is not in the log: %s", text)
		}
	})
}

// TestAnswerInFull: a backend that answers and closes, while the client still sends, costs the client
// nothing of the answer.
func TestAnswerInFull(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		w, l := newWorld(t), listen(t)
		r := w.start(w.config(engine, tcp(l.Addr().String())))
		client := r.mustDial(nil)
		backend := accept(t, l)
		answer := strings.Repeat("answer", 1000)
		write(t, backend, answer)
		_ = backend.Close()
		for range 20 { // the first of them makes the backend's kernel send an RST
			if _, err := io.WriteString(client, "more"); err != nil {
				break
			}
		}
		if got, err := io.ReadAll(client); err != nil || string(got) != answer {
			t.Errorf("the client got %d bytes of %d, %v", len(got), len(answer), err)
		}
	})
}

// TestTruncation: on OpenSSL, the end of a client's stream without close_notify is an irregular end.
func TestTruncation(t *testing.T) {
	w, l := newWorld(t), listen(t)
	r := w.start(w.config("ossl", tcp(l.Addr().String())))
	client := r.mustDial(nil)
	backend := accept(t, l)
	write(t, client, "x")
	read(t, backend, 1)
	_ = client.NetConn().(*net.TCPConn).CloseWrite()
	if _, err := backend.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("the backend got %v, want an error that is not io.EOF", err)
	}
}

// TestBackends: kinds of backends, and PROXY headers before the data.
func TestBackends(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		w := newWorld(t)
		backendPair, clientPair := w.pair(false, "backend.test"), w.pair(true, "proxy")
		secure := &tls.Config{Certificates: w.certificates(backendPair), ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: w.roots}
		for _, c := range []struct {
			name, network string
			backend       terminator.Backend
			header        string // the first bytes that the backend gets
		}{
			{name: "tcp", network: "tcp"},
			{name: "unix", network: "unix"},
			{"proxy v1", "tcp", terminator.Backend{SendProxy: "v1"}, "PROXY TCP4 127.0.0.1 127.0.0.1 "},
			{"proxy v2", "unix", terminator.Backend{SendProxy: "v2"}, "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\x7f\x00\x00\x01"},
			{"tls", "tcp", terminator.Backend{To: "tls", Name: "backend.test", CA: w.authority.File,
				Cert: clientPair.Cert, Key: clientPair.Key}, ""},
		} {
			t.Run(c.name, func(t *testing.T) {
				address := "127.0.0.1:0"
				if c.network == "unix" {
					address = filepath.Join(shortFolder(t), "s")
				}
				l, err := net.Listen(c.network, address)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = l.Close() })
				to := l.Addr().String()
				if c.network == "unix" {
					to = "unix:" + to
				} else if c.backend.To == "tls" {
					to = "tls://" + to
				}
				site := terminator.Site{Backend: c.backend}
				site.Backend.To = to
				r := w.start(w.config(engine, site))
				client := r.mustDial(nil)
				conn := accept(t, l)
				if c.backend.Name != "" {
					conn = tls.Server(conn, secure)
				}
				write(t, client, "hello")
				if c.header != "" {
					if got := read(t, conn, len(c.header)); got != c.header {
						t.Fatalf("the backend got %q", got)
					}
					rest := map[string]int{"v2": 8}[c.backend.SendProxy] // an address and two ports
					for rest == 0 && read(t, conn, 1) != "\n" {
					}
					read(t, conn, rest)
				}
				if got := read(t, conn, 5); got != "hello" {
					t.Errorf("the backend got %q", got)
				}
				write(t, conn, "world")
				if got := read(t, client, 5); got != "world" {
					t.Errorf("the client got %q", got)
				}
			})
		}
	})
}

// TestBackendFails: a client whose backend can't be used is cut off, and learns it from the missing
// close_notify.
func TestBackendFails(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		w := newWorld(t)
		plain := listen(t) // answers a ClientHello with garbage
		go handle(plain, func(conn net.Conn) { _, _ = io.WriteString(conn, "220 hello\r\n") })
		silent := listen(t) // never answers
		wrong := listen(t)
		pair := w.pair(false, "other.test")
		go handle(wrong, func(conn net.Conn) {
			_ = tls.Server(conn, &tls.Config{Certificates: w.certificates(pair)}).Handshake()
		})
		for _, c := range []struct {
			name    string
			backend terminator.Backend
		}{
			{"port closed", terminator.Backend{To: "127.0.0.1:1"}},
			{"no socket", terminator.Backend{To: "unix:" + filepath.Join(w.dir, "none")}},
			{"not TLS", terminator.Backend{To: "tls://" + plain.Addr().String()}},
			{"never answers", terminator.Backend{To: "tls://" + silent.Addr().String()}},
			{"wrong name", terminator.Backend{To: "tls://" + wrong.Addr().String(), Name: "backend.test", CA: w.authority.File}},
			{"unknown authority", terminator.Backend{To: "tls://" + wrong.Addr().String(), Name: "other.test"}},
		} {
			t.Run(c.name, func(t *testing.T) {
				config := w.config(engine, terminator.Site{Backend: c.backend})
				if c.name == "never answers" {
					config.Limits.Backend = terminator.Time(500 * time.Millisecond)
				}
				r := w.start(config)
				if _, err := r.mustDial(nil).Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
					t.Errorf("the client got %v, want an error that is not io.EOF", err)
				}
				r.log.await(t, "level=ERROR", "msg=backend", "error=")
			})
		}
	})
}

// TestAcceptProxy: PROXY headers are required of the configured senders, and nobody else may connect.
func TestAcceptProxy(t *testing.T) {
	const v2 = "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x09\x7f\x00\x00\x01\x12\x34\x01\xbb"
	for _, c := range []struct {
		name, header string
		senders      []string
		want         string // the client's address; "" if the connection is refused
		log          string
	}{
		{"v1", "PROXY TCP4 192.0.2.7 192.0.2.1 4660 443\r\n", []string{"127.0.0.0/8"}, "192.0.2.7:4660", ""},
		{"v1 IPv6", "PROXY TCP6 2001:db8::7 2001:db8::1 4660 443\r\n", []string{"127.0.0.1"}, "[2001:db8::7]:4660", ""},
		{"v1 unknown", "PROXY UNKNOWN\r\n", []string{"127.0.0.1"}, "127.0.0.1:", ""},
		{"v2", v2, []string{"127.0.0.1"}, "192.0.2.9:4660", ""},
		{"v2 local", "\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00", []string{"127.0.0.1"}, "127.0.0.1:", ""},
		{"other sender", v2, []string{"192.0.2.0/24", "unix"}, "", "limit=accept-proxy"},
		{"no header", "", []string{"127.0.0.1"}, "", "PROXY header"},
		{"garbage", "PROXY TCP4 x\r\n", []string{"127.0.0.1"}, "", "PROXY header"},
		{"endless", "PROXY TCP4 " + strings.Repeat("1", 5000), []string{"127.0.0.1"}, "", "PROXY header"},
		{"v2 huge", "\r\n\r\n\x00\r\nQUIT\n\x21\x11\xff\xff" + strings.Repeat("x", 5000), []string{"127.0.0.1"}, "", "PROXY header"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, l := newWorld(t), listen(t)
			config := w.config("ossl", tcp(l.Addr().String()))
			config.AcceptProxy = c.senders
			r := w.start(config)
			raw, err := net.Dial("tcp", r.addr)
			if err != nil && c.want == "" { // the RST came before the connection was seen
				r.log.await(t, c.log)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer raw.Close()
			_ = raw.SetDeadline(time.Now().Add(patience))
			_, _ = io.WriteString(raw, c.header) // the server may have closed the connection
			client := tls.Client(raw, &tls.Config{RootCAs: w.roots, ServerName: "localhost"})
			if err := client.Handshake(); c.want == "" {
				if err == nil {
					t.Error("the connection was accepted")
				}
				r.log.await(t, c.log)
				return
			} else if err != nil {
				t.Fatal(err)
			}
			_ = accept(t, l).Close()
			_, _ = io.ReadAll(client)
			_ = client.Close()
			r.log.await(t, "msg=connection", "client="+c.want)
		})
	}
}

// TestProxyHeaderIsLate: a sender that keeps its header to itself doesn't keep the server.
func TestProxyHeaderIsLate(t *testing.T) {
	w, l := newWorld(t), listen(t)
	config := w.config("ossl", tcp(l.Addr().String()))
	config.AcceptProxy = []string{"127.0.0.1"}
	config.Limits.Header = terminator.Time(100 * time.Millisecond)
	r := w.start(config)
	raw, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	_ = raw.SetDeadline(time.Now().Add(patience))
	if _, err := raw.Read(make([]byte, 1)); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	r.log.await(t, "PROXY header", "timeout")
}

// TestIdle: a connection without progress is closed; one with progress in one direction isn't.
func TestIdle(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, engine string) {
		t.Parallel()
		w, l := newWorld(t), listen(t)
		config := w.config(engine, tcp(l.Addr().String()))
		config.Limits.Idle = terminator.Time(limit)
		r := w.start(config)
		client := r.mustDial(nil)
		backend := accept(t, l)
		start := time.Now()
		for tick := range 40 { // longer than the timeout in all; the client sends nothing
			<-time.After(limit / 30)
			_ = client.SetDeadline(time.Now().Add(patience))
			_ = backend.SetDeadline(time.Now().Add(patience))
			if _, err := backend.Write([]byte("x")); err != nil {
				t.Fatalf("tick %d after %v: %v", tick, time.Since(start), err)
			}
			read(t, client, 1)
		}
		if _, err := client.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("error %v, want one that is not io.EOF", err)
		}
		r.log.await(t, "msg=connection", "timeout")
	})
}
