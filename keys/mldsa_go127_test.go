//go:build (cgo || ossl_nocgo) && go1.27

package keys_test

import (
	"crypto"
	"crypto/mldsa"
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/keys"
)

// TestMLDSASign: Sign signs messages as crypto/mldsa does, and refuses what it can't do.
func TestMLDSASign(t *testing.T) {
	if !ossltest.AtLeast("3.5") {
		t.Skipf("OpenSSL %s has no ML-DSA; 3.5 has", ossltest.Version())
	}
	for _, kind := range tlstest.MLDSAKinds {
		key := ossltest.LoadedPair(t, kind, tlstest.ServerName).PrivateKey.(*keys.Key)
		public := key.Public().(*mldsa.PublicKey)
		message := []byte("a message")
		for _, opts := range []crypto.SignerOpts{crypto.Hash(0), &mldsa.Options{}} {
			sig, err := key.Sign(nil, message, opts)
			if err != nil {
				t.Fatal(err)
			}
			if err := mldsa.Verify(public, message, sig, nil); err != nil {
				t.Error(err)
			}
			if len(sig) != public.Parameters().SignatureSize() {
				t.Errorf("%s: a signature of %d bytes", kind, len(sig))
			}
		}
		for _, opts := range []crypto.SignerOpts{nil, crypto.SHA256, crypto.MLDSAMu, &mldsa.Options{Context: "c"}} {
			if sig, err := key.Sign(nil, make([]byte, 64), opts); err == nil {
				t.Errorf("%s signs %d bytes with %v", kind, len(sig), opts)
			}
		}
	}
}
