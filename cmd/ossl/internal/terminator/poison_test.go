package terminator_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestDataBehindResponse: a client never gets data that the backend sends behind the response to another
// one, here to HEAD, which has no body.
func TestDataBehindResponse(t *testing.T) {
	const poison = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"
	w, l := newWorld(t), listen(t)
	config := w.config("ossl", terminator.Site{Backend: terminator.Backend{To: "http://" + l.Addr().String()}})
	config.Limits.BackendConns = 1
	r := w.start(config)
	heads := make(chan chan struct{})
	go handle(l, func(conn net.Conn) { serveBehind(conn, poison, heads) })
	for range 20 {
		first, second := r.client(false, nil), r.client(false, nil)
		done := make(chan error, 2)
		go func() {
			resp, err := first.Head("https://localhost/")
			if err == nil {
				_ = resp.Body.Close()
			}
			done <- err
		}()
		answer := <-heads // has arrived
		go func() {
			resp, err := second.Get("https://localhost/")
			if err == nil {
				defer resp.Body.Close()
				b := make([]byte, len("poison"))
				if n, _ := resp.Body.Read(b); string(b[:n]) != "fine" {
					err = fmt.Errorf("the client got %q", b[:n])
				}
			}
			done <- err
		}()
		time.Sleep(20 * time.Millisecond) // so that the second request likely waits for the connection
		close(answer)
		for range 2 {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
	}
}

// serveBehind answers requests, and sends more than the response to HEAD. heads gets a channel for each,
// which the test closes to have it answered.
func serveBehind(conn net.Conn, more string, heads chan<- chan struct{}) {
	for reader := bufio.NewReader(conn); ; {
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		answer := "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"
		if request.Method == http.MethodHead {
			goOn := make(chan struct{})
			heads <- goOn
			<-goOn
			answer += more
		} else {
			answer += "fine"
		}
		if _, err := conn.Write([]byte(answer)); err != nil {
			return
		}
	}
}

// TestClosedWhileIdle: a request with a body doesn't fail because the backend has closed a connection that
// it could have used.
func TestClosedWhileIdle(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		w, l := newWorld(t), listen(t)
		r := w.start(w.config(engine, terminator.Site{Backend: terminator.Backend{To: "http://" + l.Addr().String()}}))
		closed := make(chan struct{})
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				request, err := http.ReadRequest(bufio.NewReader(conn))
				if err == nil {
					var body []byte
					body, err = io.ReadAll(request.Body)
					_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
				}
				_ = conn.Close() // although the response promises more
				if err != nil {
					t.Error(err)
				}
				closed <- struct{}{}
			}
		}()
		protocols(t, func(t *testing.T, http2 bool) {
			client := r.client(http2, nil)
			for range 50 {
				resp, err := client.Post("https://localhost/", "text/plain", io.MultiReader(strings.NewReader("body")))
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if err != nil || resp.StatusCode != 200 || string(body) != "body" {
					t.Fatalf("%d, %q, %v", resp.StatusCode, body, err)
				}
				<-closed
			}
		})
	})
}
