//go:build cgo || ossl_nocgo

package conns

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestListenerTakesChanges changes the configuration of a listener before its first connection, and between two.
// crypto/tls forbids such changes, but its listeners use them; ignoring one would fail open.
func TestListenerTakesChanges(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		changes := map[string]func(*tls.Config){
			"ClientAuth":       func(c *tls.Config) { c.ClientAuth = tls.RequireAnyClientCert },
			"VerifyConnection": tlstest.DenyConn,
			"GetConfigForClient": func(c *tls.Config) {
				c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, errors.New("refused") }
			},
		}
		if version == tls.VersionTLS12 {
			changes["MinVersion"] = func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 }
		}
		for name, change := range changes {
			for kind, listen := range map[string]func(net.Listener, *tls.Config) net.Listener{
				"crypto/tls": tls.NewListener,
				"ossl":       ossl.NewListener,
				"ossl.Listen": func(l net.Listener, config *tls.Config) net.Listener {
					l.Close()
					l, err := ossl.Listen("tcp", "127.0.0.1:0", config)
					if err != nil {
						t.Fatal(err)
					}
					return l
				},
			} {
				t.Run(name+"/"+kind+"/"+tls.VersionName(version), func(t *testing.T) {
					for _, used := range []bool{false, true} {
						inner, err := net.Listen("tcp", "127.0.0.1:0")
						if err != nil {
							t.Fatal(err)
						}
						config := tlstest.ServerConfig()
						l := listen(inner, config)
						defer l.Close()
						client := tlstest.ClientConfig()
						client.MaxVersion = version
						visit := func() error {
							done := make(chan error, 1)
							go func() {
								conn, err := l.Accept()
								if err == nil {
									err = conn.(interface{ Handshake() error }).Handshake()
									conn.Close()
								}
								done <- err
							}()
							if conn, err := tls.Dial("tcp", l.Addr().String(), client); err == nil {
								io.Copy(io.Discard, conn)
								conn.Close()
							}
							return <-done
						}
						if used {
							if err := visit(); err != nil {
								t.Fatal(err)
							}
						}
						change(config)
						if err := visit(); err == nil {
							t.Errorf("after a connection %v: not enforced", used)
						}
					}
				})
			}
		}
	}
}

// TestListenerRefused: a listener whose configuration can't be honoured returns the reason, until
// it can.
func TestListenerRefused(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13, MaxVersion: tls.VersionTLS12}
	l := ossl.NewListener(inner, config)
	defer l.Close()
	if _, err := l.Accept(); !errors.As(err, new(*ossl.ConfigError)) {
		t.Errorf("error %v", err)
	}
	config.MaxVersion, config.Certificates = 0, tlstest.ServerConfig().Certificates
	go func() {
		if conn, err := tls.Dial("tcp", l.Addr().String(), tlstest.ClientConfig()); err == nil {
			conn.Close()
		}
	}()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.(*ossl.Conn).Handshake(); err != nil {
		t.Error(err)
	}
}

// TestListenerGoesOnBesideSilentPeers checks that peers that connect and send nothing cost no SSL
// and delay no other peer.
func TestListenerGoesOnBesideSilentPeers(t *testing.T) {
	p := ossltest.NewContexts(t, nil)
	ln, err := p.Server.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				io.Copy(c, c)
			}()
		}
	}()
	for range 200 {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	raw, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c := p.Client.Client(raw, "")
	defer c.Close()
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 5)
	if _, err := io.ReadFull(c, buf); err != nil || string(buf) != "hello" {
		t.Fatalf("%q, %v", buf, err)
	}
}
