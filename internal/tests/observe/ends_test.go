//go:build cgo || ossl_nocgo

package observe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestPanicStats checks that a handshake whose callback panics counts as a failure, and has an
// event.
func TestPanicStats(t *testing.T) {
	cc := tlstest.ClientConfig()
	cc.VerifyConnection = func(tls.ConnectionState) error { panic(tlstest.ErrDenied) }
	var e events
	client, server := ossltest.NewContext(t, cc, ossl.WithEvents(e.add)), ossltest.NewContext(t, tlstest.ServerConfig())
	rawClient, rawServer := tlstest.Loopback()
	go func() { _ = server.Server(rawServer).Handshake() }()
	func() {
		defer func() {
			if recover() != tlstest.ErrDenied {
				t.Error("no panic")
			}
		}()
		_ = client.Client(rawClient, "").Handshake()
	}()
	_ = rawClient.Close()
	failures := client.Stats().Failures
	if len(failures) != 1 || failures[0] != (ossl.FailureStats{Failure: class(ossl.FailureOther), Count: 1}) {
		t.Errorf("failures %+v", failures)
	}
	if h := e.handshakes(); len(h) != 1 || h[0].Err == nil {
		t.Errorf("events %+v", h)
	}
}

// putting is a ClientSessionCache that calls a function when it gets a session. In TLS 1.2 the
// handshake has succeeded then, and hasn't returned yet.
type putting struct {
	tls.ClientSessionCache
	put func()
}

func (p putting) Put(string, *tls.ClientSessionState) { p.put() }

// TestEndOfContextAfterHandshake checks that a connection isn't counted as open if the context is
// canceled after the handshake has succeeded, and before HandshakeContext returns. Dial has no
// connection to close then.
func TestEndOfContextAfterHandshake(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cc, sc := tlstest.Resuming(tls.VersionTLS12)
	cc.ClientSessionCache = putting{cc.ClientSessionCache, cancel}
	var e events
	client, server := ossltest.NewPlainContext(t, cc, ossl.WithEvents(e.add)), ossltest.NewPlainContext(t, sc)
	l, err := server.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if conn, err := l.Accept(); err == nil {
			_, _ = conn.Read(make([]byte, 1))
			_ = conn.Close()
		}
	}()
	if _, err := client.DialContext(ctx, "tcp", l.Addr().String()); !errors.Is(err, context.Canceled) {
		t.Fatalf("DialContext returns %v", err)
	}
	if s := client.Stats(); s.OpenConns != 0 || len(s.Handshakes) != 1 || len(s.Failures) != 0 {
		t.Errorf("%+v", s)
	}
	if h, c := e.handshakes(), of[*ossl.CloseEvent](&e); len(h) != 1 || h[0].Err == nil || len(c) != 1 {
		t.Errorf("%d handshakes and %d closed connections", len(h), len(c))
	}
}

// TestCloseBeforeEvent checks that Close's event comes after the handshake's event, even if Close
// is called first.
func TestCloseBeforeEvent(t *testing.T) {
	cc, sc := tlstest.Resuming(tls.VersionTLS12)
	var conn *ossl.Conn
	cc.ClientSessionCache = putting{cc.ClientSessionCache, func() { _ = conn.Close() }}
	var e events
	client, server := ossltest.NewPlainContext(t, cc, ossl.WithEvents(e.add)), ossltest.NewPlainContext(t, sc)
	rawClient, rawServer := tlstest.Loopback()
	conn = client.Client(rawClient, "")
	go func() {
		s := server.Server(rawServer)
		_, _ = s.Read(make([]byte, 1))
		_ = s.Close()
	}()
	_ = conn.Handshake()
	var got []string
	for _, event := range e.all {
		got = append(got, fmt.Sprintf("%T", event))
	}
	if want := []string{"*ossl.HandshakeEvent", "*ossl.CloseEvent"}; !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
	if n := client.Stats().OpenConns; n != 0 {
		t.Errorf("%d connections are open", n)
	}
}

// TestCloseDuringHandshake closes connections while their handshakes are about to finish. None may
// count as open after that.
func TestCloseDuringHandshake(t *testing.T) {
	client, server := ossltest.NewContext(t, tlstest.ClientConfig()), ossltest.NewContext(t, tlstest.ServerConfig())
	for i := range 100 {
		rawClient, rawServer := tlstest.Loopback()
		c, s := client.Client(rawClient, ""), server.Server(rawServer)
		var wait sync.WaitGroup
		wait.Go(func() { _ = c.Handshake() })
		wait.Go(func() { _ = s.Handshake() })
		wait.Go(func() {
			time.Sleep(time.Duration(i) * 20 * time.Microsecond) // each connection is closed at another time
			_ = c.Close()
			_ = s.Close()
		})
		wait.Wait()
	}
	for role, stats := range map[string]ossl.Stats{"client": client.Stats(), "server": server.Stats()} {
		if stats.OpenConns != 0 {
			t.Errorf("%s: %d connections are open", role, stats.OpenConns)
		}
	}
}

