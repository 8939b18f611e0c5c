package hosttest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	"github.com/libp2p/go-libp2p/p2p/transport/websocket"
	"github.com/multiformats/go-multiaddr"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/libp2ptls"
)

// securityOf dials a host at addr, and returns the security of the connection.
func securityOf(dialer, listener host.Host, addr ...multiaddr.Multiaddr) (protocol.ID, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := dialer.Connect(ctx, peer.AddrInfo{ID: listener.ID(), Addrs: addr}); err != nil {
		return "", err
	}
	return dialer.Network().ConnsToPeer(listener.ID())[0].ConnState().Security, nil
}

// The order of the dialing host's options decides between TLS and Noise.
func TestNoiseBesideTLS(t *testing.T) {
	withTLS, withNoise := libp2p.Security(libp2ptls.ID, libp2ptls.New), libp2p.Security(noise.ID, noise.New)
	both := flavour{"TLS, Noise", libp2p.ChainOptions(withTLS, withNoise)}
	reverse := flavour{"Noise, TLS", libp2p.ChainOptions(withNoise, withTLS)}
	onlyNoise := flavour{"Noise", withNoise}
	for _, test := range []struct {
		dialer, listener flavour
		want             protocol.ID // "" for no connection
	}{
		{both, both, libp2ptls.ID}, {both, reverse, libp2ptls.ID}, {reverse, both, noise.ID}, {reverse, openssl, libp2ptls.ID},
		{both, onlyNoise, noise.ID}, {onlyNoise, both, noise.ID}, {onlyNoise, openssl, ""}, {openssl, onlyNoise, ""},
	} {
		t.Run(test.dialer.name+" to "+test.listener.name, func(t *testing.T) {
			dialer, listener := newHost(t, test.dialer), newHost(t, test.listener)
			got, err := securityOf(dialer, listener, listener.Addrs()...)
			if got != test.want || (err == nil) != (test.want != "") {
				t.Errorf("%q, %v; want %q", got, err, test.want)
			}
		})
	}
}

// A listener of ossl in front of a host's ws listener makes it a wss listener.
func TestWSS(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"wss.test"},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if cert, err := x509.ParseCertificate(der); err == nil {
		roots.AddCert(cert)
	}
	front, err := ossl.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, NextProtos: []string{"http/1.1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer front.Close()
	_, port, err := net.SplitHostPort(front.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	public := multiaddr.StringCast("/ip4/127.0.0.1/tcp/" + port + "/tls/sni/wss.test/ws")
	plain := multiaddr.StringCast("/ip4/127.0.0.1/tcp/0/ws")
	for _, f := range []flavour{openssl, {"Noise", libp2p.Security(noise.ID, noise.New)}} {
		t.Run(f.name, func(t *testing.T) {
			listener := newHost(t, f, libp2p.Transport(websocket.New), libp2p.ListenAddrs(plain),
				libp2p.AddrsFactory(func([]multiaddr.Multiaddr) []multiaddr.Multiaddr { return []multiaddr.Multiaddr{public} }))
			serve(t, listener)
			go forward(front, wsAddress(t, listener))
			dialer := newHost(t, f, libp2p.NoListenAddrs,
				libp2p.Transport(websocket.New, websocket.WithTLSClientConfig(&tls.Config{RootCAs: roots})))
			got, err := securityOf(dialer, listener, listener.Addrs()...)
			if err != nil {
				t.Fatal(err)
			}
			conn := dialer.Network().ConnsToPeer(listener.ID())[0]
			if want := map[string]protocol.ID{"OpenSSL": libp2ptls.ID, "Noise": noise.ID}[f.name]; got != want ||
				conn.ConnState().Transport != "websocket" {
				t.Errorf("%s over %s, want %s", got, conn.ConnState().Transport, want)
			}
			if err := transfer(context.Background(), dialer, listener.ID(), 1<<20); err != nil {
				t.Error(err)
			}
			listener.Close()
		})
	}
}

// wsAddress returns the address of a host's ws listener.
func wsAddress(t *testing.T, h host.Host) string {
	t.Helper()
	for _, addr := range h.Network().ListenAddresses() {
		if _, err := addr.ValueForProtocol(multiaddr.P_WS); err == nil {
			port, err := addr.ValueForProtocol(multiaddr.P_TCP)
			if err != nil {
				t.Fatal(err)
			}
			return net.JoinHostPort("127.0.0.1", port)
		}
	}
	t.Fatal("the host has no ws listener")
	return ""
}

// forward accepts one connection and passes its bytes on to addr, and back.
func forward(front net.Listener, addr string) {
	conn, err := front.Accept()
	if err != nil {
		return
	}
	defer conn.Close()
	back, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	defer back.Close()
	go func() { _, _ = io.Copy(back, conn); _ = back.(*net.TCPConn).CloseWrite() }()
	_, _ = io.Copy(conn, back)
}
