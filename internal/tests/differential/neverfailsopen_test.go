//go:build cgo || ossl_nocgo

package differential

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestFIPSVerificationNeverFailsOpen is TestVerificationNeverFailsOpen with libcrypto's
// verification. It does not compare the connections that crypto/tls accepts in these cases: with
// X25519 it negotiates differently.
func TestFIPSVerificationNeverFailsOpen(t *testing.T) {
	ossltest.NeedFIPS(t)
	if ossltest.InFIPS {
		t.Skip("TestVerificationNeverFailsOpen is in FIPS mode")
	}
	for _, version := range tlstest.Versions {
		for _, d := range denials() {
			if d.side == tlstest.ServerRole && strings.Contains(d.name, "callbacks accept") {
				continue
			}
			d.edits = append(append(opts(), d.edits...), func(c *tls.Config) { c.CurvePreferences = ossltest.FIPSGroups })
			t.Run(fmt.Sprintf("%s/%s/%s", tlstest.VersionName(version), d.side, d.name), func(t *testing.T) {
				deny(t, version, d, ossltest.FIPSImpl{}, tlstest.Std)
			})
		}
	}
}

// A denial is a way in which one side refuses the other.
type denial struct {
	name  string
	side  tlstest.Role // the end that denies
	peer  func(*tls.Config)
	edits []func(*tls.Config) // of the end that denies
}

func denyPeer(c *tls.Config) {
	c.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error { return tlstest.ErrDenied }
}

func acceptPeer(c *tls.Config) {
	c.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error { return nil }
}

func acceptConn(c *tls.Config) {
	c.VerifyConnection = func(tls.ConnectionState) error { return nil }
}

func denials() (all []denial) {
	keep := func(*tls.Config) {}
	bad := []string{"expired", "not yet valid", "unknown CA", "unknown CA sent along", "self-signed", "wrong usage",
		"missing intermediate", "expired intermediate", "path too long", "issued by a leaf", "corrupted signature",
		"unknown critical extension", "name outside the issuer's constraints", "key that doesn't match"}
	for _, name := range append(bad, "wrong name", "no name", "name in the subject only") {
		cert := tlstest.SpecimenNamed(name).Cert(tlstest.ServerRole)
		all = append(all, denial{name, tlstest.ClientRole, tlstest.Certificates(cert), nil},
			denial{name + ", callbacks accept", tlstest.ClientRole, tlstest.Certificates(cert), opts(acceptPeer, acceptConn)})
	}
	insecure := opts(tlstest.InsecureSkipVerify)
	all = append(all,
		denial{"VerifyPeerCertificate", tlstest.ClientRole, keep, opts(denyPeer)},
		denial{"VerifyPeerCertificate, InsecureSkipVerify", tlstest.ClientRole, keep, append(insecure, denyPeer)},
		denial{"VerifyConnection", tlstest.ClientRole, keep, opts(tlstest.DenyConn)},
		denial{"VerifyConnection, InsecureSkipVerify", tlstest.ClientRole, keep, append(insecure, tlstest.DenyConn)},
		denial{"VerifyConnection, VerifyPeerCertificate accepts", tlstest.ClientRole, keep, opts(acceptPeer, tlstest.DenyConn)},
		denial{"VerifyPeerCertificate, VerifyConnection accepts", tlstest.ClientRole, keep, opts(denyPeer, acceptConn)},
		denial{"key that doesn't match, InsecureSkipVerify", tlstest.ClientRole,
			tlstest.Certificates(tlstest.SpecimenNamed("key that doesn't match").Cert(tlstest.ServerRole)), insecure},
	)
	for _, mode := range []tls.ClientAuthType{tls.VerifyClientCertIfGiven, tls.RequireAndVerifyClientCert} {
		for _, name := range bad {
			cert := tlstest.SpecimenNamed(name).Cert(tlstest.ClientRole)
			all = append(all,
				denial{fmt.Sprintf("%s, %v", name, mode), tlstest.ServerRole, tlstest.SendCertificate(cert), opts(tlstest.AskClient(mode))},
				denial{fmt.Sprintf("%s, %v, callbacks accept", name, mode), tlstest.ServerRole, tlstest.SendCertificate(cert),
					opts(tlstest.AskClient(mode), acceptPeer, acceptConn)})
		}
	}
	for _, mode := range authModes {
		if mode.mode == tls.RequireAnyClientCert || mode.mode == tls.RequireAndVerifyClientCert {
			all = append(all,
				denial{"none sent, " + mode.name, tlstest.ServerRole, keep, opts(tlstest.AskClient(mode.mode))},
				denial{"none sent, callbacks accept, " + mode.name, tlstest.ServerRole, keep,
					opts(tlstest.AskClient(mode.mode), acceptPeer, acceptConn)})
		} else {
			all = append(all, denial{"none sent, VerifyConnection, " + mode.name, tlstest.ServerRole, keep,
				opts(tlstest.AskClient(mode.mode), tlstest.DenyConn)})
		}
		sent := tlstest.SendCertificate(tlstest.ClientCert(tlstest.P256))
		if mode.mode != tls.NoClientCert {
			all = append(all,
				denial{"VerifyPeerCertificate, " + mode.name, tlstest.ServerRole, sent, opts(tlstest.AskClient(mode.mode), denyPeer)},
				denial{"VerifyPeerCertificate, VerifyConnection accepts, " + mode.name, tlstest.ServerRole, sent,
					opts(tlstest.AskClient(mode.mode), denyPeer, acceptConn)},
				denial{"key that doesn't match, " + mode.name, tlstest.ServerRole,
					tlstest.SendCertificate(tlstest.SpecimenNamed("key that doesn't match").Cert(tlstest.ClientRole)),
					opts(tlstest.AskClient(mode.mode))})
		}
		all = append(all,
			denial{"VerifyConnection, " + mode.name, tlstest.ServerRole, sent, opts(tlstest.AskClient(mode.mode), tlstest.DenyConn)},
			denial{"VerifyConnection, VerifyPeerCertificate accepts, " + mode.name, tlstest.ServerRole, sent,
				opts(tlstest.AskClient(mode.mode), acceptPeer, tlstest.DenyConn)})
	}
	return all
}

