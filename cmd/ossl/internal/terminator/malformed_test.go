package terminator_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"maps"
	"slices"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// send2 sends a request of HTTP/2, whose fields net/http's client would refuse, and returns the
// status of the response, or "refused" if the stream or the connection ends.
func (r *running) send2(t *testing.T, fields map[string]string) string {
	t.Helper()
	conn := r.mustDial(func(config *tls.Config) { config.NextProtos = []string{"h2"} })
	write(t, conn, http2.ClientPreface)
	framer := http2.NewFramer(conn, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	names := slices.Sorted(maps.Keys(fields)) // the names with a colon are the first ones
	for _, name := range names {
		if err := encoder.WriteField(hpack.HeaderField{Name: name, Value: fields[name]}); err != nil {
			t.Fatal(err)
		}
	}
	err := errors.Join(framer.WriteSettings(), framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1,
		BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true}))
	if err != nil {
		t.Fatal(err)
	}
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			return frame.PseudoValue("status")
		case *http2.RSTStreamFrame, *http2.GoAwayFrame:
			return "refused"
		}
	}
}

// TestMalformed: requests that net/http accepts, and whose meaning for a backend may be another one
// than for the proxy, are refused.
func TestMalformed(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		w := newWorld(t)
		r := w.start(w.config(engine, terminator.Site{Backend: echo(t)}))
		for host, status := range map[string]int{
			"localhost": 200, "LOCALHOST.:443": 200, "a_b.test:": 200, "127.0.0.1": 200, "[::1]:443": 200, "[::1]": 200,
			"": 400, "a.test:443:443": 400, "a.test:x": 400, "a.test,b.test": 400, "a.test;b": 400, "[a.test]": 400,
			"[::1": 400, "::1": 400, "[fe80::1%25eth0]": 400, "[::1]x": 400, "a..test": 400, ".a.test": 400, "a.test..": 400,
			":443": 400, "a%2etest": 400,
		} {
			if got, body := r.send(t, "GET / HTTP/1.1\r\nHost: "+host+"\r\n\r\n"); got != status {
				t.Errorf("host %q: %d %q, want %d", host, got, body, status)
			}
		}
		for target, status := range map[string]int{
			"http://localhost": 200, "http://localhost/a": 200, "x:@other.test": 400, "*": 400,
			"http://\xef\xbd\x81dmin.test/": 400, "http://a:443:443/": 400,
		} {
			if got, body := r.send(t, "GET "+target+" HTTP/1.1\r\nHost: localhost\r\n\r\n"); got != status {
				t.Errorf("target %q: %d %q, want %d", target, got, body, status)
			}
		}
		right := map[string]string{":method": "GET", ":scheme": "https", ":authority": "localhost", ":path": "/?x"}
		for _, c := range []struct{ name, value string }{
			{":method", "GE T"}, {":path", "/?x HTTP/1.0"}, {":path", "*"}, {":authority", "localhost other"},
			{":authority", "\xef\xbd\x81dmin.test"}, {":authority", "user@localhost"},
		} {
			fields := maps.Clone(right)
			fields[c.name] = c.value
			if got := r.send2(t, fields); got != "400" && got != "refused" {
				t.Errorf("%s %q: %s", c.name, c.value, got)
			}
		}
		for _, c := range []struct{ name, value string }{ // RFC 9113, sections 8.2 and 8.2.2
			{"connection", "close"}, {"transfer-encoding", "chunked"}, {"upgrade", "h2c"}, {"keep-alive", "1"},
			{"proxy-connection", "close"}, {"Upper", "x"}, {"x", "a\r\nInjected: b"}, {"x", "a\x00"}, {"a b", "x"}, {"a:b", "x"},
			{"te", "gzip"},
		} {
			fields := maps.Clone(right)
			fields[c.name] = c.value
			if got := r.send2(t, fields); got != "400" && got != "refused" {
				t.Errorf("%s %q: %s", c.name, c.value, got)
			}
		}
		if got := r.send2(t, right); got != "200" {
			t.Errorf("a correct request: %s", got)
		}
	})
}
