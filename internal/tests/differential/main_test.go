//go:build cgo || ossl_nocgo

package differential

import (
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
)

// TestMain omits the tests that use features FIPS mode refuses.
func TestMain(m *testing.M) {
	ossltest.Main(m, []ossltest.Exception{
		{Tests: "TestFIPS.*", Reason: "they are run by themselves, with crypto/tls outside of its FIPS mode"},
		{Tests: "TestDifferentialGetConfig", Reason: "a configuration that is chosen can't have ClientCAs of its own"},
		{Tests: "TestDefaultGroups.*", Reason: "they are about groups that FIPS mode refuses"},
		{Tests: "TestDifferentialSuite/.*(CHACHA20|AES_(128|256)_CBC_SHA|TLS_RSA|order).*", Reason: "the suites are refused by name"},
		{Tests: "TestDifferentialFips140On", Reason: "it is about Go's FIPS mode, and OpenSSL's has rules of its own"},
		{Tests: "TestDifferentialKeyWithoutPrimes", Reason: "keys that Go signs with are refused"},
		{Tests: "TestDifferentialResumedStaples", Reason: "so are ticket keys in a configuration"},
		{Tests: "TestDifferentialPassedOver/.*/.*/.*_signatures", Reason: "an algorithm that is not approved is refused by name"},
		{Tests: "TestDifferentialFaults|TestDifferentialNoSignatureAlgorithms", Reason: "so are RSA key exchange and CBC"},
		{Tests: "TestDifferentialGroup/.*/(X25519.*|two_lists)|TestDifferentialNothingShared/group|TestDifferentialRetrySuite",
			Reason: "X25519 is refused by name"},
		{Tests: "TestDifferentialCertificates/.*/.*/any_usage", Reason: "libcrypto doesn't take anyExtendedKeyUsage for a purpose"},
		{Tests: "TestDifferentialCertificates/.*/.*/RSA-1024", Reason: "the error is crypto/x509's, with libcrypto's words"},
	})
}
