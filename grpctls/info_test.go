package grpctls_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"reflect"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/grpctls"
)

// handshakeInfo runs both sides' handshakes over a socket and returns the results that gRPC gets.
type handshakeInfo struct {
	conn net.Conn
	info credentials.AuthInfo
	err  error
}

func handshake(t *testing.T, server, client credentials.TransportCredentials) (s, c handshakeInfo) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan handshakeInfo, 1)
	go func() {
		raw, err := l.Accept()
		if err != nil {
			done <- handshakeInfo{err: err}
			return
		}
		conn, info, err := server.ServerHandshake(raw)
		done <- handshakeInfo{conn, info, err}
	}()
	raw, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c.conn, c.info, c.err = client.ClientHandshake(soon(t), serverName, raw)
	s = await(t, "the server's handshake", done)
	t.Cleanup(func() {
		for _, side := range []handshakeInfo{s, c} {
			if side.conn != nil {
				_ = side.conn.Close()
			}
		}
	})
	return s, c
}

// TestTLSInfo compares the information about a connection that gRPC and its users get with that
// from gRPC's own credentials.
func TestTLSInfo(t *testing.T) {
	versions(t, func(t *testing.T, version uint16) {
		pairings(t, func(t *testing.T, server, client impl) {
			cert := ca().issue(withURIs("spiffe://example.org/workload/1"))
			s, c := handshake(t, server.creds(serverConfig(mutual, atMost(version))),
				client.creds(clientConfig(withCert(func() tls.Certificate { return cert }))))
			if s.err != nil || c.err != nil {
				t.Fatal(s.err, c.err)
			}
			for name, side := range map[string]handshakeInfo{"server": s, "client": c} {
				info, ok := side.info.(credentials.TLSInfo)
				if !ok {
					t.Fatalf("%s: %T, want credentials.TLSInfo", name, side.info)
				}
				if info.AuthType() != "tls" {
					t.Errorf("%s: AuthType %q", name, info.AuthType())
				}
				if err := credentials.CheckSecurityLevel(info, credentials.PrivacyAndIntegrity); err != nil ||
					info.SecurityLevel != credentials.PrivacyAndIntegrity {
					t.Errorf("%s: security level %v, %v", name, info.SecurityLevel, err)
				}
				state := info.State
				if !state.HandshakeComplete || state.Version != version || state.NegotiatedProtocol != "h2" ||
					state.CurveID != tls.X25519 || state.ServerName != serverName {
					t.Errorf("%s: state %+v", name, state)
				}
				if len(state.PeerCertificates) != 1 || len(state.VerifiedChains) != 1 || len(state.VerifiedChains[0]) != 2 {
					t.Errorf("%s: %d certificates, chains %v", name, len(state.PeerCertificates), state.VerifiedChains)
				}
				value, ok := info.GetSecurityValue().(*credentials.TLSChannelzSecurityValue)
				if !ok || value.StandardName != tls.CipherSuiteName(state.CipherSuite) ||
					!bytes.Equal(value.RemoteCertificate, state.PeerCertificates[0].Raw) {
					t.Errorf("%s: channelz is told %+v", name, value)
				}
				if _, ok := side.conn.(syscall.Conn); !ok {
					t.Errorf("%s: %T shows no socket, whose options channelz tells", name, side.conn)
				}
			}
			if got := s.info.(credentials.TLSInfo).SPIFFEID; got == nil || got.String() != "spiffe://example.org/workload/1" {
				t.Errorf("SPIFFE ID %v", got)
			}
			if got := c.info.(credentials.TLSInfo).SPIFFEID; got != nil {
				t.Errorf("the server's certificate has no SPIFFE ID, and yet: %v", got)
			}
			validator := c.info.(credentials.AuthorityValidator)
			for authority, ok := range map[string]bool{
				serverName: true, serverName + ":443": true, "127.0.0.1:1": true, "[::1]:1": true, otherName: false, "": false,
			} {
				if err := validator.ValidateAuthority(authority); (err == nil) != ok {
					t.Errorf("authority %q: %v, want it valid: %v", authority, err, ok)
				}
			}
			// Both sides must export the same.
			a, errA := exporter(s).ExportKeyingMaterial("EXPERIMENTAL grpctls", nil, 32)
			b, errB := exporter(c).ExportKeyingMaterial("EXPERIMENTAL grpctls", nil, 32)
			if errA != nil || errB != nil || !bytes.Equal(a, b) {
				t.Errorf("keying material %x, %v and %x, %v", a, errA, b, errB)
			}
		})
	})
}

