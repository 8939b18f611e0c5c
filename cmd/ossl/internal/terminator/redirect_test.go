package terminator_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestRedirect: plain HTTP is redirected to the same resource over HTTPS, but only to the sites'
// names.
func TestRedirect(t *testing.T) {
	w := newWorld(t)
	c := w.config("ossl", terminator.Site{Names: []string{"localhost", "*.test"}, Root: w.folder(nil)})
	path := shortFolder(t) + "/s"
	c.Redirect, c.RedirectPort = []string{"unix:" + path}, 8443
	r := w.start(c)
	send := func(text string) *http.Response {
		t.Helper()
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		write(t, conn, text)
		reader := bufio.NewReader(conn)
		resp, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		if rest, err := io.ReadAll(reader); err != nil || len(rest) > 0 || !resp.Close {
			t.Errorf("%q: the connection goes on: %q, %v", text, rest, err)
		}
		return resp
	}
	for _, test := range []struct {
		request, host string
		status        int
		location      string
	}{
		{"GET /a%2Fb/?x=%0d&y HTTP/1.1", "localhost", 301, "https://localhost:8443/a%2Fb/?x=%0d&y"},
		{"HEAD / HTTP/1.1", "a.test:80", 301, "https://a.test:8443/"},
		{"POST /form HTTP/1.1", "LOCALHOST.", 308, "https://LOCALHOST.:8443/form"},
		{"GET //evil.example/.. HTTP/1.1", "localhost", 301, "https://localhost:8443//evil.example/.."},
		{"GET http://localhost/x HTTP/1.1", "evil.example", 301, "https://localhost:8443/x"},
		{"GET / HTTP/1.1", "evil.example", 421, ""},
		{"GET http://evil.example/ HTTP/1.1", "localhost", 421, ""},
		{"GET / HTTP/1.1", "localhost@evil.example", 400, ""},
		{"GET / HTTP/1.1", "a.test/evil.example", 400, ""},
		{"GET / HTTP/1.1", "", 400, ""},
		{"OPTIONS * HTTP/1.1", "localhost", 400, ""},
		{"CONNECT localhost:443 HTTP/1.1", "localhost:443", 400, ""},
	} {
		resp := send(test.request + "\r\nHost: " + test.host + "\r\nContent-Length: 0\r\n\r\n")
		if resp.StatusCode != test.status || resp.Header.Get("Location") != test.location {
			t.Errorf("%s of %q: %d to %q, want %d to %q", test.request, test.host, resp.StatusCode, resp.Header.Get("Location"),
				test.status, test.location)
		}
	}
	if resp := send("GET /none HTTP/1.0\r\n\r\n"); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("no host: %d", resp.StatusCode)
	}
	r.log.await(t, "msg=redirect", "path=/form", "status=308")

	changed := *c
	changed.Redirect = nil
	changed.RedirectPort = 0
	if err := r.Reload(t.Context(), &changed); err == nil || !strings.Contains(err.Error(), "redirect can't change") {
		t.Errorf("a reload: %v", err)
	}
	for _, wrong := range []func(c *terminator.Config){
		func(c *terminator.Config) { c.Redirect = []string{"systemd"} },
		func(c *terminator.Config) { c.Redirect = []string{"80"} },
		func(c *terminator.Config) { c.Redirect = nil },
		func(c *terminator.Config) { c.RedirectPort = 70000 },
		func(c *terminator.Config) { c.Sites = []terminator.Site{tcp("127.0.0.1:1")} },
	} {
		config := *c
		config.Sites = append([]terminator.Site(nil), c.Sites...)
		wrong(&config)
		for i := range config.Sites {
			config.Sites[i].Pairs = c.Sites[0].Pairs
		}
		if err := config.Check(); err == nil || !strings.Contains(err.Error(), "redirect") {
			t.Errorf("%v", err)
		}
	}
}

// TestRedirectPort: without a setting, the redirect goes to the TLS port.
func TestRedirectPort(t *testing.T) {
	for listen, want := range map[string]string{
		":443": "", "127.0.0.1:8443": "8443", "[::]:https": "", "unix:/s,0.0.0.0:8443": "8443", "0.0.0.0:8443,:443": "", "systemd": "",
		"0.0.0.0:1,0.0.0.0:2": "1",
	} {
		c := &terminator.Config{Listen: strings.Split(listen, ",")}
		if got := terminator.PortOfTLS(c); got != want {
			t.Errorf("%s: %q, want %q", listen, got, want)
		}
	}
}