// A slowConn's Write waits for the end of the connection, once there is a channel for that.
type slowConn struct {
	net.Conn
	writing, closed chan struct{}
}

func (c *slowConn) Write(b []byte) (int, error) {
	if c.writing != nil {
		close(c.writing)
		c.writing = nil
		<-c.closed
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// TestBytesAfterClose checks that the bytes of a Write are counted if Close was called during it.
func TestBytesAfterClose(t *testing.T) {
	client, server := ossltest.NewContext(t, tlstest.ClientConfig()), ossltest.NewContext(t, tlstest.ServerConfig())
	rawClient, rawServer := tlstest.Loopback()
	slow := &slowConn{Conn: rawClient}
	c, s := client.Client(slow, ""), server.Server(rawServer)
	tlstest.Shake(t, c, s)
	defer s.Close()
	writing, closed := make(chan struct{}), make(chan struct{})
	slow.writing, slow.closed = writing, closed
	done := make(chan int)
	go func() {
		n, _ := c.Write(make([]byte, 100))
		done <- n
	}()
	<-writing
	_ = c.Close()
	close(closed)
	if n, counted := <-done, client.Stats().BytesWritten; n != 100 || counted != 100 {
		t.Errorf("Write returns %d, and %d bytes were counted", n, counted)
	}
}

// A strictConn's Close waits until the Read that is under way has returned. Its Read doesn't fail
// with net.ErrClosed.
type strictConn struct {
	net.Conn
	returned chan struct{}
}

func (c *strictConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		err = io.ErrClosedPipe
	}
	return n, err
}

func (c *strictConn) Close() error {
	err := c.Conn.Close()
	if c.returned != nil {
		<-c.returned
	}
	return err
}

// TestCloseDuringRead checks that, if a Read fails because of Close, its error isn't reported as
// the reason for the Close, even if the underlying connection's error isn't net.ErrClosed.
func TestCloseDuringRead(t *testing.T) {
	var e events
	client := ossltest.NewContext(t, tlstest.ClientConfig(), ossl.WithEvents(e.add))
	server := ossltest.NewContext(t, tlstest.ServerConfig())
	rawClient, rawServer := tlstest.Buffered()
	strict := &strictConn{Conn: rawClient}
	c, s := client.Client(strict, ""), server.Server(rawServer)
	tlstest.Shake(t, c, s)
	defer s.Close()
	returned := make(chan struct{})
	strict.returned = returned
	go func() {
		_, _ = c.Read(make([]byte, 1))
		close(returned)
	}()
	_ = c.Close()
	if closed := of[*ossl.CloseEvent](&e); len(closed) != 1 || closed[0].Err != nil || len(client.Stats().Broken) != 0 {
		t.Errorf("events %+v, broken %+v", closed, client.Stats().Broken)
	}
}

// TestTruncatedIsBroken: an end without close_notify is an error of the connection, unless
// WithInsecureTruncation allows it.
func TestTruncatedIsBroken(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		var e events
		options := []ossl.Option{ossl.WithEvents(e.add)}
		if allowed {
			options = append(options, ossl.WithInsecureTruncation())
		}
		server := ossltest.NewContext(t, tlstest.ServerConfig(), options...)
		rawClient, rawServer := tlstest.Loopback()
		c, s := ossltest.NewContext(t, tlstest.ClientConfig()).Client(rawClient, ""), server.Server(rawServer)
		tlstest.Shake(t, c, s)
		if _, err := c.Write([]byte("data")); err != nil {
			t.Fatal(err)
		}
		rawClient.Close()
		if got, err := io.ReadAll(s); string(got) != "data" || (err == nil) != allowed {
			t.Errorf("allowed %t: %q, %v", allowed, got, err)
		}
		s.Close()
		closed, broken := of[*ossl.CloseEvent](&e), server.Stats().Broken
		if len(closed) != 1 || (closed[0].Failure.Class == ossl.FailureTruncated) == allowed || (len(broken) == 0) != allowed {
			t.Errorf("allowed %t: events %+v, broken %+v", allowed, closed, broken)
		}
	}
}
