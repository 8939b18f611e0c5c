package dbtls

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/ossl-go/ossl"
)

// A Dialer dials servers and changes to TLS. Its methods bound the name lookup, the connection, the
// dialogue before TLS and the handshake together: by their ctx, by NetDialer's Timeout and
// Deadline, and by one minute if neither sets a deadline. After that, ctx has no effect on the
// connection.
//
// A Dialer must not be changed once it is in use. Any number of goroutines may use it.
type Dialer struct {
	// Context is the compiled configuration. It is required.
	Context *ossl.Context

	// ServerName is the name that the server's certificate is verified for. If it is empty, the
	// Context's ServerName is used, and if that is empty too, the host of the address that is dialed.
	//
	// Drivers that look names up themselves dial IP addresses: pgx, also when it cancels a query, and
	// nats.go. They need a name here, or in the configuration.
	ServerName string

	// NetDialer makes the underlying connections. Nil is equivalent to the zero [net.Dialer].
	NetDialer *net.Dialer
}

// defaultTimeout bounds dialing if the caller sets no deadline: drivers may call a hook that has no
// context, and a server that never answers must not hold them forever.
const defaultTimeout = time.Minute

// DialTLS connects to addr and runs the handshake at once: for servers that expect TLS from the
// first byte, such as SMTPS, LDAPS and AMQPS servers, and NATS servers with handshake_first.
func (d *Dialer) DialTLS(ctx context.Context, network, addr string) (net.Conn, error) {
	return d.dial(ctx, network, addr, "TLS", func(_ context.Context, p *prelude) (net.Conn, error) { return p.conn, nil })
}

// An upgrade speaks a protocol until TLS begins, and returns the connection for the driver, which
// is p.conn or built on it.
type upgrade func(ctx context.Context, p *prelude) (net.Conn, error)

// dial runs upgrade on a new connection to addr, and then the handshake.
func (d *Dialer) dial(ctx context.Context, network, addr, protocol string, upgrade upgrade) (net.Conn, error) {
	ctx, cancel := d.bound(ctx)
	defer cancel()
	p, err := d.connect(ctx, network, addr, protocol)
	if err != nil {
		return nil, err
	}
	conn, err := p.run(ctx, upgrade)
	if err == nil {
		err = p.shakeHands(ctx)
	}
	if err != nil {
		p.raw.Close()
		return nil, err
	}
	return conn, nil
}

// bound returns a context with the earliest of ctx's and NetDialer's deadlines.
func (d *Dialer) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	_, bounded := ctx.Deadline()
	deadline := time.Now().Add(defaultTimeout)
	if nd := d.NetDialer; nd != nil {
		timeout := time.Now().Add(nd.Timeout)
		if nd.Timeout != 0 {
			deadline = timeout
		}
		if !nd.Deadline.IsZero() && (nd.Timeout == 0 || nd.Deadline.Before(timeout)) {
			deadline = nd.Deadline
		}
		bounded = bounded && nd.Timeout == 0 && nd.Deadline.IsZero()
	}
	if bounded {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline)
}

func (d *Dialer) connect(ctx context.Context, network, addr, protocol string) (*prelude, error) {
	if d.Context == nil {
		return nil, &Error{protocol, "configuration", errors.New("the Dialer has no Context")}
	}
	dialer := d.NetDialer
	if dialer == nil {
		dialer = new(net.Dialer)
	}
	raw, err := dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, &Error{protocol, "connection", err}
	}
	return newPrelude(protocol, raw, d.Context.Client(raw, d.serverName(network, addr))), nil
}

// serverName returns the name that the server must have, or "" if only the Context can know it.
func (d *Dialer) serverName(network, addr string) string {
	if d.ServerName != "" {
		return d.ServerName
	}
	if name := d.Context.ServerName(); name != "" || network == "unix" {
		return name
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	return host
}
