package audit

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ossl-go/ossl/audit/internal/client"
	"github.com/ossl-go/ossl/audit/internal/hello"
)

const (
	httpHeader = 64 << 10        // bytes of a response that are read
	httpText   = 500             // bytes of a header's value that are kept
	plainWait  = 2 * time.Second // for an answer on port 80, whose packets a firewall may drop
)

// probeHTTP asks for the server's page by HTTPS, and by plain HTTP if the target is on HTTPS's own
// port. It reads the headers only.
func probeHTTP(ctx context.Context, r *run) error {
	f := &r.facts.HTTP
	reason := ""
	switch {
	case r.options.NoHTTP:
		reason = "it wasn't asked for"
	case r.target.Protocol != "https":
		reason = "the target is not HTTPS"
	}
	if reason != "" {
		f.Outcome = Outcome{NotTested, reason}
		f.Redirect = f.Outcome
		return nil
	}
	_, f.NoName = r.target.ip()
	r.overTLS(ctx, f)
	if ctx.Err() == nil {
		r.plain(ctx, f)
	}
	return ctx.Err()
}

func (r *run) overTLS(ctx context.Context, f *HTTPFacts) {
	var response *http.Response
	err := r.again(ctx, func() (err error) {
		response, err = r.get(ctx, r.address, true)
		return err
	})
	if err != nil {
		f.Outcome = failed(err)
		return
	}
	f.Outcome = Outcome{State: Tested}
	header := response.Header
	f.HSTS = text(header.Get("Strict-Transport-Security"))
	f.HSTSAge = maxAge(f.HSTS)
	f.HTTP3 = text(header.Get("Alt-Svc"))
	if r.facts.Server == "" {
		r.facts.Server = text(header.Get("Server"))
	}
	if extra := r.facts.Extra; extra != nil {
		extra.Status = response.StatusCode
		for _, name := range securityHeaders {
			if value := header.Get(name); value != "" {
				extra.Headers[name] = text(value)
			}
		}
	}
}

// plain asks on port 80 of the same address.
func (r *run) plain(ctx context.Context, f *HTTPFacts) {
	host, _, err := net.SplitHostPort(r.address)
	switch {
	case err != nil:
		f.Redirect = failed(err)
		return
	case r.target.Port != 443:
		f.Redirect = Outcome{NotTested, "only HTTPS on port 443 has plain HTTP on a known port, 80"}
		return
	}
	address := net.JoinHostPort(host, "80")
	wait, cancel := context.WithTimeout(ctx, min(plainWait, r.options.Timeout))
	defer cancel()
	response, err := r.get(wait, address, false)
	var dial *net.OpError
	switch {
	case ctx.Err() != nil:
		f.Redirect = Outcome{Failed, "the audit was interrupted"}
	case errors.Is(err, errBudget):
		f.Redirect = failed(err)
	case err != nil && (errors.As(err, &dial) && dial.Op == "dial" || wait.Err() != nil):
		f.Redirect = Outcome{NotTested, "nothing answers on port 80"}
	case err != nil:
		f.Redirect = failed(err)
	default:
		f.Redirect = Outcome{State: Tested}
		f.PlainStatus = response.StatusCode
		if response.StatusCode/100 == 3 {
			f.Redirects = text(response.Header.Get("Location"))
		}
	}
}

// get requests the page "/", and reads the response's headers.
func (r *run) get(ctx context.Context, address string, encrypted bool) (*http.Response, error) {
	plain, err := r.dial(ctx, address)
	if err != nil {
		return nil, err
	}
	defer plain.Close()
	defer context.AfterFunc(ctx, func() { plain.SetDeadline(time.Now()) })()
	var conn io.ReadWriter = plain
	if deadline, ok := ctx.Deadline(); ok {
		if err := plain.SetDeadline(deadline); err != nil {
			return nil, err
		}
	}
	if encrypted {
		encrypted := tls.Client(plain, r.anyServer())
		err := encrypted.HandshakeContext(ctx)
		conn = encrypted
		if err != nil && strings.Contains(err.Error(), "failed to parse certificate") { // crypto/x509 is stricter than the audit
			own, err := r.shakeHTTP(ctx, address)
			if err != nil {
				return nil, err
			}
			defer own.Close()
			conn = own
		} else if err != nil {
			return nil, tlsError(err)
		} else {
			r.count(func(c *Cost) { c.Handshakes++; c.Signatures++ })
		}
	}
	request := "GET / HTTP/1.1\r\nHost: " + r.host() + "\r\nUser-Agent: ossl-check\r\nAccept: */*\r\nConnection: close\r\n\r\n"
	if _, err := io.WriteString(conn, request); err != nil {
		return nil, err
	}
	response, err := readResponse(conn)
	if err != nil {
		return nil, fmt.Errorf("the answer is not HTTP: %w", err)
	}
	return response, nil
}

// shakeHTTP makes a handshake for HTTP/1.1 without crypto/tls.
func (r *run) shakeHTTP(ctx context.Context, address string) (*shaken, error) {
	version := hello.TLS12
	if _, offered := r.offers("TLS 1.3"); offered {
		version = hello.TLS13
	}
	h := client.Default(r.serverName(), version)
	return r.shake(ctx, address, version, &client.Config{Hello: h, ALPN: []string{"http/1.1"}})
}

// host returns the target as a request names it: RFC 9110, section 7.2.
func (r *run) host() string {
	host := net.JoinHostPort(r.options.ServerName, strconv.Itoa(int(r.target.Port)))
	if r.target.Port == 443 {
		host = strings.TrimSuffix(host, ":443")
	}
	return host
}

// readResponse reads the headers of a response, and of interim responses before it: RFC 9110,
// section 15.2. It doesn't read the body; the connection is closed instead.
func readResponse(conn io.Reader) (*http.Response, error) {
	in := bufio.NewReader(io.LimitReader(conn, httpHeader))
	for {
		response, err := http.ReadResponse(in, nil)
		if err != nil || response.StatusCode >= 200 || response.StatusCode == http.StatusSwitchingProtocols {
			return response, err
		}
	}
}

// tlsError wraps an alert of the server, for which another try is of no use, in errRefused.
func tlsError(err error) error {
	var alert tls.AlertError
	var header tls.RecordHeaderError
	if errors.As(err, &alert) || errors.As(err, &header) || strings.HasPrefix(err.Error(), "tls:") {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	return err
}

// text returns a header's value without control characters, and cut to httpText bytes.
func text(s string) string {
	s = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return -1
		}
		return c
	}, strings.ToValidUTF8(s, "?"))
	if len(s) > httpText {
		s = strings.ToValidUTF8(s[:httpText], "") + "…"
	}
	return s
}

// maxAge returns max-age of Strict-Transport-Security, or 0 if it is missing or malformed (RFC 6797,
// section 6.1).
func maxAge(header string) int {
	for directive := range strings.SplitSeq(header, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		if !strings.EqualFold(strings.TrimSpace(name), "max-age") {
			continue
		}
		n, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(value), `"`), 10, 31)
		if errors.Is(err, strconv.ErrRange) {
			return 1<<31 - 1
		}
		return int(n)
	}
	return 0
}
