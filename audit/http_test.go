package audit

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/audit/internal/testcert"
	"github.com/ossl-go/ossl/policy"
)

// respond writes a response after a request's first bytes.
func respond(conn io.ReadWriter, response string) {
	conn.Read(make([]byte, 4096))
	io.WriteString(conn, response)
}

func TestHTTP(t *testing.T) {
	c := testcert.Cases()[0]
	const page = "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nContent-Length: 0\r\n"
	for _, test := range []struct {
		name, secure, plain string // plain: "closed", or a response
		redirect, hsts      string // the findings' severities; "not tested", "failed"
		server              string
	}{
		{"good", page + "Strict-Transport-Security: includeSubDomains; max-age=\"31536000\"\r\nAlt-Svc: h3=\":443\"\r\n\r\n",
			"HTTP/1.1 301 Moved\r\nLocation: https://localhost/\r\nContent-Length: 0\r\n\r\n", "", "", "nginx/1.22.1"},
		{"closed port", page + "Strict-Transport-Security: max-age=60\r\n\r\n", "closed", "not tested", "low", "nginx/1.22.1"},
		{"plain page", page + "\r\n", page + "\r\n", "medium", "low", "nginx/1.22.1"},
		{"plain error", page + "Strict-Transport-Security: max-age=0\r\n\r\n", "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n",
			"", "low", "nginx/1.22.1"},
		{"redirect to plain HTTP", page + "\r\n", "HTTP/1.1 302 Found\r\nLocation: http://www.localhost/\r\n\r\n",
			"medium", "low", "nginx/1.22.1"},
		{"long page", "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nStrict-Transport-Security: max-age=3600\r\n" +
			"Content-Length: 90000\r\n\r\n" + strings.Repeat("x", 90000), "closed", "not tested", "", "nginx/1.22.1"},
		{"long page in chunks", "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nStrict-Transport-Security: max-age=3600\r\n" +
			"Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("400\r\n"+strings.Repeat("x", 1024)+"\r\n", 90),
			"closed", "not tested", "", "nginx/1.22.1"},
		{"early hints", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + page + "Strict-Transport-Security: max-age=3600\r\n\r\n",
			"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 301 Moved\r\nLocation: https://localhost/\r\n\r\n", "", "", "nginx/1.22.1"},
		{"endless header", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20), "SSH-2.0-x\r\n", "failed", "failed", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			config := &tls.Config{Certificates: []tls.Certificate{c.Leaf.TLS(c.Sent...)}}
			secure := serve(t, func(conn net.Conn, _ int) { respond(tls.Server(conn, config), test.secure) })
			plain := serve(t, func(conn net.Conn, _ int) { respond(conn, test.plain) })
			r := newRun(secure, &c, nil)
			r.options.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				if strings.HasSuffix(address, ":80") {
					if test.plain == "closed" {
						return nil, &net.OpError{Op: "dial", Err: io.EOF}
					}
					address = plain
				}
				return new(net.Dialer).DialContext(ctx, network, address)
			}
			if err := probeHTTP(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			p := &policy.Policy{Sockets: policy.Sockets{HSTS: policy.Limit{Value: 3600}}}
			for i, want := range []string{test.redirect, test.hsts} {
				findings, outcome := httpRules[i].check(&judgement{facts: r.facts, policy: p, at: time.Now()})
				got := string(outcome.State)
				if outcome.State == Tested {
					got = ""
					if len(findings) > 0 {
						got = string(findings[0].Severity)
					}
				}
				if got != want {
					t.Errorf("%s: %q, want %q: %+v, %+v", httpRules[i].ID, got, want, outcome, findings)
				}
			}
			if r.facts.Server != test.server {
				t.Errorf("server %q", r.facts.Server)
			}
			if r.cost.Bytes > 1<<19 {
				t.Errorf("%d bytes", r.cost.Bytes)
			}
		})
	}
}

func TestHTTPNotTested(t *testing.T) {
	r := newRun("127.0.0.1:1", &testcert.Cases()[0], nil)
	r.target.Protocol = "smtp"
	if err := probeHTTP(t.Context(), r); err != nil || r.facts.HTTP.State != NotTested || r.cost.Connections != 0 {
		t.Errorf("%v, %+v", err, r.facts.HTTP)
	}
}

// TestHost: requests name the port unless it is HTTPS's own, and have brackets around IPv6.
func TestHost(t *testing.T) {
	for want, target := range map[string]Target{
		"example.com":      {Host: "example.com", Port: 443},
		"example.com:8443": {Host: "example.com", Port: 8443},
		"[2001:db8::1]":    {Host: "2001:db8::1", Port: 443},
		"[::1]:4433":       {Host: "::1", Port: 4433},
	} {
		r := &run{target: target, options: Options{ServerName: target.Host}}
		if got := r.host(); got != want {
			t.Errorf("%+v: %q, want %q", target, got, want)
		}
	}
}

func TestMaxAge(t *testing.T) {
	for header, want := range map[string]int{
		"max-age=5": 5, "Max-Age = \"7\" ; preload": 7, "": 0, "includeSubDomains": 0, "max-age=-1": 0, "max-age=x": 0,
		"max-age=99999999999999999999": 1<<31 - 1,
	} {
		if got := maxAge(header); got != want {
			t.Errorf("%q: %d, want %d", header, got, want)
		}
	}
}
