//go:build cgo

package records

import (
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
)

// TestMain leaves tests out that FIPS mode refuses.
func TestMain(m *testing.M) {
	ossltest.Main(m, []ossltest.Exception{
		{Tests: "TestTakenOver|TestRecordSizes|FuzzRecordPaths", Reason: "they are about ChaCha20 too, and own records of TLS 1.2"},
	})
}
