package httptls_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
)

// TestPostAndGo: a client posts and closes its connection without reading. The handler reads after
// that, or after a delay, and gets the whole body. Unread tickets in the client's socket would
// destroy data in transit.
func TestPostAndGo(t *testing.T) {
	for _, stack := range stacks {
		for _, client := range []string{"ossl", "crypto/tls"} {
			t.Run("server="+stack.name+"/client="+client, func(t *testing.T) {
				type body struct {
					n   int64
					err error
				}
				gone, bodies := make(chan chan struct{}, 1), make(chan body, 1)
				config := serverConfig()
				config.SessionTicketsDisabled = false
				s := stack.start(t, &http.Server{TLSConfig: config, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					select {
					case <-<-gone:
					case <-time.After(50 * time.Millisecond): // a large body is not fully written before it is read
					}
					n, err := io.Copy(io.Discard, r.Body)
					bodies <- body{n, err}
				})})
				cc := clientConfig()
				cc.ServerName, cc.ClientSessionCache = "127.0.0.1", tls.NewLRUClientSessionCache(0)
				for _, size := range []int{1, 10_000, 100_000, 1_000_000, 10_000_000} {
					raw, err := net.Dial("tcp", s.addr)
					if err != nil {
						t.Fatal(err)
					}
					var conn net.Conn = tls.Client(raw, cc)
					if client == "ossl" {
						conn = ossl.Client(raw, cc)
					}
					closed := make(chan struct{})
					gone <- closed
					request := fmt.Appendf(nil, "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: %d\r\n\r\n", size)
					if _, err := conn.Write(append(request, make([]byte, size)...)); err != nil {
						t.Error(err)
					}
					if err := conn.Close(); err != nil {
						t.Error(err)
					}
					close(closed)
					if got := await(t, "the body", bodies); got.n != int64(size) || got.err != nil {
						t.Errorf("%d of %d bytes, %v", got.n, size, got.err)
					}
				}
			})
		}
	}
}

// TestTicketsOfAServer: the tickets come with the first data that a server sends: a response, or
// HTTP/2's settings.
func TestTicketsOfAServer(t *testing.T) {
	eachPairing(t, func(t *testing.T, p pairing) {
		config := serverConfig()
		config.SessionTicketsDisabled = false
		s := p.server.start(t, &http.Server{TLSConfig: config, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			fmt.Fprint(w, r.Proto, " ", r.TLS.DidResume)
		})})
		cache := tls.NewLRUClientSessionCache(0)
		for i, want := range []bool{false, true, true} {
			cc := clientConfig()
			cc.ClientSessionCache = cache
			c := p.client.client(t, &http.Transport{TLSClientConfig: cc}, p.http2)
			got := fetch(t, c, s.url("/"))
			proto := "HTTP/1.1"
			if p.http2 {
				proto = "HTTP/2.0"
			}
			if got != fmt.Sprint(proto, " ", want) {
				t.Errorf("connection %d: %s, not %v", i+1, got, want)
			}
			c.CloseIdleConnections()
		}
	})
}
