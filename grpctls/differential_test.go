package grpctls_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/ossl-go/ossl/grpctls"
)

// A difference is a case in which both sides must have the same results with either credentials.
type difference struct {
	name           string
	client, server []func(*tls.Config)
	versions       []uint16 // TLS 1.2 and TLS 1.3 if nil
	code           codes.Code
	// text is the text of the client's status.
	text string
	// serverErr is the error of the server's handshake; empty for none.
	serverErr string
	// alert means that the error is an alert by the client, which OpenSSL's clients send without
	// protection in TLS 1.3: a crypto/tls server reports a damaged record then
	// (docs/COMPATIBILITY.md).
	alert bool
}

var tls12, tls13 = []uint16{tls.VersionTLS12}, []uint16{tls.VersionTLS13}

type edits = []func(*tls.Config)

func clientCert(edit func(*x509.Certificate)) func(*tls.Config) {
	return withCert(func() tls.Certificate { return ca().issue(edit) })
}

var differences = []difference{
	{name: "plain server certificate", code: codes.OK},
	{name: "mutual TLS", client: edits{withCert(goodCert)}, server: edits{mutual}, code: codes.OK},
	{name: "certificate given unasked", client: edits{withCert(goodCert)}, code: codes.OK},
	{name: "unknown authority", client: edits{func(c *tls.Config) { c.RootCAs = otherCA().pool() }}, code: codes.Unavailable,
		text: "certificate signed by unknown authority", serverErr: "remote error: tls: bad certificate", alert: true},
	{name: "wrong name", client: edits{func(c *tls.Config) { c.ServerName = otherName }}, code: codes.Unavailable,
		text: "certificate is valid for server.test, not other.test", serverErr: "remote error: tls: bad certificate", alert: true},
	{name: "expired server", server: edits{withCert(func() tls.Certificate { return ca().issue(expired) })},
		code: codes.Unavailable, text: "certificate has expired or is not yet valid",
		serverErr: "remote error: tls: bad certificate", alert: true},
	{name: "client's certificate for clients only", server: edits{withCert(func() tls.Certificate {
		return ca().issue(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} })
	})}, code: codes.Unavailable, text: "certificate specifies an incompatible key usage",
		serverErr: "remote error: tls: bad certificate", alert: true},
	// In TLS 1.3 a client learns that the server refuses its certificate only after its own
	// handshake is done.
	{name: "no client certificate", server: edits{mutual}, code: codes.Unavailable, versions: tls12,
		text: "remote error: tls: (handshake failure|bad certificate)", serverErr: "client didn't provide a certificate"},
	{name: "no client certificate", server: edits{mutual}, code: codes.Unavailable, versions: tls13,
		text: "remote error: tls: certificate required", serverErr: "client didn't provide a certificate"},
	{name: "client of an unknown authority", server: edits{mutual},
		client: edits{func(c *tls.Config) {
			cert := otherCA().issue(nil)
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil }
		}},
		code: codes.Unavailable, text: "remote error: tls: unknown certificate authority",
		serverErr: "certificate signed by unknown authority"},
	{name: "expired client", client: edits{clientCert(expired)}, server: edits{mutual}, code: codes.Unavailable,
		text: "remote error: tls: expired certificate", serverErr: "certificate has expired or is not yet valid"},
	{name: "no common version", client: edits{atMost(tls.VersionTLS12)}, server: edits{atLeast(tls.VersionTLS13)}, versions: tls12,
		code: codes.Unavailable, text: "remote error: tls: protocol version not supported",
		serverErr: "client offered only unsupported versions|unsupported protocol"},
	{name: "no suite that HTTP/2 permits, by the client", versions: tls12,
		client: edits{func(c *tls.Config) { c.CipherSuites = []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA} }},
		code:   codes.Unavailable, text: "remote error: tls: handshake failure",
		serverErr: "no cipher suite supported by both client and server|no shared cipher"},
	{name: "no suite that HTTP/2 permits, by the server", versions: tls12,
		server: edits{func(c *tls.Config) { c.CipherSuites = []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA} }},
		code:   codes.Unavailable, text: "remote error: tls: handshake failure",
		serverErr: "no cipher suite supported by both client and server|no shared cipher"},
	{name: "prohibited suite named by both", versions: tls12,
		client: edits{func(c *tls.Config) { c.CipherSuites = []uint16{tls.TLS_RSA_WITH_AES_128_GCM_SHA256} }},
		server: edits{func(c *tls.Config) { c.CipherSuites = []uint16{tls.TLS_RSA_WITH_AES_128_GCM_SHA256} }, withCert(rsaCert)},
		code:   codes.OK},
	{name: "other protocols too", client: edits{protos("foo")}, server: edits{protos("bar")}, code: codes.OK},
	{name: "a protocol of their own", client: edits{protos("foo")}, server: edits{protos("foo")}, code: codes.OK},
	{name: "client refuses by VerifyConnection", code: codes.Unavailable, text: "the callback says no", alert: true,
		client: edits{func(c *tls.Config) {
			c.VerifyConnection = func(tls.ConnectionState) error { return errors.New("the callback says no") }
		}}, serverErr: "remote error: tls: bad certificate"},
	{name: "configuration for each client", server: edits{func(c *tls.Config) {
		chosen := c.Clone()
		*c = tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return chosen, nil }}
	}}, code: codes.OK},
	{name: "no configuration for this client", code: codes.Unavailable, text: "remote error: tls: internal error",
		server: edits{func(c *tls.Config) {
			c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, errors.New("who are you?") }
		}}, serverErr: "who are you?"},
}

