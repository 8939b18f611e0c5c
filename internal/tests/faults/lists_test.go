//go:build cgo && ossl_faults

package faults_test

import (
	"crypto/x509"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/chain"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestListSignature: a fault while the FIPS module verifies the signature of a revocation list is not taken for a
// wrong signature, which the list would remember.
func TestListSignature(t *testing.T) {
	ossltest.NeedFIPS(t)
	if _, err := ossl.NewContext(nil, ossl.WithFIPS()); err != nil { // which sets the module up
		t.Fatal(err)
	}
	for _, kind := range []tlstest.KeyKind{tlstest.P256, tlstest.RSA2048} {
		ca := tlstest.NewAuthorityOf(kind, "lists", nil, nil)
		list, err := x509.ParseRevocationList(ca.List(1, nil))
		if err != nil {
			t.Fatal(err)
		}
		verify := func() (bool, error) {
			return chain.VerifyList(ca.Cert, list.SignatureAlgorithm, list.RawTBSRevocationList, list.Signature)
		}
		for range 2 {
			if ok, err := verify(); !ok || err != nil {
				t.Fatal(ok, err)
			}
		}
		libssl.FailAllocations(1<<40, 1<<40+1)
		verify()
		total := libssl.CountAllocations()
		for n := 1; n <= total; n++ {
			libssl.FailAllocations(n, n+*span)
			if ok, err := verify(); !ok && err == nil {
				t.Errorf("%s: allocation %d of %d: the signature is wrong", kind, n, total)
			}
			libssl.CountAllocations()
			if ok, err := verify(); !ok || err != nil {
				t.Errorf("%s: after allocation %d: %v, %v", kind, n, ok, err)
			}
		}
		t.Logf("%s: %d allocations", kind, total)
	}
}
