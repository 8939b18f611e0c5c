package audit

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"strings"
	"time"
)

// injections are commands that a server should refuse to execute: the first is sent in clear text
// in the same segment as the request for TLS, and the second in TLS. A server that executes the
// first answers with prefix before it answers the second, whose answer doesn't have it.
var injections = map[string]struct{ clear, encrypted, prefix string }{
	"smtp": {"NOOP\r\n", "QUIT\r\n", "250"},
	"imap": {"b NOOP\r\n", "c LOGOUT\r\n", "b "},
	"pop3": {"CAPA\r\n", "STLS\r\n", "+OK"}, // STLS is refused within TLS
}

// probeInjection tests whether the server executes, within TLS, a command that it got before TLS
// began.
func probeInjection(ctx context.Context, r *run) error {
	f := &r.facts.Injection
	test, ok := injections[r.target.Protocol]
	if !ok {
		f.Outcome = Outcome{NotTested, "the protocol has no commands before TLS"}
		return nil
	}
	err := r.again(ctx, func() (err error) {
		f.On, err = r.inject(ctx, test.clear, test.encrypted, test.prefix)
		return err
	})
	f.Outcome = Outcome{State: Tested}
	if err != nil {
		f.Outcome = failed(err)
	}
	return ctx.Err()
}

func (r *run) inject(ctx context.Context, clear, encrypted, prefix string) (bool, error) {
	r.injected = clear
	conn, err := r.dial(ctx, r.address)
	r.injected = ""
	if err != nil {
		return false, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Now()) })()
	client := tls.Client(conn, r.anyServer())
	if err := client.HandshakeContext(ctx); err != nil {
		return false, tlsError(err)
	}
	r.count(func(c *Cost) { c.Handshakes++; c.Signatures++ })
	if _, err := io.WriteString(client, encrypted); err != nil {
		return false, err
	}
	line, err := bufio.NewReader(io.LimitReader(client, startTLSBytes)).ReadString('\n')
	if err != nil {
		return false, unexpected(err)
	}
	return strings.HasPrefix(line, prefix), nil
}
