//go:build (cgo || ossl_nocgo) && go1.27

package differential

import (
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestDifferentialMLKEM1024 runs handshakes with the group that crypto/tls has from Go 1.27 on,
// alone and among others, and compares the ClientHello.
func TestDifferentialMLKEM1024(t *testing.T) {
	if !ossltest.AtLeast("3.5") {
		t.Skipf("%s has no ML-KEM; 3.5 has", ossltest.Version())
	}
	defer checkStale(t)
	for _, list := range [][]tls.CurveID{
		{tls.MLKEM1024}, {tls.CurveP256, tls.MLKEM1024}, {tls.X25519MLKEM768, tls.MLKEM1024, tls.X25519},
	} {
		if ossltest.InFIPS && slices.Contains(list, tls.X25519MLKEM768) {
			continue // X25519 by itself is refused
		}
		t.Run(fmt.Sprint(list), func(t *testing.T) {
			for _, server := range [][]tls.CurveID{list, {tls.MLKEM1024}} {
				good(t, tlstest.Case{
					Client: tlstest.ClientWith(tlstest.Only(tls.VersionTLS13), tlstest.Curves(list...)),
					Server: tlstest.ServerWith(tlstest.Only(tls.VersionTLS13), tlstest.Curves(server...)),
				})
			}
			config := tlstest.ClientConfig(tlstest.Curves(list...))
			ctx, err := ossl.NewContext(config, ossltest.AsTests()...)
			if err != nil {
				t.Fatal(err)
			}
			groups, shares := offered(t, func(c net.Conn) interface{ Handshake() error } { return ctx.Client(c, "") })
			wantGroups, wantShares := offered(t, func(c net.Conn) interface{ Handshake() error } { return tls.Client(c, config) })
			if !slices.Equal(groups, wantGroups) || !slices.Equal(shares, wantShares) {
				t.Errorf("offers %v with key shares for %v; crypto/tls %v with %v", groups, shares, wantGroups, wantShares)
			}
		})
	}
}
