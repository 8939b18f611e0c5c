//go:build cgo || ossl_nocgo

package fips

import (
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
)

// TestMain omits the tests that use features FIPS mode refuses.
func TestMain(m *testing.M) {
	ossltest.Main(m, []ossltest.Exception{
		{Tests: "TestFIPS.*", Reason: "they are run by themselves, with crypto/tls outside of its FIPS mode"},
	})
}
