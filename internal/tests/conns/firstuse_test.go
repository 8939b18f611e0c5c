//go:build (cgo || ossl_nocgo) && linux

package conns

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/keys"
)

// TestFirstUse calls each entry point of the package first in its own process: no function may be
// called in a library that isn't loaded.
func TestFirstUse(t *testing.T) {
	for name, use := range map[string]func(t *testing.T) error{
		"Client": func(t *testing.T) error {
			a, b := tlstest.Buffered()
			defer a.Close()
			go tls.Server(b, tlstest.ServerConfig()).Handshake()
			return ossl.Client(a, tlstest.ClientConfig()).Handshake()
		},
		"Server": func(t *testing.T) error {
			a, b := tlstest.Buffered()
			defer a.Close()
			go tls.Client(b, tlstest.ClientConfig()).Handshake()
			return ossl.Server(a, tlstest.ServerConfig()).Handshake()
		},
		"NewContext": func(t *testing.T) error {
			_, err := ossl.NewContext(nil)
			return err
		},
		"Library": func(t *testing.T) error {
			_, err := ossl.Library()
			return err
		},
		"LoadKey": func(t *testing.T) error {
			if _, err := keys.Load(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("a file that isn't there: %w", err)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			ossltest.UnderPolicy(t, "", func(t *testing.T) {
				if err := use(t); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
