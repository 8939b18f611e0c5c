package terminator_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

const upgradeRequest = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"

// TestEarlyUpgrade: data that the client or the backend sends right behind the upgrade is passed on,
// and so is the end of each direction.
func TestEarlyUpgrade(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		w, l := newWorld(t), listen(t)
		r := w.start(w.config(engine, terminator.Site{Backend: terminator.Backend{To: "http://" + l.Addr().String()}}))
		client := r.mustDial(nil)
		early := strings.Repeat("early", 1000) // more than net/http's buffer
		write(t, client, upgradeRequest+early)
		backend := accept(t, l)
		reader := bufio.NewReader(backend)
		if _, err := http.ReadRequest(reader); err != nil {
			t.Fatal(err)
		}
		write(t, backend, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nanswer")
		if got := read(t, reader, len(early)); got != early {
			t.Errorf("the backend got %q", got)
		}
		if err := client.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if rest, err := io.ReadAll(reader); err != nil || len(rest) > 0 {
			t.Errorf("the backend got %q, %v", rest, err)
		}
		write(t, backend, "late")
		_ = backend.Close()
		answer := bufio.NewReader(client)
		if _, err := http.ReadResponse(answer, nil); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(answer); err != nil || string(got) != "answerlate" {
			t.Errorf("the client got %q, %v", got, err)
		}
	})
}

// TestInformational: responses with a status of 1xx reach clients in a form that these can take.
func TestInformational(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		w, l := newWorld(t), listen(t)
		r := w.start(w.config(engine, terminator.Site{Backend: terminator.Backend{To: "http://" + l.Addr().String()}}))
		for _, c := range []struct{ request, want string }{
			{"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n", "HTTP/1.0 200 OK\r\n"},
			{"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n"},
		} {
			client := r.mustDial(func(config *tls.Config) { config.NextProtos = []string{"http/1.1"} })
			write(t, client, c.request)
			backend := accept(t, l)
			if _, err := http.ReadRequest(bufio.NewReader(backend)); err != nil {
				t.Fatal(err)
			}
			write(t, backend, "HTTP/1.1 103 Early Hints\r\nConnection: keep-alive\r\nKeep-Alive: 1\r\nLink: </a>\r\n\r\n"+
				"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			if got := read(t, client, len(c.want)); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		}
	})
}

// TestUpgradeCut: if one connection of an upgrade is cut off, so is the other one. If only the
// backend closes, the client still gets all of the answer.
func TestUpgradeCut(t *testing.T) {
	for _, c := range []struct {
		name            string
		act             func(t *testing.T, client net.Conn, raw *net.TCPConn, backend net.Conn)
		client, backend string // how they see the other's data stop
	}{
		{"nothing", func(t *testing.T, client net.Conn, _ *net.TCPConn, backend net.Conn) {
			_ = client.(closeWriter).CloseWrite()
			_ = backend.(closeWriter).CloseWrite()
		}, whole, whole},
		{"client resets", func(t *testing.T, _ net.Conn, raw *net.TCPConn, _ net.Conn) { cutConn(raw, true) }, "", cut},
		{"client ends without close_notify", func(t *testing.T, _ net.Conn, raw *net.TCPConn, _ net.Conn) {
			_ = raw.CloseWrite()
		}, cut, cut},
		{"backend resets", func(t *testing.T, _ net.Conn, _ *net.TCPConn, backend net.Conn) { cutConn(backend, true) }, cut, ""},
		{"backend closes", func(t *testing.T, client net.Conn, _ *net.TCPConn, backend net.Conn) {
			go func() {
				for data := make([]byte, 10000); ; { // stops at the test's deadline or when the connection is closed
					if _, err := client.Write(data); err != nil {
						return
					}
				}
			}()
			write(t, backend, strings.Repeat("x", 10_000))
			read(t, backend, 10000) // so that the proxy is passing on data
			_ = backend.(closeWriter).CloseWrite()
			_ = backend.Close() // with data unread: an RST follows
		}, "answer", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, l := newWorld(t), listen(t)
			config := w.config("ossl", terminator.Site{Backend: terminator.Backend{To: "http://" + l.Addr().String()}})
			config.Limits.Idle = terminator.Time(time.Second)
			r := w.start(config)
			client := r.strictDial(t)
			raw := client.NetConn().(*net.TCPConn)
			write(t, client, upgradeRequest)
			backend := accept(t, l)
			if _, err := http.ReadRequest(bufio.NewReader(backend)); err != nil {
				t.Fatal(err)
			}
			write(t, backend, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhello")
			reader := bufio.NewReader(client)
			if _, err := http.ReadResponse(reader, nil); err != nil {
				t.Fatal(err)
			}
			read(t, reader, 5)
			write(t, client, "hello")
			read(t, backend, 5)
			c.act(t, client, raw, backend)
			if c.client != "" {
				n, err := io.Copy(io.Discard, reader)
				switch {
				case c.client == "answer" && err == nil && n == 10_000:
				case (c.client == whole) != (err == nil), c.client == "answer":
					t.Errorf("the client gets %d bytes, %v", n, err)
				}
			}
			if c.backend != "" {
				if n, err := io.Copy(io.Discard, backend); n > 0 || (c.backend == whole) != (err == nil) {
					t.Errorf("the backend gets %d bytes, %v", n, err)
				}
			}
		})
	}
}

