//go:build cgo

package ossl_test

import (
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
)

// TestMain leaves tests out that FIPS mode refuses.
func TestMain(m *testing.M) {
	ossltest.Main(m, []ossltest.Exception{
		{Tests: "TestFIPS.*", Reason: "they are run by themselves, with crypto/tls outside of its FIPS mode"},
		{Tests: "TestHostPolicy.*|TestInteropHostPolicy",
			Reason: "they have an openssl.cnf of their own, without a module: TestFIPSUnderPolicy"},
		{Tests: "TestThousandSlowSigners|TestSigner.*|TestHangingSigners.*/Sign",
			Reason: "keys that are a crypto.Signer are refused"},
		{Tests: "TestKey.*|TestMaxSigners|TestLoadX509KeyPair",
			Reason: "so are keys that OpenSSL has loaded outside of the module"},
		{Tests: "TestGetConfigForClient|TestDifferentialGetConfig|TestChosenPolicyIsNotResumedAround",
			Reason: "a configuration that is chosen can't have ClientCAs of its own"},
		{Tests: "TestDefaultGroups.*", Reason: "they are about groups that FIPS mode refuses"},
		{Tests: "TestAllocations", Reason: "every chain is verified by the module"},
		{Tests: "TestDifferentialSuite/.*(CHACHA20|AES_(128|256)_CBC_SHA|TLS_RSA|order).*",
			Reason: "the suites are refused by name"},
		{Tests: "TestDifferentialGroup/.*/(X25519.*|two_lists)|TestDifferentialNothingShared/group",
			Reason: "X25519 is refused by name"},
		{Tests: "TestDifferentialCertificates/.*/.*/any_usage",
			Reason: "libcrypto doesn't take anyExtendedKeyUsage for a purpose"},
		{Tests: "TestDifferentialCertificates/.*/.*/RSA-1024",
			Reason: "the error is crypto/x509's, with libcrypto's words"},
		{Tests: "TestSecondHello.*|TestResumeAfterHelloRetry", Reason: "they are made with X25519"},
		{Tests: "TestHTTP2Hello/suites_named|TestNotTakenOver", Reason: "the suites are refused by name"},
		{Tests: "TestTakenOver|TestTakeoverCountsTwice|TestRecordSizes|FuzzRecordPaths",
			Reason: "they are about ChaCha20 too, and own records of TLS 1.2"},
		{Tests: "TestSuiteNoLongerAllowed|TestTicketKeys/S.*", Reason: "SetSessionTicketKeys is refused"},
	})
}
