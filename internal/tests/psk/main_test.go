//go:build cgo || ossl_nocgo

package psk

import (
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
)

// TestMain omits the tests in FIPS mode, which refuses pre-shared keys.
func TestMain(m *testing.M) {
	ossltest.Main(m, []ossltest.Exception{
		{Tests: ".*", Reason: "FIPS mode has no pre-shared keys"},
	})
}