// TestUnaskedUpgrade: a backend that changes the protocol, which the client has not asked for, is cut off.
func TestUnaskedUpgrade(t *testing.T) {
	w, l := newWorld(t), listen(t)
	r := w.start(w.config("ossl", terminator.Site{Backend: terminator.Backend{To: "http://" + l.Addr().String()}}))
	for _, request := range []string{
		"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", strings.ReplaceAll(upgradeRequest, "echo", "other"),
	} {
		client := r.mustDial(nil)
		write(t, client, request)
		backend := accept(t, l)
		if _, err := http.ReadRequest(bufio.NewReader(backend)); err != nil {
			t.Fatal(err)
		}
		write(t, backend, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		if resp, err := http.ReadResponse(bufio.NewReader(client), nil); err != nil || resp.StatusCode != http.StatusBadGateway {
			t.Errorf("%v, %v", resp, err)
		}
		if n, err := io.Copy(io.Discard, backend); n > 0 || err != nil {
			t.Errorf("the backend gets %d bytes, %v", n, err)
		}
	}
}

// TestHintsAndContinue: informational responses don't mix with net/http's 100 (Continue).
func TestHintsAndContinue(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), listen(t)
	r := w.start(w.config("ossl", terminator.Site{Backend: terminator.Backend{To: "http://" + l.Addr().String()}}))
	client := r.mustDial(func(config *tls.Config) { config.NextProtos = []string{"http/1.1"} })
	write(t, client, "PUT / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
	backend := accept(t, l)
	request, err := http.ReadRequest(bufio.NewReader(backend))
	if err != nil {
		t.Fatal(err)
	}
	hints := "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
	write(t, backend, hints+hints) // while the proxy waits for the body: it drops them, unless it is late
	reader := bufio.NewReader(client)
	want := "HTTP/1.1 100 Continue\r\n\r\n"
	if got := read(t, reader, len(want)); got != want {
		t.Errorf("%q", got)
	}
	write(t, client, "bo")
	read(t, request.Body, 2)
	last := strings.ReplaceAll(hints, "</a>", "</b>")
	write(t, backend, last)
	for got := hints; got == hints; {
		if got = read(t, reader, len(last)); got != hints && got != last {
			t.Errorf("%q", got)
		}
	}
	write(t, client, "dy")
	read(t, request.Body, 2)
	write(t, backend, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
	if resp, err := http.ReadResponse(reader, nil); err != nil || resp.StatusCode != 204 {
		t.Errorf("%v, %v", resp, err)
	}
}
