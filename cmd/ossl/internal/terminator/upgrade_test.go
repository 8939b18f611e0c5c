package terminator_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

const upgradeRequest = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"

// TestEarlyUpgrade: data that either end sends right behind the upgrade is passed on, and so are the
// ends of both directions.
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