// TestVerificationNeverFailsOpen denies in every way on each side, in each TLS version and under
// the libssl at hand. The denying side's handshake must fail, a crypto/tls peer must see the alert
// that crypto/tls would have sent, and no application data may be delivered, neither then nor
// later. ci/matrix runs it under each libssl.
func TestVerificationNeverFailsOpen(t *testing.T) {
	t.Logf("libssl %s", ossltest.Version())
	for _, version := range tlstest.Versions {
		for _, d := range denials() {
			t.Run(fmt.Sprintf("%s/%s/%s", tlstest.VersionName(version), d.side, d.name), func(t *testing.T) {
				for _, peer := range []tlstest.Impl{tlstest.Std, ossltest.UnderTest} {
					deny(t, version, d, ossltest.UnderTest, peer)
				}
			})
		}
	}
}

func deny(t *testing.T, version uint16, d denial, denier, peer tlstest.Impl) {
	t.Helper()
	c := tlstest.Case{
		Client: tlstest.ClientWith(append(opts(tlstest.Only(version)), d.edits...)...),
		Server: tlstest.ServerWith(tlstest.Only(version), d.peer),
		Talk:   tlstest.Echo,
	}
	p := tlstest.Pairing{Client: denier, Server: peer}
	other := tlstest.ServerRole
	if d.side == tlstest.ServerRole {
		c.Client, c.Server = tlstest.ClientWith(tlstest.Only(version),
			d.peer), tlstest.ServerWith(append(opts(tlstest.Only(version)), d.edits...)...)
		p = tlstest.Pairing{Client: peer, Server: denier}
		other = tlstest.ClientRole
	}
	o := tlstest.Run(p, c)
	denying, denied := o.Of(d.side), o.Of(other)
	if o.Hung {
		t.Fatalf("%s: hung", p.Name())
	}
	if denying.Handshake == "ok" {
		t.Fatalf("%s: the handshake succeeded; then %v", p.Name(), denying.TalkErr)
	}
	if denying.Heard != "" || denied.Heard != "" {
		t.Fatalf("%s: application data was delivered: %q, %q", p.Name(), denying.Heard, denied.Heard)
	}
	if denied.Handshake == "ok" && denied.Talk == "ok" {
		t.Fatalf("%s: the peer noticed nothing", p.Name())
	}
	if peer == tlstest.Std {
		// The same case with crypto/tls as the denying side shows which alert is right.
		want := tlstest.Run(tlstest.Pairing{Client: tlstest.Std, Server: tlstest.Std}, c)
		if want.Of(d.side).Handshake == "ok" {
			t.Fatal("crypto/tls accepts this")
		}
		compare(t, p, want, o)
	}
}

// TestVerificationFailureIsFinal tries to continue after a denial, without a Close in between.
func TestVerificationFailureIsFinal(t *testing.T) {
	for _, version := range tlstest.Versions {
		for _, side := range []tlstest.Role{tlstest.ClientRole, tlstest.ServerRole} {
			t.Run(tlstest.VersionName(version)+"/"+string(side), func(t *testing.T) {
				rawClient, rawServer := tlstest.NewPipe()
				defer rawClient.Close()
				defer rawServer.Close()
				var denying, peer tlstest.Conn
				if side == tlstest.ClientRole {
					denying = ossltest.UnderTest.Client(rawClient, tlstest.ClientConfig(tlstest.Only(version), tlstest.DenyConn))
					peer = tlstest.Std.Server(rawServer, tlstest.ServerConfig(tlstest.Only(version)))
				} else {
					denying = ossltest.UnderTest.Server(rawServer, tlstest.ServerConfig(tlstest.Only(version), tlstest.DenyConn))
					peer = tlstest.Std.Client(rawClient, tlstest.ClientConfig(tlstest.Only(version)))
				}
				done := make(chan struct{})
				go func() {
					defer close(done)
					peer.Handshake()
					peer.Write([]byte("application data"))
				}()
				if err := denying.Handshake(); err == nil {
					t.Fatal("the handshake succeeded")
				}
				<-done
				for range 3 {
					if n, err := denying.Read(make([]byte, 100)); n != 0 || err == nil {
						t.Errorf("Read after the denial: %d, %v", n, err)
					}
					if n, err := denying.Write([]byte("x")); n != 0 || err == nil {
						t.Errorf("Write after the denial: %d, %v", n, err)
					}
					if err := denying.Handshake(); err == nil {
						t.Error("Handshake after the denial succeeded")
					}
				}
				if denying.ConnectionState().HandshakeComplete {
					t.Error("the state says that the handshake is complete")
				}
				rawClient.CloseWrite()
				rawServer.CloseWrite()
				if n, err := io.Copy(io.Discard, peer); n != 0 {
					t.Errorf("the peer read %d bytes, %v", n, err)
				}
			})
		}
	}
}

