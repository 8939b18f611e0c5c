package terminator_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// echo is a backend that answers with the request line and the header, as it has got them.
func echo(t *testing.T) terminator.Backend {
	l := listen(t)
	go handle(l, func(conn net.Conn) {
		reader, header := bufio.NewReader(conn), ""
		for !strings.HasSuffix(header, "\r\n\r\n") {
			line, err := reader.ReadString('\n')
			if err != nil {
				return
			}
			header += line
		}
		response := &http.Response{StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, Close: true,
			Body: io.NopCloser(strings.NewReader(header)), ContentLength: int64(len(header))}
		_ = response.Write(conn)
	})
	return terminator.Backend{To: "http://" + l.Addr().String()}
}

// send sends the text of an HTTP/1 request, and returns the status and the body of the response.
func (r *running) send(t *testing.T, text string) (int, string) {
	t.Helper()
	conn := r.mustDial(nil)
	write(t, conn, text)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// TestAliases: headers whose names CGI and its like take for the proxy's don't reach the backend:
// lighttpd takes every character for a hyphen that is no letter and no digit, and PHP takes a full
// stop.
func TestAliases(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		for _, underscores := range []bool{false, true} {
			w, backend := newWorld(t), echo(t)
			backend.UnderscoreHeaders = underscores
			r := w.start(w.config(engine, terminator.Site{Backend: backend}))
			for _, mark := range "!#$%&'*+.^_`|~" { // of tokens: RFC 9110, section 5.6.2
				var header strings.Builder
				for _, name := range []string{"Client-Cert", "Client-Cert-Chain", "X-Forwarded-For", "X-Forwarded-Proto", "Forwarded-"} {
					header.WriteString(strings.ReplaceAll(name, "-", string(mark)) + ": forged\r\n")
				}
				own := "X" + string(mark) + "Own"
				_, got := r.send(t, "GET / HTTP/1.1\r\nHost: localhost\r\n"+header.String()+"Proxy: forged\r\n"+own+": mine\r\n\r\n")
				if strings.Contains(strings.ReplaceAll(got, "Forwarded_: forged", ""), "forged") {
					t.Errorf("%q, underscores %v: the backend got %q", mark, underscores, got)
				}
				if strings.Contains(got, "mine") != (underscores && mark == '_') {
					t.Errorf("%s, underscores %v: the backend got %q", own, underscores, got)
				}
				if mark == '_' {
					continue
				}
				if status := r.send2(t, with(strings.ToLower(own), "mine")); status != 200 {
					t.Errorf("HTTP/2, %s: %d", own, status)
				}
			}
		}
	})
}

// TestNoHost: a backend doesn't get its own address as the host.
func TestNoHost(t *testing.T) {
	w, backend := newWorld(t), echo(t)
	r := w.start(w.config("ossl", terminator.Site{Backend: backend}))
	for _, c := range []struct{ name, header, host string }{
		{"localhost", "", "localhost"}, {"localhost", "Host: other.test\r\n", "other.test"}, {"", "", ""},
	} {
		conn := r.mustDial(func(config *tls.Config) {
			if config.ServerName = c.name; c.name == "" {
				config.ServerName = "127.0.0.1" // which clients don't send
			}
		})
		write(t, conn, "GET / HTTP/1.0\r\n"+c.header+"\r\n")
		got, err := io.ReadAll(conn)
		if want := "\r\nHost: " + c.host + "\r\n"; err != nil || !strings.Contains(string(got), want) {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
		if strings.Contains(string(got), "\r\nX-Forwarded-Host: ") != (c.header != "") {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
