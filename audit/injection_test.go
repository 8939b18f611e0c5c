package audit

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/audit/internal/testcert"
)

// A bufferedConn reads the bytes that a bufio.Reader has buffered first.
type bufferedConn struct {
	net.Conn
	in *bufio.Reader
}

func (c bufferedConn) Read(b []byte) (int, error) { return c.in.Read(b) }

// TestInjection tests SMTP, IMAP and POP3 servers that keep commands when TLS begins, and servers
// that discard them.
func TestInjection(t *testing.T) {
	c := testcert.Cases()[0]
	config := &tls.Config{Certificates: []tls.Certificate{c.Leaf.TLS(c.Sent...)}}
	type script struct{ protocol, greeting, request, consent, answered, refused string }
	for _, s := range []script{
		{"smtp", "220 mx\r\n", "STARTTLS", "220 go\r\n", "250 OK\r\n", "221 bye\r\n"},
		{"imap", "* OK\r\n", "a STARTTLS", "a OK\r\n", "b OK\r\n", "* BYE\r\n"},
		{"pop3", "+OK\r\n", "STLS", "+OK\r\n", "+OK\r\n.\r\n", "-ERR\r\n"},
	} {
		for _, vulnerable := range []bool{true, false} {
			address := serve(t, func(conn net.Conn, _ int) {
				io.WriteString(conn, s.greeting)
				in := bufio.NewReader(conn)
				for {
					line, err := in.ReadString('\n')
					if err != nil {
						return
					}
					if strings.HasPrefix(line, s.request) {
						break
					}
					io.WriteString(conn, "250-mx\r\n250 STARTTLS\r\n")
				}
				kept := make([]byte, in.Buffered())
				io.ReadFull(in, kept)
				io.WriteString(conn, s.consent)
				server := tls.Server(bufferedConn{conn, in}, config)
				if vulnerable && len(kept) > 0 {
					io.WriteString(server, s.answered)
				}
				respond(server, s.refused)
			})
			r := newRun(address, &c, nil)
			r.target.Protocol = s.protocol
			if err := probeInjection(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if f := r.facts.Injection; f.State != Tested || f.On != vulnerable || r.cost.Connections != 1 {
				t.Errorf("%s, vulnerable %v: %+v, cost %+v", s.protocol, vulnerable, f, r.cost)
			}
		}
	}
}