func exporter(side handshakeInfo) *tls.ConnectionState {
	state := side.info.(credentials.TLSInfo).State
	return &state
}

// TestSPIFFEID compares with gRPC's own implementation, whose rules are internal.
func TestSPIFFEID(t *testing.T) {
	good := "spiffe://example.org/workload/1"
	longest := "spiffe://example.org/" + strings.Repeat("w", 2048-len("spiffe://example.org/"))
	for name, test := range map[string]struct {
		uris []string
		want string
	}{
		"none":                 {nil, ""},
		"good":                 {[]string{good}, good},
		"another scheme":       {[]string{"https://example.org/workload/1"}, ""},
		"no domain":            {[]string{"spiffe:///workload/1"}, ""},
		"no path":              {[]string{"spiffe://example.org"}, ""},
		"opaque":               {[]string{"spiffe:example.org"}, ""},
		"user":                 {[]string{"spiffe://user@example.org/workload/1"}, ""},
		"password only":        {[]string{"spiffe://:secret@example.org/workload/1"}, "spiffe://:secret@example.org/workload/1"},
		"two":                  {[]string{good, "spiffe://example.org/workload/2"}, ""},
		"and another URI":      {[]string{good, "https://example.org/"}, ""},
		"another URI first":    {[]string{"https://example.org/", good}, ""},
		"longest domain":       {[]string{"spiffe://" + label(255) + "/w"}, "spiffe://" + label(255) + "/w"},
		"domain too long":      {[]string{"spiffe://" + label(256) + "/w"}, ""},
		"longest":              {[]string{longest}, longest},
		"too long":             {[]string{longest + "w"}, ""},
		"too long, other":      {[]string{"https://example.org/" + strings.Repeat("w", 2048)}, ""},
		"two, of which one ok": {[]string{"spiffe://user@example.org/w", good}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cert := ca().issue(withURIs(test.uris...))
			for _, who := range impls {
				client := std.creds(clientConfig(withCert(func() tls.Certificate { return cert })))
				s, c := handshake(t, who.creds(serverConfig(mutual)), client)
				if s.err != nil || c.err != nil {
					t.Fatal(s.err, c.err)
				}
				got := ""
				if id := s.info.(credentials.TLSInfo).SPIFFEID; id != nil {
					got = id.String()
				}
				if got != test.want {
					t.Errorf("server=%s: %q, want %q", who.name, got, test.want)
				}
			}
		})
	}
}

// label returns a host name of n bytes.
func label(n int) string {
	name := strings.Repeat(strings.Repeat("a", 31)+".", n/32+1)[:n]
	return name[:n-1] + "a"
}

// TestPeer checks that a handler sees the client as it does with gRPC's own credentials.
func TestPeer(t *testing.T) {
	pairings(t, func(t *testing.T, server, client impl) {
		cert := ca().issue(func(c *x509.Certificate) { c.Subject.CommonName = "the caller" })
		var seen *peer.Peer
		s := serve(t, server.creds(serverConfig(mutual)), &echo{unary: func(ctx context.Context, in []byte) ([]byte, error) {
			seen, _ = peer.FromContext(ctx)
			return in, nil
		}})
		cc := dial(t, s.addr, client.creds(clientConfig(withCert(func() tls.Certificate { return cert }))))
		if _, err := call(soon(t), cc, nil); err != nil {
			t.Fatal(err)
		}
		// As the authorization policies of packages authz and xds/rbac do.
		info, ok := seen.AuthInfo.(credentials.TLSInfo)
		if !ok || len(info.State.VerifiedChains) == 0 || info.State.VerifiedChains[0][0].Subject.CommonName != "the caller" {
			t.Errorf("the handler sees %+v", seen.AuthInfo)
		}
	})
}

