package audit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/ossl-go/ossl/audit/internal/client"
	"github.com/ossl-go/ossl/audit/internal/hello"
)

// A shaken connection has a handshake behind it.
type shaken struct {
	*client.Conn
	stop func() bool // stops the watch over the context
}

// Close closes the connection.
func (s *shaken) Close() {
	s.stop()
	_ = s.Conn.Close() // a server may have gone first
}

// shake makes a handshake with an address, and counts it. The version is TLS 1.3, or TLS 1.2 for that
// and earlier ones. A connection that is lost is made once again, alone; the error wraps errLost if
// that was lost too.
func (r *run) shake(ctx context.Context, address string, version uint16, config *client.Config) (*shaken, error) {
	return r.shakeBy(ctx, address, func(conn net.Conn) (*client.Conn, error) {
		if version == hello.TLS13 {
			return r.clientHandshake13(conn, config)
		}
		return client.Handshake12(conn, config)
	})
}

func (r *run) shakeBy(ctx context.Context, address string, handshake func(net.Conn) (*client.Conn, error)) (*shaken, error) {
	for try := 0; ; try++ {
		conn, err := r.dial(ctx, address)
		if err == nil {
			stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Now()) })
			var tls *client.Conn
			if tls, err = handshake(conn); err == nil {
				r.count(func(c *Cost) {
					if !tls.State.Times.Done.IsZero() {
						c.Handshakes++
					}
					if !tls.State.Resumed {
						c.Signatures++
					}
				})
				return &shaken{tls, stop}, nil
			}
			stop()
			conn.Close()
		}
		if ctx.Err() != nil || finalError(err) || isAnswer(err) {
			return nil, err
		}
		if err := r.retry(ctx, address, err, try); err != nil {
			return nil, err
		}
	}
}

// isAnswer reports whether an error is the server's answer, which another try wouldn't change.
func isAnswer(err error) bool {
	return errors.As(err, new(*client.AlertError)) || errors.As(err, new(*client.ProtocolError)) ||
		errors.As(err, new(*client.UnsupportedError)) || errors.As(err, new(*hello.SyntaxError))
}

// shakeOutcome is the outcome of a test whose handshake failed.
func shakeOutcome(version string, err error) Outcome {
	var alert *client.AlertError
	if errors.As(err, &alert) && alert.Code == 70 {
		return Outcome{NotTested, "the server doesn't offer " + version}
	}
	return Outcome{Failed, err.Error()}
}

// tickets13 returns the tickets of a TLS 1.3 connection. They may follow the handshake at any time,
// so the client sends a message that the server must answer, and takes the tickets that come before
// the answer. The message is a request in HTTP, and else a close_notify.
func (r *run) tickets13(conn *shaken) []*client.Session {
	conn.NetConn().SetDeadline(time.Now().Add(r.options.Timeout / 4))
	var err error
	if r.target.Protocol == "https" {
		_, err = fmt.Fprintf(conn, "HEAD / HTTP/1.1\r\nHost: %s\r\nUser-Agent: ossl-check\r\nConnection: close\r\n\r\n",
			r.options.ServerName)
	} else {
		err = conn.CloseWrite()
	}
	if err != nil {
		return conn.Sessions()
	}
	sessions, _ := conn.ReadSessions(1 << 10) // those read before an error count
	return sessions
}
