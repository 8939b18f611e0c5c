//go:build cgo || ossl_nocgo

package conns

import (
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
)

// TestMain omits the tests that use features FIPS mode refuses.
func TestMain(m *testing.M) {
	ossltest.Main(m, []ossltest.Exception{
		{Tests: "TestSigner.*|TestHangingSigners.*/Sign", Reason: "keys that are a crypto.Signer are refused"},
		{Tests: "TestKey.*", Reason: "so are keys that OpenSSL has loaded outside of the module"},
		{Tests: "TestGetConfigForClient", Reason: "a configuration that is chosen can't have ClientCAs of its own"},
		{Tests: "TestSecondHello.*", Reason: "they are made with X25519"},
		{Tests: "TestHTTP2Hello/suites_named", Reason: "the suites are refused by name"},
	})
}
