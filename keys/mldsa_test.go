//go:build cgo || ossl_nocgo

package keys_test

import (
	"crypto/tls"
	"errors"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/keys"
)

// TestLoadMLDSA loads an ML-DSA key in its three forms, or reports what it requires.
func TestLoadMLDSA(t *testing.T) {
	for _, form := range []string{"seed", "expanded", "both"} {
		t.Run(form, func(t *testing.T) {
			pair, err := keys.LoadX509KeyPair("testdata/mldsa/cert.pem", "testdata/mldsa/"+form+".pem")
			if !ossltest.AtLeast("3.5") || !libssl.GoHasMLDSA {
				var e *keys.Error
				want := "ML-DSA-44 requires OpenSSL 3.5"
				if ossltest.AtLeast("3.5") {
					want = "ML-DSA-44 requires Go 1.27"
				}
				if !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want that %s", err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := pair.PrivateKey.(*keys.Key).Provider(); got != "default" {
				t.Errorf("provider %q", got)
			}
			for _, stacks := range [][2]string{{"ossl", "std"}, {"std", "ossl"}, {"ossl", "ossl"}} {
				client, server := tlstest.PlainClient(tls.VersionTLS13), tlstest.PlainServer(tls.VersionTLS13)
				server.Certificates = []tls.Certificate{pair}
				client.RootCAs = tlstest.CA().Pool()
				client.RootCAs.AddCert(pair.Leaf) // it is self-signed
				clientErr, serverErr := ossltest.Exchange(stacks[0], stacks[1], client, server)
				if clientErr != nil || serverErr != nil {
					t.Errorf("%v: client: %v; server: %v", stacks, clientErr, serverErr)
				}
			}
		})
	}
}
