//go:build cgo || ossl_nocgo

package records

import (
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
)

// TestMain omits the tests that use features FIPS mode refuses.
func TestMain(m *testing.M) {
	ossltest.Main(m, []ossltest.Exception{
		{Tests: "TestTakenOver|TestRecordSizes|FuzzRecordPaths", Reason: "they are about ChaCha20 too, and own records of TLS 1.2"},
	})
}
