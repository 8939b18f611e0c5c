package terminator_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestLateRead: a Read of the request's body fails after the handler has returned. Transports may
// make one, on a goroutine whose panic would crash the process.
func TestLateRead(t *testing.T) {
	protocols(t, func(t *testing.T, http2 bool) {
		bodies := make(chan io.Reader, 1)
		handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { bodies <- r.Body })
		server := httptest.NewUnstartedServer(terminator.ProgressHandler(handler, terminator.Time(time.Hour)))
		server.EnableHTTP2 = http2
		server.StartTLS()
		defer server.Close()
		response, err := server.Client().Post(server.URL, "", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if n, err := (<-bodies).Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("%d, %v", n, err)
		}
	})
}
