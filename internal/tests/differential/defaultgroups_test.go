//go:build cgo || ossl_nocgo

package differential

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// offered reads a client's first message and returns the groups that it lists, and those that it
// sends key shares for.
func offered(t *testing.T, client func(net.Conn) interface{ Handshake() error }) (groups, shares []tls.CurveID) {
	t.Helper()
	a, b := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		client(a).Handshake() // fails when the pipe is closed
	}()
	defer func() { b.Close(); a.Close(); <-done }()
	header := make([]byte, 5)
	if _, err := io.ReadFull(b, header); err != nil {
		t.Fatal(err)
	}
	hello := make([]byte, binary.BigEndian.Uint16(header[3:]))
	if _, err := io.ReadFull(b, hello); err != nil {
		t.Fatal(err)
	}
	// RFC 8446, section 4.1.2: type and length, version and random, then three vectors, and the
	// extensions.
	rest := hello[4+2+32:]
	rest = rest[1+int(rest[0]):]
	rest = rest[2+int(binary.BigEndian.Uint16(rest)):]
	rest = rest[1+int(rest[0]):]
	for rest = rest[2:]; len(rest) >= 4; {
		kind, n := binary.BigEndian.Uint16(rest), int(binary.BigEndian.Uint16(rest[2:]))
		body := rest[4 : 4+n]
		rest = rest[4+n:]
		switch kind {
		case 10: // supported_groups
			for body = body[2:]; len(body) > 0; body = body[2:] {
				groups = append(groups, tls.CurveID(binary.BigEndian.Uint16(body)))
			}
		case 51: // key_share
			for body = body[2:]; len(body) > 0; body = body[4+int(binary.BigEndian.Uint16(body[2:])):] {
				shares = append(shares, tls.CurveID(binary.BigEndian.Uint16(body)))
			}
		}
	}
	return groups, shares
}

// defaultGroups removes tlstest's choice of groups.
func defaultGroups(c *tls.Config) { c.CurvePreferences = nil }

// TestDefaultGroups compares a client's offer by default with crypto/tls's: the same groups in
// the same order, the hybrids first, and key shares for the same two, on every libssl that has
// them.
func TestDefaultGroups(t *testing.T) {
	config := tlstest.ClientConfig(defaultGroups)
	ctx, err := ossl.NewContext(config)
	if err != nil {
		t.Fatal(err)
	}
	groups, shares := offered(t, func(c net.Conn) interface{ Handshake() error } { return ctx.Client(c, "") })
	wantGroups, wantShares := offered(t, func(c net.Conn) interface{ Handshake() error } { return tls.Client(c, config) })
	if !slices.Contains(wantGroups, tls.X25519MLKEM768) || len(wantShares) != 2 {
		t.Fatalf("crypto/tls offers %v with key shares for %v: has its default changed?", wantGroups, wantShares)
	}
	if !ossltest.AtLeast("3.5") {
		wantGroups, wantShares = slices.DeleteFunc(wantGroups, isHybrid), slices.DeleteFunc(wantShares, isHybrid)
	}
	if !slices.Equal(groups, wantGroups) || !slices.Equal(shares, wantShares) {
		t.Errorf("offers %v with key shares for %v; crypto/tls %v with %v", groups, shares, wantGroups, wantShares)
	}
}

// TestDefaultGroupsAgreed connects a side with the default configuration to crypto/tls, which has
// its own preferences or insists on one group. A hybrid that is not in the first flight takes a
// HelloRetryRequest.
func TestDefaultGroupsAgreed(t *testing.T) {
	best, hybrids := tls.X25519, []tls.CurveID{}
	if ossltest.AtLeast("3.5") {
		best, hybrids = tls.X25519MLKEM768, []tls.CurveID{tls.X25519MLKEM768, tls.SecP256r1MLKEM768, tls.SecP384r1MLKEM1024}
	}
	for _, only := range append([]tls.CurveID{0, tls.X25519, tls.CurveP256}, hybrids...) {
		insist, want := defaultGroups, best
		if only != 0 {
			if !stdHasGroup(only) {
				continue // crypto/tls of before Go 1.26, or switched off
			}
			insist, want = func(c *tls.Config) { c.CurvePreferences = []tls.CurveID{only} }, only
		}
		p := ossltest.NewContexts(t, func(c, s *tls.Config) { defaultGroups(c); defaultGroups(s) })
		peerClient, peerServer := tlstest.ClientConfig(), tlstest.ServerConfig()
		insist(peerClient)
		insist(peerServer)

		a, b := tlstest.Loopback()
		agree(t, p.Client.Client(a, ""), tls.Server(b, peerServer), want)
		a, b = tlstest.Loopback()
		agree(t, tls.Client(a, peerClient), p.Server.Server(b), want)
	}
}

func agree(t *testing.T, client, server interface {
	net.Conn
	Handshake() error
	ConnectionState() tls.ConnectionState
}, want tls.CurveID) {
	t.Helper()
	defer client.Close()
	defer server.Close()
	failed := make(chan error, 1)
	go func() { failed <- server.Handshake() }()
	if err := client.Handshake(); err != nil {
		t.Fatalf("%v: %v", want, err)
	}
	if err := <-failed; err != nil {
		t.Fatalf("%v: %v", want, err)
	}
	c, s := client.ConnectionState().CurveID, server.ConnectionState().CurveID
	if c != want || s != want {
		t.Errorf("client %v, server %v; want %v", c, s, want)
	}
}
