//go:build cgo || ossl_nocgo

package interop

import (
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
)

// TestMain omits a test that uses features FIPS mode refuses.
func TestMain(m *testing.M) {
	ossltest.Main(m, []ossltest.Exception{{Tests: "TestInteropKeyLog", Reason: "OSSL_KEYLOG is refused"}})
}
