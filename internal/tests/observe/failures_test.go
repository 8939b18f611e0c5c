//go:build cgo || ossl_nocgo

package observe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

const (
	protocolVersion     = 70
	badCertificate      = 42
	certificateRequired = 116
	noApplication       = 120
)

// A failure is a handshake that fails, with the Failures of client and server.
type failure struct {
	name           string
	client, server func(c *tls.Config)
	// act, if not nil, takes the place of one side: it gets the raw connection to the other side,
	// which runs its handshake with ctx.
	actAsClient, actAsServer func(conn net.Conn, cancel context.CancelFunc)
	wantClient, wantServer   ossl.Failure
}

func class(c ossl.FailureClass) ossl.Failure { return ossl.Failure{Class: c} }

func alert(c ossl.FailureClass, a uint8) ossl.Failure {
	return ossl.Failure{Class: c, Alert: tls.AlertError(a)}
}

func expired(c *tls.Config) {
	c.Time = func() time.Time { return time.Now().AddDate(50, 0, 0) }
}

func version(v uint16) func(*tls.Config) {
	return func(c *tls.Config) { c.MinVersion, c.MaxVersion = v, v }
}

func deny(c *tls.Config) {
	c.VerifyConnection = func(tls.ConnectionState) error { return tlstest.ErrDenied }
}

func untrusting(c *tls.Config) { c.RootCAs = tlstest.OtherCA().Pool() }

func misnamed(c *tls.Config) { c.ServerName = tlstest.OtherName }

func demanding(c *tls.Config) {
	c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, tlstest.CA().Pool()
}

func write(text string) func(net.Conn, context.CancelFunc) {
	return func(conn net.Conn, _ context.CancelFunc) {
		_, _ = io.WriteString(conn, text)
		_, _ = io.Copy(io.Discard, conn)
	}
}

func hangUp(conn net.Conn, _ context.CancelFunc) {
	_, _ = conn.Read(make([]byte, 1)) // a client's hello; for a server, nothing
}

var failures = []failure{
	{name: "no common version", client: version(tls.VersionTLS12), server: version(tls.VersionTLS13),
		wantClient: alert(ossl.FailurePeerAlert, protocolVersion), wantServer: alert(ossl.FailureRefused, protocolVersion)},
	{name: "no common protocol", client: tlstest.Protocols("a"), server: tlstest.Protocols("b"),
		wantClient: alert(ossl.FailurePeerAlert, noApplication), wantServer: alert(ossl.FailureRefused, noApplication)},
	{name: "expired", client: expired,
		wantClient: alert(ossl.FailureCertificateExpired, badCertificate), wantServer: alert(ossl.FailurePeerAlert, badCertificate)},
	{name: "untrusted", client: untrusting,
		wantClient: alert(ossl.FailureCertificateUntrusted, badCertificate), wantServer: alert(ossl.FailurePeerAlert, badCertificate)},
	{name: "another name", client: misnamed,
		wantClient: alert(ossl.FailureCertificateName, badCertificate), wantServer: alert(ossl.FailurePeerAlert, badCertificate)},
	{name: "callback", client: deny,
		wantClient: alert(ossl.FailureRefused, badCertificate), wantServer: alert(ossl.FailurePeerAlert, badCertificate)},
	{name: "no client certificate", server: demanding,
		wantClient: alert(ossl.FailurePeerAlert, certificateRequired), wantServer: alert(ossl.FailureRefused, certificateRequired)},
	{name: "not TLS, from a client", actAsClient: write("GET / HTTP/1.1\r\n\r\n"), wantServer: class(ossl.FailureNotTLS)},
	{name: "not TLS, from a server", actAsServer: write("HTTP/1.1 400 Bad Request\r\n\r\n"), wantClient: class(ossl.FailureNotTLS)},
	{name: "client hangs up", actAsClient: func(net.Conn, context.CancelFunc) {}, wantServer: class(ossl.FailurePeerClosed)},
	{name: "server hangs up", actAsServer: hangUp, wantClient: class(ossl.FailurePeerClosed)},
	{name: "part of a record", actAsClient: func(conn net.Conn, _ context.CancelFunc) {
		_, _ = conn.Write([]byte{tlstest.TypeHandshake, 3, 1, 1, 0, 1})
	}, wantServer: class(ossl.FailureTruncated)},
	{name: "canceled", actAsClient: func(_ net.Conn, cancel context.CancelFunc) { cancel() },
		wantServer: class(ossl.FailureCanceled)},
}

