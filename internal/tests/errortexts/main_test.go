//go:build cgo || ossl_nocgo

package errortexts

import (
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
)

// TestMain omits the tests that use features FIPS mode refuses, or whose text differs in FIPS mode.
func TestMain(m *testing.M) {
	ossltest.Main(m, []ossltest.Exception{
		{Tests: "TestHandshakes/the_(client|server)_has_only_older_versions", Reason: "crypto/tls has none of these in its FIPS mode"},
		{Tests: "TestHandshakes/.*_expired", Reason: "the error is crypto/x509's, with libcrypto's words"},
		{Tests: "TestFaults/a_server_whose_key_is_below.*", Reason: "libcrypto verifies the chain, in its own words"},
	})
}