func protos(names ...string) func(*tls.Config) { return func(c *tls.Config) { c.NextProtos = names } }

// watched reports the results of the server's handshakes.
type watched struct {
	credentials.TransportCredentials
	errs chan error
}

func (w watched) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := w.TransportCredentials.ServerHandshake(raw)
	select {
	case w.errs <- err:
	default: // further attempts are like the first
	}
	return conn, info, err
}

func TestDifferences(t *testing.T) {
	for _, d := range differences {
		t.Run(d.name, func(t *testing.T) {
			versions(t, func(t *testing.T, version uint16) {
				if d.versions != nil && d.versions[0] != version {
					return
				}
				pairings(t, func(t *testing.T, server, client impl) { d.run(t, version, server, client) })
			})
		})
	}
}

func (d *difference) run(t *testing.T, version uint16, server, client impl) {
	ctx := soon(t)
	creds := watched{server.creds(serverConfig(append(edits{atMost(version)}, d.server...)...)), make(chan error, 1)}
	if d.name == "no common version" {
		creds.TransportCredentials = server.creds(serverConfig(d.server...))
	}
	s := serve(t, creds, nil)
	cc := dial(t, s.addr, client.creds(clientConfig(append(edits{atMost(version)}, d.client...)...)))
	out, err := call(ctx, cc, []byte("hello"))
	if status.Code(err) != d.code {
		t.Fatalf("%v, want status %v", err, d.code)
	}
	if d.code == codes.OK && string(out) != "hello" {
		t.Errorf("answer %q", out)
	}
	if d.code != codes.OK && !says(err, d.text) && !(version == tls.VersionTLS13 && d.serverFirst() && says(err, cutShort)) {
		t.Errorf("the client says %v, want %q", err, d.text)
	}
	select {
	case serverErr := <-creds.errs:
		want := d.serverErr
		if d.alert && version == tls.VersionTLS13 && client.name == ours.name && server.name == std.name {
			want += "|local error: tls: " // the alert is in the clear on 1.1.1, and on libssl's record path
		}
		if (serverErr == nil) != (want == "") || !says(serverErr, want) {
			t.Errorf("the server says %v, want %q", serverErr, want)
		}
	case <-ctx.Done():
		t.Error("the server says nothing")
	}
}

// serverFirst reports whether the server is the side that refuses.
func (d *difference) serverFirst() bool { return strings.HasPrefix(d.text, "remote error") }

// cutShort is the error of a client that writes to a server which has refused it and closed: the
// alert can be lost with the connection, with gRPC's own credentials too.
const cutShort = "connection reset by peer|broken pipe"

// says reports whether an error's text matches.
func says(err error, want string) bool {
	return want == "" || err != nil && regexp.MustCompile(want).MatchString(err.Error())
}

// TestALPN tests peers that don't agree on HTTP/2.
func TestALPN(t *testing.T) {
	const missing = "cannot check peer: missing selected ALPN property"
	for name, test := range map[string]struct {
		peer               []string // the protocols of the peer, crypto/tls
		asClient, asServer string   // our error in these roles
	}{
		"absent": {peer: nil, asClient: missing, asServer: missing},
		"mismatch": {peer: []string{"foo"}, asClient: "tls: no application protocol",
			asServer: "no application protocol|unsupported application protocols"},
	} {
		for _, who := range impls {
			versions(t, func(t *testing.T, version uint16) {
				t.Run(name+"/client="+who.name, func(t *testing.T) {
					checkGoroutines(t)
					a, b := net.Pipe()
					peer := tls.Server(b, serverConfig(atMost(version), protos(test.peer...)))
					done := make(chan error, 1)
					go func() { done <- drain(peer) }()
					conn, info, err := who.creds(clientConfig()).ClientHandshake(soon(t), serverName, a)
					if !says(err, test.asClient) || err == nil || conn != nil || info != nil {
						t.Errorf("%v, %v, %v; want the error %q", conn, info, err, test.asClient)
					}
					await(t, "the other side to end", done)
				})
				t.Run(name+"/server="+who.name, func(t *testing.T) {
					checkGoroutines(t)
					a, b := net.Pipe()
					peer := tls.Client(a, clientConfig(atMost(version), protos(test.peer...)))
					done := make(chan error, 1)
					go func() { done <- drain(peer) }()
					conn, info, err := who.creds(serverConfig()).ServerHandshake(b)
					if !says(err, test.asServer) || err == nil || conn != nil || info != nil {
						t.Errorf("%v, %v, %v; want the error %q", conn, info, err, test.asServer)
					}
					await(t, "the other side to end", done)
				})
			})
		}
	}
}

