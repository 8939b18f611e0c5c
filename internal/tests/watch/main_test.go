//go:build cgo || ossl_nocgo

package watch

import (
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
)

func TestMain(m *testing.M) { ossltest.Main(m, nil) }
