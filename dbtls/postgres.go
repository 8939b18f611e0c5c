package dbtls

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/ossl-go/ossl"
)

// DialPostgres connects to a PostgreSQL server with SSLRequest (PostgreSQL's documentation, section
// "SSL Session Encryption"). The driver must have sslmode=disable.
func (d *Dialer) DialPostgres(ctx context.Context, network, addr string) (net.Conn, error) {
	return d.dial(ctx, network, addr, "PostgreSQL", requestSSL)
}

// sslRequest has the length 8, and the code 80877103 in the place of a version.
const sslRequest = "\x00\x00\x00\x08\x04\xd2\x16\x2f"

func requestSSL(_ context.Context, p *prelude) (net.Conn, error) {
	p.step = "SSLRequest"
	if err := p.send([]byte(sslRequest)); err != nil {
		return nil, err
	}
	answer, err := p.in.ReadByte()
	switch {
	case err != nil:
		return nil, err
	case answer == 'S':
		return p.conn, nil
	case answer == 'N':
		return nil, ErrNoTLS
	case answer == 'E':
		// The message is not quoted: anybody could have written it (CVE-2024-10977).
		return nil, errors.New("the server answered with an error message")
	}
	return nil, fmt.Errorf("the server answered with byte %#02x, not S or N", answer)
}

// postgresProtocol is the name for ALPN.
const postgresProtocol = "postgresql"

// DialPostgresDirect connects to a PostgreSQL server, 17 or later, that expects TLS from the first
// byte (sslnegotiation=direct of libpq), which saves a round trip. The driver must have
// sslmode=disable. The Context's NextProtos must have "postgresql": if server and client don't agree
// on it, DialPostgresDirect fails.
func (d *Dialer) DialPostgresDirect(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := d.dial(ctx, network, addr, "PostgreSQL", func(_ context.Context, p *prelude) (net.Conn, error) {
		return p.conn, nil
	})
	if err != nil {
		return nil, err
	}
	// PostgreSQL demands ALPN of direct connections, so that they can't be relayed from or to servers
	// of other protocols.
	if got := conn.(*ossl.Conn).ConnectionState().NegotiatedProtocol; got != postgresProtocol {
		conn.Close()
		return nil, &Error{"PostgreSQL", "ALPN", fmt.Errorf("server and client agreed on %s, not on %q", quote(got), postgresProtocol)}
	}
	return conn, nil
}