// TestPanicInCallbackIsNoAcceptance makes every callback panic: the panic may come out of
// Handshake, as it does from crypto/tls, or become an error, but the connection must be dead.
func TestPanicInCallbackIsNoAcceptance(t *testing.T) {
	const text = "tlstest: a callback panics"
	type callback struct {
		name string
		side tlstest.Role
		set  func(*tls.Config)
	}
	var callbacks []callback
	for _, side := range []tlstest.Role{tlstest.ClientRole, tlstest.ServerRole} {
		callbacks = append(callbacks,
			callback{"VerifyPeerCertificate", side, func(c *tls.Config) {
				c.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error { panic(text) }
			}},
			callback{"VerifyConnection", side, func(c *tls.Config) {
				c.VerifyConnection = func(tls.ConnectionState) error { panic(text) }
			}},
			callback{"VerifyPeerCertificate, unverified", side, func(c *tls.Config) {
				c.InsecureSkipVerify = true
				if c.ClientAuth != tls.NoClientCert {
					c.ClientAuth = tls.RequestClientCert
				}
				c.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error { panic(text) }
			}})
	}
	callbacks = append(callbacks,
		callback{"GetConfigForClient", tlstest.ServerRole, func(c *tls.Config) {
			c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { panic(text) }
		}},
		callback{"GetCertificate", tlstest.ServerRole, func(c *tls.Config) {
			c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { panic(text) }
		}},
		callback{"GetClientCertificate", tlstest.ClientRole, func(c *tls.Config) {
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { panic(text) }
		}})
	for _, version := range tlstest.Versions {
		for _, callback := range callbacks {
			for _, peer := range []tlstest.Impl{tlstest.Std, ossltest.UnderTest} {
				t.Run(fmt.Sprintf("%s/%s/%s/%s", tlstest.VersionName(version), callback.side, callback.name, peer.Name()),
					func(t *testing.T) {
						rawClient, rawServer := tlstest.NewPipe()
						defer rawClient.Close()
						defer rawServer.Close()
						client := tlstest.ClientConfig(tlstest.Only(version), tlstest.Certificates(tlstest.ClientCert(tlstest.P256)))
						server := tlstest.ServerConfig(tlstest.Only(version), tlstest.AskClient(tls.RequireAndVerifyClientCert))
						var victim, other tlstest.Conn
						if callback.side == tlstest.ClientRole {
							callback.set(client)
							victim, other = ossltest.UnderTest.Client(rawClient, client), peer.Server(rawServer, server)
						} else {
							callback.set(server)
							victim, other = ossltest.UnderTest.Server(rawServer, server), peer.Client(rawClient, client)
						}
						done := make(chan string, 1)
						go func() {
							other.Handshake()
							other.Write([]byte("application data"))
							heard, _ := io.ReadAll(other)
							done <- string(heard)
						}()
						defer func() { // also when the victim hangs
							rawClient.Close()
							rawServer.Close()
						}()
						panicked, err := handshakeRecovering(victim)
						if err == nil && panicked == nil {
							t.Error("the handshake succeeded")
						}
						if panicked != nil && panicked != text {
							t.Errorf("another panic: %v", panicked)
						}
						// The victim gets no more input, so nothing it does now blocks.
						rawClient.CloseWrite()
						rawServer.CloseWrite()
						if n, err := readRecovering(victim); n != 0 || err == nil {
							t.Fatalf("Read afterwards: %d, %v", n, err)
						}
						if victim.ConnectionState().HandshakeComplete {
							t.Error("the state says that the handshake is complete")
						}
						victim.Close()
						if heard := <-done; heard != "" {
							t.Errorf("the peer read %q", heard)
						}
					})
			}
		}
	}
}

func handshakeRecovering(c tlstest.Conn) (panicked any, err error) {
	defer func() { panicked = recover() }()
	return nil, c.Handshake()
}

// readRecovering allows for a callback that panics again, because crypto/tls resumes the handshake
// at the point of the panic.
func readRecovering(c tlstest.Conn) (int, error) {
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if p := recover(); p != nil {
				r.err = fmt.Errorf("panic: %v", p)
			}
			done <- r
		}()
		r.n, r.err = c.Read(make([]byte, 100))
	}()
	select {
	case r := <-done:
		return r.n, r.err
	case <-time.After(tlstest.Patience):
		return -1, errors.New("it hangs")
	}
}
