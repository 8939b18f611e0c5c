package grpctls

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/grpclog"

	"github.com/ossl-go/ossl"
)

var logger = grpclog.Component("grpctls")

// enforceALPN is what gRPC's own credentials go by, and like there it is read once: GRPC_ENFORCE_ALPN_ENABLED.
var enforceALPN = enforcesALPN(os.Getenv("GRPC_ENFORCE_ALPN_ENABLED"))

func enforcesALPN(value string) bool { return !strings.EqualFold(value, "false") }

// errNoALPN begins like gRPC's own error, for those who search for it.
var errNoALPN = errors.New("grpctls: cannot check peer: missing selected ALPN property; " +
	"HTTP/2 over TLS needs ALPN (RFC 9113, section 3.2)")

// ClientHandshake runs the client's handshake over raw, for the server that authority names. If ctx ends first, the connection is
// closed and ctx's error returned, at once: what a callback of the configuration does meanwhile is not waited for.
func (c *tlsCredentials) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (
	net.Conn, credentials.AuthInfo, error) {
	compiled, err := c.compiled.context()
	if err != nil {
		_ = raw.Close()
		return nil, nil, err
	}
	name, _, err := net.SplitHostPort(authority)
	if err != nil {
		name = authority // without a port
	}
	conn := compiled.Client(raw, name)
	done := make(chan error, 1)
	go func() { done <- conn.HandshakeContext(ctx) }()
	select {
	case err = <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	return established(raw, conn)
}

// ServerHandshake runs the server's handshake over raw. It sets no deadline: gRPC has set one on raw.
func (c *tlsCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	compiled, err := c.compiled.context()
	if err != nil {
		_ = raw.Close()
		return nil, nil, err
	}
	conn := compiled.Server(raw)
	if err := conn.Handshake(); err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	return established(raw, conn)
}

// established returns what gRPC wants of a connection whose handshake is done.
func established(raw net.Conn, conn *ossl.Conn) (net.Conn, credentials.AuthInfo, error) {
	state := conn.ConnectionState()
	// What was agreed on is a protocol that both configurations name: HTTP/2, or one of their own, which gRPC lets pass too.
	// Nothing is what a peer without ALPN gets.
	if state.NegotiatedProtocol == "" {
		if enforceALPN {
			_ = conn.Close()
			return nil, nil, errNoALPN
		}
		logger.Warningf("%v has not agreed on HTTP/2 by ALPN; GRPC_ENFORCE_ALPN_ENABLED=false lets it pass", conn.RemoteAddr())
	}
	return wrap(raw, conn), credentials.TLSInfo{
		State:          state,
		CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity},
		SPIFFEID:       spiffeID(state.PeerCertificates),
	}, nil
}