// TestALPNNotEnforced accepts peers without ALPN, as gRPC's environment variable requests.
func TestALPNNotEnforced(t *testing.T) {
	for value, enforced := range map[string]bool{"": true, "true": true, "no": true, "0": true, "false": false, "FALSE": false} {
		if got := grpctls.EnforcesALPN(value); got != enforced {
			t.Errorf("%q: enforced %v, want %v", value, got, enforced)
		}
	}
	defer grpctls.SetEnforceALPN(false)()
	for name, protocols := range map[string][]string{"absent": nil, "mismatch": {"foo"}} {
		want := protocols == nil // a peer that offers only other protocols is still refused
		a, b := net.Pipe()
		peer := tls.Server(b, serverConfig(protos(protocols...)))
		done := make(chan error, 1)
		go func() { done <- drain(peer) }()
		conn, info, err := ours.creds(clientConfig()).ClientHandshake(soon(t), serverName, a)
		if (err == nil) != want {
			t.Errorf("%s: %v, want success: %v", name, err, want)
		}
		if err == nil {
			if got := info.(credentials.TLSInfo).State.NegotiatedProtocol; got != "" {
				t.Errorf("%s: negotiated %q", name, got)
			}
			_ = conn.Close()
		}
		await(t, "the other side to end", done)
	}
}

// drain reads a connection to its end.
func drain(conn net.Conn) error {
	defer conn.Close()
	_, err := io.Copy(io.Discard, conn)
	return err
}

// TestPlaintext tests connections on which one side doesn't use TLS.
func TestPlaintext(t *testing.T) {
	for _, who := range impls {
		t.Run("server="+who.name, func(t *testing.T) {
			checkGoroutines(t)
			creds := watched{who.creds(serverConfig()), make(chan error, 1)}
			cc := dial(t, serve(t, creds, nil).addr, insecure.NewCredentials())
			if _, err := call(soon(t), cc, nil); status.Code(err) != codes.Unavailable {
				t.Errorf("%v, want status Unavailable", err)
			}
			var header tls.RecordHeaderError
			if err := await(t, "the server's error", creds.errs); !errors.As(err, &header) || header.Conn == nil {
				t.Errorf("the server says %v, want a tls.RecordHeaderError with its connection", err)
			}
		})
		t.Run("client="+who.name, func(t *testing.T) {
			checkGoroutines(t)
			cc := dial(t, serve(t, insecure.NewCredentials(), nil).addr, who.creds(clientConfig()))
			_, err := call(soon(t), cc, nil)
			if status.Code(err) != codes.Unavailable || !says(err, "first record does not look like a TLS handshake") {
				t.Errorf("%v, want status Unavailable for a record that is none", err)
			}
		})
	}
}

// TestHealthCheck tests a client that connects and closes, as load balancers do: gRPC ignores
// io.EOF, and no other error.
func TestHealthCheck(t *testing.T) {
	for _, who := range impls {
		a, b := net.Pipe()
		_ = a.Close()
		if _, _, err := who.creds(serverConfig()).ServerHandshake(b); err != io.EOF {
			t.Errorf("%s: %v, want io.EOF", who.name, err)
		}
	}
}

// TestServerName tests the name that is sent and verified.
func TestServerName(t *testing.T) {
	for _, test := range []struct {
		authority, sni string
		ok             bool
	}{
		{"server.test:443", "server.test", true},
		{"server.test", "server.test", true},
		{"other.test:443", "other.test", false},
		{"127.0.0.1:443", "", true},
		{"[::1]:443", "", true},
		{"[::1]", "", true},
		{"", "", false},
	} {
		for _, who := range impls {
			t.Run(test.authority+"/client="+who.name, func(t *testing.T) {
				a, b := net.Pipe()
				sni := make(chan string, 1)
				done := make(chan error, 1)
				go func() {
					conn := tls.Server(b, serverConfig(protos("h2"), func(c *tls.Config) {
						c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
							sni <- hello.ServerName
							return nil, nil
						}
					}))
					done <- drain(conn)
				}()
				// gRPC uses the configuration's name as the authority, but the handshake doesn't
				// use it.
				creds := who.creds(clientConfig(func(c *tls.Config) { c.ServerName = serverName }))
				conn, _, err := creds.ClientHandshake(context.Background(), test.authority, a)
				if (err == nil) != test.ok {
					t.Errorf("error %v, want success: %v", err, test.ok)
				}
				if err == nil {
					_ = conn.Close()
				}
				await(t, "the other side to end", done)
				select {
				case got := <-sni:
					if got != test.sni {
						t.Errorf("asks for %q, want %q", got, test.sni)
					}
				default:
					if test.authority != "" {
						t.Error("there was no ClientHello")
					}
				}
			})
		}
	}
}