// run runs the failing handshake between client and server, of which one may be nil, and returns
// their errors. In TLS 1.3 a client learns from a Read that the server refuses it.
func (f *failure) run(t *testing.T, client, server tlstest.End) (clientErr, serverErr error) {
	rawClient, rawServer := tlstest.Loopback()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	end := func(raw net.Conn, tlsEnd tlstest.End, act func(net.Conn, context.CancelFunc), canceled context.Context) <-chan error {
		done := make(chan error, 1)
		go func() {
			defer raw.Close()
			if act != nil {
				act(raw, cancel)
				done <- nil
				return
			}
			conn := tlsEnd(raw)
			err := conn.HandshakeContext(canceled)
			if err == nil {
				_, err = conn.Read(make([]byte, 1))
			}
			done <- err
		}()
		return done
	}
	c := end(rawClient, client, f.actAsClient, ctx)
	s := end(rawServer, server, f.actAsServer, ctx)
	if f.actAsClient != nil { // it may wait for the end of the server
		serverErr = <-s
		return <-c, serverErr
	}
	clientErr = <-c
	return clientErr, <-s
}

func (f *failure) configs() (client, server *tls.Config) {
	client, server = tlstest.ClientConfig(), tlstest.ServerConfig()
	for edit, config := range map[*func(*tls.Config)]*tls.Config{&f.client: client, &f.server: server} {
		if *edit != nil {
			(*edit)(config)
		}
	}
	return client, server
}

// TestFailures checks the class of each failure: in the statistics, in the events, and of the error
// itself, which FailureOf classifies as it classifies crypto/tls's.
func TestFailures(t *testing.T) {
	for _, f := range failures {
		t.Run(f.name, func(t *testing.T) {
			cc, sc := f.configs()
			var clientEvents, serverEvents events
			client, server := ossltest.NewContext(t, cc, ossl.WithEvents(clientEvents.add)), ossltest.NewContext(t, sc,
				ossl.WithEvents(serverEvents.add))
			clientErr, serverErr := f.run(t, ossltest.ClientOf(client), ossltest.ServerOf(server))
			f.check(t, "client", client, &clientEvents, f.wantClient, clientErr)
			f.check(t, "server", server, &serverEvents, f.wantServer, serverErr)

			stdClientErr, stdServerErr := f.run(t, tlstest.StdClient(cc), tlstest.StdServer(sc))
			if got, std := ossl.FailureOf(clientErr), ossl.FailureOf(stdClientErr); got != std {
				t.Errorf("client: FailureOf is %v for the error of ossl, and %v for that of crypto/tls: %v, %v", got, std, clientErr,
					stdClientErr)
			}
			got, std := ossl.FailureOf(serverErr), ossl.FailureOf(stdServerErr)
			if got.Class != std.Class && std.Class != ossl.FailureOther {
				t.Errorf("server: FailureOf is %v for the error of ossl, and %v for that of crypto/tls: %v, %v", got, std, serverErr,
					stdServerErr)
			}
		})
	}
}

func (f *failure) check(t *testing.T, role string, ctx *ossl.Context, events *events, want ossl.Failure, err error) {
	stats := ctx.Stats()
	if want == (ossl.Failure{}) {
		if len(stats.Failures) > 0 {
			t.Errorf("%s: unexpected failures %+v", role, stats.Failures)
		}
		return
	}
	late := role == "client" && f.server != nil && len(stats.Handshakes) > 0 // TLS 1.3: the server refuses after the client is done
	if late {
		if got := ossl.FailureOf(err); got != want {
			t.Errorf("%s: Read fails with %v, want %v: %v", role, got, want, err)
		}
		return
	}
	if len(stats.Failures) != 1 || stats.Failures[0] != (ossl.FailureStats{Server: role == "server", Failure: want, Count: 1}) {
		t.Errorf("%s: failures %+v, want one of %v: %v", role, stats.Failures, want, err)
	}
	if len(stats.Handshakes) > 0 || stats.OpenConns > 0 || len(stats.Durations) > 0 {
		t.Errorf("%s: a failed handshake counts as a success: %+v", role, stats)
	}
	h := events.handshakes()
	if len(h) != 1 || h[0].Failure != want || h[0].Err != err || h[0].Conn == nil || h[0].Context == nil || h[0].Start.IsZero() {
		t.Errorf("%s: events %+v, want one with %v and %v", role, h, want, err)
	}
	if got := ossl.FailureOf(err); got.Class != want.Class && got.Class != ossl.FailureOther {
		t.Errorf("%s: FailureOf(%v) is %v, want %v", role, err, got, want)
	}
}

