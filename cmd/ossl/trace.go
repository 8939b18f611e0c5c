package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/audit"
)

// A traceRequest is the command line of ossl trace.
type traceRequest struct {
	name      string
	protocols []string
	version   string
	roots     string
	insecure  bool
	resume    bool
	timeout   time.Duration

	sessions lastSession
}

func traceCommand() *cobra.Command {
	var r traceRequest
	cmd := &cobra.Command{
		Use:   "trace HOST[:PORT]",
		Short: "Show the handshake with a server, message by message",
		Long: `Trace connects to a server and shows the messages of the handshake: their extensions, the
certificates, and the time since the handshake began. Keys, random numbers, tickets and signatures
are not shown, only their lengths. The default port is 443. Servers that begin in plain text are
named as in smtp://HOST: smtp, imap, pop3, ldap, postgres, mysql, xmpp.

Your own program shows its handshakes if the environment variable OSSL_TRACE is "stderr" or the name
of a file, or with the option WithTrace of the library.

The exit status is 1 if the handshake fails, or with --resume if the server doesn't resume the
session.`,
		Example: `  ossl trace example.org
  ossl trace --resume --alpn h2,http/1.1 example.org:8443
  ossl trace smtp://mail.example.org:587
  OSSL_TRACE=stderr ./your-program`,
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			target, err := audit.ParseTarget(args[0])
			if err != nil {
				return usageError(err.Error())
			}
			return r.run(cmd, target)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&r.name, "server-name", "", "ask for `name`, and verify the certificate for it, rather than HOST")
	flags.StringSliceVar(&r.protocols, "alpn", nil, "offer these application `protocols`, such as h2,http/1.1")
	flags.StringVar(&r.version, "version", "", "offer only this `version` of TLS, 1.2 or 1.3")
	flags.StringVar(&r.roots, "roots", "", "trust the certificates in `file`, rather than the system's")
	flags.BoolVar(&r.insecure, "insecure", false, "don't verify the server's certificate")
	flags.BoolVar(&r.resume, "resume", false, "connect once more, and resume the session")
	flags.DurationVar(&r.timeout, "timeout", 10*time.Second, "give up after this `time`")
	return cmd
}

func (r *traceRequest) config(ctx context.Context) (*tls.Config, error) {
	config := &tls.Config{ServerName: r.name, NextProtos: r.protocols, InsecureSkipVerify: r.insecure}
	config.ClientSessionCache = &r.sessions
	switch r.version {
	case "":
	case "1.2":
		config.MinVersion, config.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	case "1.3":
		config.MinVersion, config.MaxVersion = tls.VersionTLS13, tls.VersionTLS13
	default:
		return nil, usageError(fmt.Sprintf("--version %q is not 1.2 or 1.3", r.version))
	}
	if r.roots != "" {
		if r.insecure {
			return nil, usageError("--insecure verifies nothing, so --roots would have no effect")
		}
		var err error
		if config.RootCAs, err = readRoots(ctx, r.roots); err != nil {
			return nil, err
		}
	}
	return config, nil
}

func (r *traceRequest) run(cmd *cobra.Command, target audit.Target) error {
	config, err := r.config(cmd.Context())
	if err != nil {
		return err
	}
	tlsContext, err := ossl.NewContext(config, ossl.WithTrace(cmd.OutOrStdout()))
	if err != nil {
		return err
	}
	connections := 1
	if r.resume {
		connections = 2
	}
	for i := range connections {
		resumed, err := r.connect(cmd.Context(), tlsContext, target)
		if err != nil {
			return err
		}
		if i == 1 && !resumed {
			return errors.New("the server has not resumed the session")
		}
		if i+1 < connections {
			fmt.Fprintln(cmd.OutOrStdout())
		}
	}
	return nil
}

// ticketTime is how long to wait for a TLS 1.3 server's tickets before the client sends its
// close_notify.
const ticketTime = time.Second

// connect makes a connection, and reports whether it has resumed a session.
func (r *traceRequest) connect(ctx context.Context, tlsContext *ossl.Context, target audit.Target) (resumed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", target.Address())
	if err != nil {
		return false, err
	}
	defer raw.Close()
	stop := context.AfterFunc(ctx, func() { raw.SetDeadline(time.Now()) })
	if err := audit.StartTLS(raw, target, r.name); err != nil {
		return false, err
	}
	if !stop() {
		return false, context.Cause(ctx)
	}
	conn := tlsContext.Client(raw, cmp.Or(r.name, target.Host))
	defer conn.Close()
	if err := conn.HandshakeContext(ctx); err != nil {
		return false, err
	}
	state := conn.ConnectionState()
	if state.Version >= tls.VersionTLS13 {
		r.awaitTicket(ctx, conn)
	}
	return state.DidResume, nil
}

// awaitTicket waits for a ticket. Tickets come after the handshake, and before the server's data,
// if any. If nothing has come in time, the client closes its side, and the server then closes the
// connection. So the client waits for late tickets, but not for a server without tickets.
func (r *traceRequest) awaitTicket(ctx context.Context, conn *ossl.Conn) {
	var mu sync.Mutex
	ended := false
	end := func() {
		mu.Lock()
		defer mu.Unlock()
		ended = true
		_ = conn.SetReadDeadline(time.Now())
	}
	until := func(t time.Time) {
		mu.Lock()
		defer mu.Unlock()
		if !ended {
			_ = conn.SetReadDeadline(t)
		}
	}
	until(time.Now().Add(ticketTime))
	r.sessions.put = end
	defer context.AfterFunc(ctx, end)()
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		return
	}
	_ = conn.CloseWrite()
	until(time.Time{}) // until ctx is done
	_, _ = conn.Read(make([]byte, 1))
}
