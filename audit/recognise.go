package audit

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ossl-go/ossl/audit/internal/hello"
)

// recognise looks for another protocol than TLS after the first hello failed. It reports whether the
// server speaks one in which TLS can begin, and sets the target's protocol to it. If the server speaks
// plain HTTP, it sets noTLS.
func (p *protocols) recognise(err error) bool {
	r := p.run
	var syntax *hello.SyntaxError
	switch {
	case p.good != nil:
		return false
	case errors.As(err, &syntax) && plainHTTP(syntax.Data):
		p.noTLS = fmt.Errorf("%w: the server speaks plain HTTP", ErrNoTLS)
		return false
	case r.target.Protocol != "tls":
		return false
	case errors.As(err, &syntax):
		r.target.Protocol = greeter(syntax.Data)
	case errors.As(err, new(*unansweredError)): // as PostgreSQL does
		r.target.Protocol = "postgres"
		conn, err := r.dial(p.ctx, r.address)
		if err == nil {
			conn.Close()
		} else {
			r.target.Protocol = "tls"
		}
	}
	if r.target.Protocol == "tls" {
		return false
	}
	r.dropSpare() // it is for another protocol
	p.lies = nil
	return true
}

// plainHTTP reports whether an answer is HTTP: a status, or a page without one, as in HTTP/0.9.
func plainHTTP(answer []byte) bool {
	text := strings.ToLower(string(answer))
	return strings.HasPrefix(text, "http/") || strings.HasPrefix(text, "<!doctype html") || strings.HasPrefix(text, "<html")
}

// greeter returns the protocol of a server that spoke first, or "tls" if it isn't known.
func greeter(greeting []byte) string {
	text := string(greeting)
	switch {
	case strings.HasPrefix(text, "220") && !strings.Contains(strings.ToUpper(text), "FTP"):
		return "smtp"
	case strings.HasPrefix(text, "* OK"):
		return "imap"
	case strings.HasPrefix(text, "+OK"):
		return "pop3"
	case len(greeting) > 4 && greeting[3] == 0 && greeting[4] == 10:
		return "mysql"
	}
	return "tls"
}