func TestInfoCloneOverride(t *testing.T) {
	for _, who := range impls {
		t.Run(who.name, func(t *testing.T) {
			a := who.creds(clientConfig())
			//lint:ignore SA1019 deprecated, and a part of the interface
			want := credentials.ProtocolInfo{SecurityProtocol: "tls", SecurityVersion: "1.2", ServerName: serverName}
			if got := a.Info(); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
			b := a.Clone()
			//lint:ignore SA1019 deprecated, and a part of the interface
			if err := b.OverrideServerName(otherName); err != nil {
				t.Fatal(err)
			}
			//lint:ignore SA1019 deprecated, and a part of the interface
			if nameA, nameB := a.Info().ServerName, b.Info().ServerName; nameA != serverName || nameB != otherName {
				t.Errorf("names %q and %q", nameA, nameB)
			}
			s, c := handshake(t, std.creds(serverConfig()), b)
			if s.err != nil || c.err != nil {
				t.Error("the clone: ", s.err, c.err)
			}
		})
	}
}

// TestConfigIsCopied changes a configuration after New, and checks that New didn't change it.
func TestConfigIsCopied(t *testing.T) {
	for _, who := range impls {
		t.Run(who.name, func(t *testing.T) {
			config := clientConfig(protos("foo"))
			before := config.Clone()
			creds := who.creds(config)
			same := reflect.DeepEqual(config.NextProtos, before.NextProtos) && config.MinVersion == before.MinVersion &&
				config.CipherSuites == nil && config.ServerName == before.ServerName
			if !same {
				t.Errorf("changed: %+v", config)
			}
			config.RootCAs = otherCA().pool()
			config.ServerName = otherName
			config.NextProtos[0] = "bar"
			s, c := handshake(t, std.creds(serverConfig()), creds)
			if s.err != nil || c.err != nil {
				t.Error(s.err, c.err)
			}
		})
	}
}

func TestRefusedByName(t *testing.T) {
	config := serverConfig(func(c *tls.Config) { c.Renegotiation = tls.RenegotiateFreelyAsClient })
	_, err := grpctls.New(config)
	var refused *ossl.ConfigError
	if !errors.As(err, &refused) || refused.Field != "Renegotiation" {
		t.Errorf("New: %v, want a ConfigError for Renegotiation", err)
	}
	if _, err := grpctls.New(serverConfig(), ossl.WithSecurityLevel(99)); !errors.As(err, &refused) {
		t.Errorf("New: %v, want a ConfigError for WithSecurityLevel", err)
	}
	if _, err := grpctls.NewClient("passthrough:///x", config); !errors.As(err, &refused) {
		t.Errorf("NewClient: %v, want a ConfigError", err)
	}
	// NewTLS can't return an error: its handshakes fail, and the connection is closed.
	creds := grpctls.NewTLS(config)
	a, b := net.Pipe()
	if _, _, err := creds.ClientHandshake(context.Background(), serverName, a); !errors.As(err, &refused) {
		t.Errorf("ClientHandshake: %v, want a ConfigError", err)
	}
	if _, _, err := creds.ServerHandshake(b); !errors.As(err, &refused) {
		t.Errorf("ServerHandshake: %v, want a ConfigError", err)
	}
	if _, err := a.Write([]byte{0}); err == nil {
		t.Error("the connection is still open")
	}
	cc := dial(t, serve(t, std.creds(serverConfig()), nil).addr, creds)
	if _, err := call(soon(t), cc, nil); status.Code(err) != codes.Unavailable || !says(err, "Renegotiation") {
		t.Errorf("a call: %v, want Unavailable for the field's sake", err)
	}
}

func TestOptions(t *testing.T) {
	creds, err := grpctls.New(clientConfig(), ossl.WithTLS13CipherSuites(tls.TLS_CHACHA20_POLY1305_SHA256))
	if err != nil {
		t.Fatal(err)
	}
	s, c := handshake(t, std.creds(serverConfig()), creds)
	if s.err != nil || c.err != nil {
		t.Fatal(s.err, c.err)
	}
	if got := c.info.(credentials.TLSInfo).State.CipherSuite; got != tls.TLS_CHACHA20_POLY1305_SHA256 {
		t.Errorf("suite %s", tls.CipherSuiteName(got))
	}
}

func TestFromContext(t *testing.T) {
	client, err := ossl.NewContext(clientConfig(), ossl.WithHTTP2())
	if err != nil {
		t.Fatal(err)
	}
	creds := grpctls.FromContext(client)
	//lint:ignore SA1019 deprecated, and a part of the interface
	if got := creds.Info().ServerName; got != serverName {
		t.Errorf("server name %q", got)
	}
	s, c := handshake(t, ours.creds(serverConfig()), creds)
	if s.err != nil || c.err != nil {
		t.Fatal(s.err, c.err)
	}
	without, err := ossl.NewContext(clientConfig())
	if err != nil {
		t.Fatal(err)
	}
	if _, c := handshake(t, ours.creds(serverConfig()), grpctls.FromContext(without)); !says(c.err, "ALPN") || c.err == nil {
		t.Errorf("a context that doesn't offer HTTP/2: %v", c.err)
	}
}

