//go:build cgo || ossl_nocgo

package keys_test

import (
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
)

// TestMain leaves tests out that FIPS mode refuses.
func TestMain(m *testing.M) {
	ossltest.Main(m, []ossltest.Exception{
		{Tests: "TestKey.*|TestMaxSigners|TestLoadX509KeyPair",
			Reason: "keys that OpenSSL has loaded outside of the module are refused"},
	})
}
