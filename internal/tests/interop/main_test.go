//go:build cgo

package interop

import (
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
)

func TestMain(m *testing.M) { ossltest.Main(m, nil) }
