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

// enforceALPN is read from GRPC_ENFORCE_ALPN_ENABLED once, as by gRPC's own credentials.
var enforceALPN = enforcesALPN(os.Getenv("GRPC_ENFORCE_ALPN_ENABLED"))

func enforcesALPN(value string) bool { return !strings.EqualFold(value, "false") }

// errNoALPN begins like gRPC's own error, so that searches for that find it.
var errNoALPN = errors.New("grpctls: cannot check peer: missing selected ALPN property; " +
	"HTTP/2 over TLS needs ALPN (RFC 9113, section 3.2)")

// ClientHandshake runs the client's handshake over raw, for the server that authority names. If ctx
// is done first, it closes the connection and returns ctx's error at once, without waiting for
// callbacks of the configuration.
func (c *tlsCredentials) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (
	net.Conn, credentials.AuthInfo, error) {
	compiled, err := c.compiled.context()
	if err != nil {
		_ = raw.Close()
		return nil, nil, err
	}
	name, _, err := net.SplitHostPort(authority)
	if err != nil {
		name = authority // it has no port
	}
	conn := compiled.Client(raw, name)
	done := make(chan error, 1)
	go func() { done <- conn.HandshakeForWrite(ctx) }() // the HTTP/2 preface follows
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

// ServerHandshake runs the server's handshake over raw. It sets no deadline: gRPC has set one on
// raw.
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

// established returns the results for a connection whose handshake is done.
func established(raw net.Conn, conn *ossl.Conn) (net.Conn, credentials.AuthInfo, error) {
	state := conn.ConnectionState()
	// A negotiated protocol is in both configurations: it is HTTP/2, or one that both add, which
	// gRPC accepts too. Without ALPN it is empty.
	if state.NegotiatedProtocol == "" {
		if enforceALPN {
			_ = conn.Close()
			return nil, nil, errNoALPN
		}
		logger.Warningf("%v has not agreed on HTTP/2 by ALPN; accepted because of GRPC_ENFORCE_ALPN_ENABLED=false", conn.RemoteAddr())
	}
	return wrap(raw, conn), credentials.TLSInfo{
		State:          state,
		CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity},
		SPIFFEID:       spiffeID(state.PeerCertificates),
	}, nil
}
