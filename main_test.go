//go:build cgo || ossl_nocgo

package ossl_test

import (
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
)

// TestMain leaves out the tests that FIPS mode refuses.
func TestMain(m *testing.M) {
	ossltest.Main(m, []ossltest.Exception{
		{Tests: "TestFIPS.*", Reason: "they are run by themselves, with crypto/tls outside of its FIPS mode"},
		{Tests: "TestThousandSlowSigners|TestSigner.*|ExampleContextSigner", Reason: "keys that are a crypto.Signer are refused"},
		{Tests: "TestKey.*", Reason: "so are keys that OpenSSL has loaded outside of the module"},
		{Tests: "TestAllocations", Reason: "every chain is verified by the module"},
		{Tests: "TestNotTakenOver|TestOmitted", Reason: "the suites are refused by name"},
		{Tests: "TestTakeoverCountsTwice", Reason: "it is about records of TLS 1.2 that ossl seals, too"},
	})
}
