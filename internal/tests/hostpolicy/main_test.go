//go:build cgo || ossl_nocgo

package hostpolicy

import (
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
)

// TestMain omits the tests that use features FIPS mode refuses.
func TestMain(m *testing.M) {
	ossltest.Main(m, []ossltest.Exception{
		{Tests: "TestHostPolicy.*|TestInteropHostPolicy",
			Reason: "they have an openssl.cnf of their own, without a module: TestFIPSUnderPolicy"},
	})
}
