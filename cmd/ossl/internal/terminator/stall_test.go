package terminator_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestStalledBackend: a backend that takes no more of a request's body, or sends no more of its
// response's, doesn't keep the request; one that goes on slowly does.
func TestStalledBackend(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, engine string) { testStalledBackend(t, engine) })
}

func testStalledBackend(t *testing.T, engine string) {
	done := make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/body":
			<-done
		case "/answer":
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done() // and then completes its response
		case "/slow":
			_, _ = io.Copy(io.Discard, r.Body)
			for range 15 {
				<-time.After(limit / 10)
				_, _ = io.WriteString(w, "x")
				_ = http.NewResponseController(w).Flush()
			}
		}
	})
	w := newWorld(t)
	server := func(http2 bool) string {
		s := httptest.NewUnstartedServer(handler)
		s.TLS = &tls.Config{Certificates: w.certificates(w.pair(false, "127.0.0.1"))}
		s.EnableHTTP2 = http2
		s.StartTLS()
		t.Cleanup(s.Close)
		return s.URL
	}
	plain := httptest.NewServer(handler)
	t.Cleanup(plain.Close)
	backends := map[string]terminator.Backend{
		"plain":  {To: plain.URL},
		"HTTP/1": {To: server(false), CA: w.authority.File},
		"HTTP/2": {To: server(true), CA: w.authority.File},
	}
	t.Cleanup(func() { close(done) }) // before the servers' Close, which waits for their handlers
	for name, backend := range backends {
		config := w.config(engine, terminator.Site{Backend: backend})
		config.Limits.Idle = terminator.Time(limit)
		r := w.start(config)
		for _, http2 := range []bool{false, true} {
			for _, path := range []string{"/body", "/answer", "/slow"} {
				t.Run(name+path+map[bool]string{false: "/from HTTP1", true: "/from HTTP2"}[http2], func(t *testing.T) {
					t.Parallel()
					request, err := http.NewRequest("POST", "https://localhost"+path, endless{})
					if err != nil {
						t.Fatal(err)
					}
					if path != "/body" {
						request.Body = http.NoBody
					}
					response, err := r.client(http2, nil).Do(request)
					if path == "/body" {
						if err == nil && response.StatusCode != 504 && response.StatusCode != 408 { // the client was slow, in a rare case
							t.Errorf("status %s", response.Status)
						}
						r.log.await(t, "path=/body", "protocol=HTTP/"+map[bool]string{false: "1.1", true: "2.0"}[http2])
						return
					}
					if err != nil {
						t.Fatal(err)
					}
					got, err := io.ReadAll(response.Body)
					if path == "/answer" && err == nil || path == "/slow" && (err != nil || len(got) != 15) {
						t.Errorf("%q, %v", got, err)
					}
				})
			}
		}
	}
}

// TestLateTimers: a timer that a read of a body sets when it has just become idle doesn't cancel the
// request.
func TestLateTimers(t *testing.T) {
	if !terminator.LateTimers(false) {
		t.Error("a body that isn't taken doesn't end the request")
	}
	if terminator.LateTimers(true) {
		t.Error("the request is ended between two reads of the response")
	}
}

// Endless is the reader of a body without an end.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }
