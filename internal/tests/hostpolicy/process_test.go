//go:build (cgo || ossl_nocgo) && linux

package hostpolicy

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// An endpoint makes one side of a connection.
type endpoint func(net.Conn) tlstest.Conn

func goClient(edits ...func(*tls.Config)) endpoint {
	c := plainClient(edits...)
	return func(conn net.Conn) tlstest.Conn { return tlstest.Std.Client(conn, c) }
}

func goServer(edits ...func(*tls.Config)) endpoint {
	c := plainServer(edits...)
	return func(conn net.Conn) tlstest.Conn { return tlstest.Std.Server(conn, c) }
}

// plainClient and plainServer name no versions, suites or groups.
func plainClient(edits ...func(*tls.Config)) *tls.Config {
	return tlstest.ClientConfig(append([]func(*tls.Config){tlstest.Curves()}, edits...)...)
}

func plainServer(edits ...func(*tls.Config)) *tls.Config {
	return tlstest.ServerConfig(append([]func(*tls.Config){tlstest.Curves()}, edits...)...)
}

func contextClient(t *testing.T, edit func(*tls.Config), opts ...ossl.Option) endpoint {
	t.Helper()
	ctx := mustContext(t, plainClient(edit), opts...)
	return func(conn net.Conn) tlstest.Conn { return ctx.Client(conn, "") }
}

func contextServer(t *testing.T, edit func(*tls.Config), opts ...ossl.Option) endpoint {
	t.Helper()
	ctx := mustContext(t, plainServer(edit), opts...)
	return func(conn net.Conn) tlstest.Conn { return ctx.Server(conn) }
}

func asItIs(*tls.Config) {}

func mustContext(t *testing.T, config *tls.Config, opts ...ossl.Option) *ossl.Context {
	t.Helper()
	ctx, err := ossl.NewContext(config, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return ctx
}

// A meeting is the outcome of a connection.
type meeting struct {
	clientErr, serverErr error
	client, server       tls.ConnectionState
	recording            tlstest.Recording
}

// meet connects two endpoints, and makes the server send a word.
func meet(client, server endpoint) *meeting {
	m := &meeting{}
	a, b := tlstest.Buffered()
	c, s := client(m.recording.Tap(tlstest.ClientRole, a)), server(m.recording.Tap(tlstest.ServerRole, b))
	served := make(chan struct{})
	go func() {
		defer close(served)
		if m.serverErr = s.Handshake(); m.serverErr == nil {
			m.server = s.ConnectionState()
			_, m.serverErr = s.Write([]byte("x"))
		}
		s.Close()
	}()
	if m.clientErr = c.Handshake(); m.clientErr == nil {
		m.client = c.ConnectionState()
		_, m.clientErr = io.ReadFull(c, make([]byte, 1))
	}
	c.Close()
	<-served
	return m
}

// works fails the test if a meeting did not go well.
func (m *meeting) works(t *testing.T) *meeting {
	t.Helper()
	if m.clientErr != nil || m.serverErr != nil {
		t.Errorf("client: %v; server: %v", m.clientErr, m.serverErr)
	}
	return m
}

// fails fails the test if a meeting succeeded, or if neither side got this alert.
func (m *meeting) fails(t *testing.T, alert uint8) {
	t.Helper()
	if m.clientErr == nil || m.serverErr == nil {
		t.Errorf("client: %v; server: %v", m.clientErr, m.serverErr)
		return
	}
	told := "remote error: " + tls.AlertError(alert).Error()
	if tlstest.Class(m.serverErr) != told && tlstest.Class(m.clientErr) != told {
		t.Errorf("no alert %d: client: %v; server: %v", alert, m.clientErr, m.serverErr)
	}
}

// offer returns a client's offer, as crypto/tls reads it, and as it is on the wire.
func offer(t *testing.T, client endpoint) (*tls.ClientHelloInfo, []byte) {
	t.Helper()
	var hello *tls.ClientHelloInfo
	m := meet(client, goServer(func(c *tls.Config) {
		c.GetConfigForClient = func(info *tls.ClientHelloInfo) (*tls.Config, error) {
			hello = info
			return nil, errors.New("enough")
		}
	}))
	if hello == nil {
		t.Fatalf("no hello: %v, %v", m.clientErr, m.serverErr)
	}
	return hello, m.recording.Bytes(tlstest.ClientRole)
}

// refuses fails the test unless a configuration is refused for a field, because of a policy that
// can be ignored.
func refuses(t *testing.T, field string, config *tls.Config, opts ...ossl.Option) {
	t.Helper()
	_, err := ossl.NewContext(config, opts...)
	var e *ossl.ConfigError
	if !errors.As(err, &e) || e.Field != field || !strings.Contains(e.Reason, os.Getenv("OPENSSL_CONF")) ||
		!strings.Contains(e.Reason, "WithoutHostPolicy") {
		t.Errorf("%s: %v", field, err)
	}
	if _, err := ossl.NewContext(config, append(opts, ossl.WithoutHostPolicy())...); err != nil {
		t.Errorf("%s, without the policy: %v", field, err)
	}
}

// hostPolicy returns the policy in force, which must be one that can be honoured.
func hostPolicy(t *testing.T) ossl.HostPolicy {
	t.Helper()
	info, err := ossl.Library()
	if err != nil {
		t.Fatal(err)
	}
	if info.HostPolicy.Err != nil {
		t.Fatal(info.HostPolicy.Err)
	}
	return info.HostPolicy
}

// libraryBefore reports whether the library is older than a version.
func libraryBefore(t *testing.T, major, minor string) bool {
	t.Helper()
	info, err := ossl.Library()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Compare(strings.Split(info.Version, ".")[:2], []string{major, minor}) < 0
}