// TestFailureOf checks errors that the handshakes of TestFailures don't return.
func TestFailureOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want ossl.Failure
	}{
		{nil, ossl.Failure{}},
		{context.DeadlineExceeded, class(ossl.FailureTimeout)},
		{net.ErrClosed, class(ossl.FailureClosed)},
		{&net.OpError{Op: "read", Err: errors.New("no route")}, class(ossl.FailureNetwork)},
		{x509.CertificateInvalidError{Reason: x509.NotAuthorizedToSign}, class(ossl.FailureCertificate)},
		{&ossl.ConfigError{Field: "MinVersion", Reason: "old"}, class(ossl.FailureConfig)},
		{ossl.ErrUnavailable, class(ossl.FailureConfig)},
		{&ossl.LibraryError{Op: "read"}, class(ossl.FailureLibrary)},
		{noMemory(), class(ossl.FailureLibrary)},
		{tlstest.ErrDenied, class(ossl.FailureOther)},
	} {
		if got := ossl.FailureOf(c.err); got != c.want {
			t.Errorf("FailureOf(%v) is %v, want %v", c.err, got, c.want)
		}
	}
}

// noMemory returns libssl's error for want of memory: ERR_R_MALLOC_FAILURE.
func noMemory() error {
	code := uint64(20<<23 | 0xc0100)
	if !libssl.AtLeast(libssl.Version3_0) {
		code = 20<<24 | 65
	}
	return &ossl.LibraryError{Op: "handshake", Codes: []uint64{code}}
}

// TestRefusedConfiguration checks that a connection without a Context counts for the process.
func TestRefusedConfiguration(t *testing.T) {
	count := func() (n uint64) {
		for _, f := range ossl.ProcessStats().Failures {
			if f.Failure.Class == ossl.FailureConfig && !f.Server {
				n += f.Count
			}
		}
		return n
	}
	before := count()
	conn, _ := tlstest.NetPipe()
	if err := ossl.Client(conn, &tls.Config{MinVersion: tls.VersionTLS10}).Handshake(); err == nil {
		t.Fatal("TLS 1.0 is not refused")
	}
	if got := count() - before; got != 1 {
		t.Errorf("%d failures were counted, want 1", got)
	}
}

// TestFailuresOfCallbacks checks that an error of a callback doesn't count as the connection's.
func TestFailuresOfCallbacks(t *testing.T) {
	remote := &net.OpError{Op: "remote error", Err: tls.AlertError(protocolVersion)}
	for _, cause := range []error{context.DeadlineExceeded, context.Canceled, io.EOF, net.ErrClosed, remote} {
		t.Run(cause.Error(), func(t *testing.T) {
			fail := func(c *tls.Config) { c.VerifyConnection = func(tls.ConnectionState) error { return cause } }
			f := failure{client: fail}
			f.test(t, alert(ossl.FailureRefused, badCertificate), alert(ossl.FailurePeerAlert, badCertificate))
			fail = func(c *tls.Config) {
				c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, cause }
			}
			f = failure{server: fail}
			const internalError = 80
			f.test(t, alert(ossl.FailurePeerAlert, internalError), alert(ossl.FailureRefused, internalError))
		})
	}
	// With GetCertificate, crypto/tls parses the ClientHello, and refuses it.
	choosing := func(c *tls.Config) {
		version(tls.VersionTLS13)(c)
		cert := c.Certificates[0]
		c.Certificates, c.GetCertificate = nil, func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &cert, nil }
	}
	f := failure{client: version(tls.VersionTLS12), server: choosing}
	f.test(t, alert(ossl.FailurePeerAlert, protocolVersion), alert(ossl.FailureRefused, protocolVersion))
}

// test runs the handshake, and compares the Failures that client and server count.
func (f *failure) test(t *testing.T, wantClient, wantServer ossl.Failure) {
	t.Helper()
	cc, sc := f.configs()
	client, server := ossltest.NewContext(t, cc), ossltest.NewContext(t, sc)
	f.run(t, ossltest.ClientOf(client), ossltest.ServerOf(server))
	for _, side := range []struct {
		stats ossl.Stats
		want  ossl.FailureStats
	}{
		{client.Stats(), ossl.FailureStats{Failure: wantClient, Count: 1}},
		{server.Stats(), ossl.FailureStats{Server: true, Failure: wantServer, Count: 1}},
	} {
		if got := side.stats.Failures; len(got) != 1 || got[0] != side.want {
			t.Errorf("failures %+v, want %+v", got, side.want)
		}
	}
}
