//go:build cgo || ossl_nocgo

package observe

import (
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
)

// TestMain omits the tests that use features FIPS mode refuses.
func TestMain(m *testing.M) {
	ossltest.Main(m, []ossltest.Exception{{Tests: "TestKeyLogFile$|TestKeyLogFileRefused", Reason: "OSSL_KEYLOG is refused"}})
}
