package httptls_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestRequests(t *testing.T) {
	compare(t, func(t *testing.T, p pairing) string {
		s := p.server.start(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%s %s %s %s %d %q %v tls=%v alpn=%q", r.Method, r.URL, r.Proto, r.Header.Get("User-Agent"), r.ContentLength,
				body, err, r.TLS != nil, r.TLS.NegotiatedProtocol)
		})})
		c := p.client.client(t, nil, p.http2)
		var out strings.Builder
		do := func(resp *http.Response, err error) {
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			fmt.Fprintf(&out, "%s %s %d %v tls=%v %x %q %v\n", resp.Status, resp.Proto, resp.ContentLength, err,
				resp.TLS != nil, resp.TLS.Version, resp.TLS.NegotiatedProtocol, resp.Request.URL.Path)
			out.Write(body)
			out.WriteString("\n")
		}
		do(c.Get(s.url("/a")))
		do(c.Post(s.url("/b"), "text/plain", strings.NewReader("some text")))
		do(c.Post(s.url("/b"), "text/plain", io.MultiReader(strings.NewReader("some "), strings.NewReader("text"))))
		do(c.Head(s.url("/a")))
		return out.String()
	})
}