// TestConstructors tests a pair of each of the constructors that gRPC also has.
func TestConstructors(t *testing.T) {
	cert := goodCert()
	certFile, keyFile := writePEM(t, cert)
	rootFile, _ := writePEM(t, tls.Certificate{Certificate: [][]byte{ca().cert.Raw}, PrivateKey: ca().key})
	serverFromFile, err := grpctls.NewServerTLSFromFile(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	clientFromFile, err := grpctls.NewClientTLSFromFile(rootFile, serverName)
	if err != nil {
		t.Fatal(err)
	}
	for _, server := range []credentials.TransportCredentials{grpctls.NewServerTLSFromCert(&cert), serverFromFile} {
		for _, client := range []credentials.TransportCredentials{
			grpctls.NewClientTLSFromCert(ca().pool(), serverName), clientFromFile,
		} {
			if s, c := handshake(t, server, client); s.err != nil || c.err != nil {
				t.Error(s.err, c.err)
			}
		}
	}
	text := must(os.ReadFile(rootFile))
	damaged := rootFile + ".damaged" // package pem skips the second block
	if err := os.WriteFile(damaged, append(text, text[:len(text)-9]...), 0o600); err != nil {
		t.Fatal(err)
	}
	damagedChain := certFile + ".damaged"
	if err := os.WriteFile(damagedChain, append(must(os.ReadFile(certFile)), text[:len(text)-9]...), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"a cut authority":           second(grpctls.NewClientTLSFromFile(damaged, "")),
		"a cut chain":               second(grpctls.NewServerTLSFromFile(damagedChain, keyFile)),
		"no authority's file":       second(grpctls.NewClientTLSFromFile(rootFile+".missing", "")),
		"no certificate in it":      second(grpctls.NewClientTLSFromFile(keyFile, "")),
		"no certificate's file":     second(grpctls.NewServerTLSFromFile(certFile+".missing", keyFile)),
		"a key that does not match": second(grpctls.NewServerTLSFromFile(rootFile, keyFile)),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	nobody, err := grpctls.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, c := handshake(t, grpctls.NewServerTLSFromCert(&cert), nobody); !says(c.err, "unknown authority") || c.err == nil {
		t.Errorf("the zero configuration trusts the test's authority: %v", c.err)
	}
}

func second[T any](_ T, err error) error { return err }

// A watchedKey counts the calls for its public key, one each time that a configuration is compiled.
type watchedKey struct {
	crypto.Signer
	asked atomic.Int64
}

func (k *watchedKey) Public() crypto.PublicKey {
	k.asked.Add(1)
	return k.Signer.Public()
}

// TestCompiledOnce checks that connections and clones share one compiled Context, also for
// configurations chosen for each client: a Context for each connection would cost more than the
// handshake.
func TestCompiledOnce(t *testing.T) {
	for name, wrapped := range map[string]bool{"credentials": false, "GetConfigForClient": true} {
		t.Run(name, func(t *testing.T) {
			cert := goodCert()
			key := &watchedKey{Signer: cert.PrivateKey.(crypto.Signer)}
			cert.PrivateKey = key
			config := serverConfig(withCert(func() tls.Certificate { return cert }))
			if wrapped {
				chosen := config
				config = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return chosen, nil }}
			}
			creds := ours.creds(config)
			shake := func(creds credentials.TransportCredentials) {
				t.Helper()
				s, c := handshake(t, creds, ours.creds(clientConfig()))
				if s.err != nil || c.err != nil {
					t.Fatal(s.err, c.err)
				}
			}
			shake(creds)
			once := key.asked.Load()
			if once == 0 {
				t.Fatal("the key was never asked: this test sees nothing")
			}
			shake(creds)
			shake(creds.Clone())
			if asked := key.asked.Load(); asked != once {
				t.Errorf("asked %d times for the first connection and %d times for two more", once, asked-once)
			}
		})
	}
}
