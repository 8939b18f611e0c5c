package ossltest

import (
	"crypto/tls"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// UnderTest is the implementation that tests compare with crypto/tls: package ossl, in FIPS mode if
// the environment asks for it.
var UnderTest tlstest.Impl = Impl{}

// Impl is package ossl through its drop-in functions.
type Impl struct{}

// Name implements tlstest.Impl.
func (Impl) Name() string { return "ossl" }

// Client implements tlstest.Impl.
func (Impl) Client(conn net.Conn, config *tls.Config) tlstest.Conn {
	return ossl.Client(conn, WithSessions(config))
}

// Server implements tlstest.Impl.
func (Impl) Server(conn net.Conn, config *tls.Config) tlstest.Conn {
	return ossl.Server(conn, WithSessions(config))
}

// Library returns ossl.Library's description of OpenSSL. Without OpenSSL the tests can't run.
var Library = sync.OnceValue(func() ossl.LibraryInfo {
	info, err := ossl.Library()
	if err != nil {
		panic(err)
	}
	return info
})

// Version returns OpenSSL's version.
func Version() string { return Library().Version }

// AtLeast reports whether OpenSSL's version is one such as "3.5" or later.
func AtLeast(version string) bool {
	have, want := strings.Split(Version(), "."), strings.Split(version, ".")
	for i, w := range want {
		if i >= len(have) {
			return false
		}
		digits := strings.TrimRight(have[i], "abcdefghijklmnopqrstuvwxyz-+") // 1.1.1w
		h, _ := strconv.Atoi(digits)
		if n, _ := strconv.Atoi(w); h != n {
			return h > n
		}
	}
	return true
}

// OnPath is package ossl with a record path of its own choice.
type OnPath ossl.RecordPath

// Name implements tlstest.Impl.
func (p OnPath) Name() string { return "ossl" }

// Client implements tlstest.Impl.
func (p OnPath) Client(conn net.Conn, config *tls.Config) tlstest.Conn {
	return p.context(config).Client(conn, "")
}

// Server implements tlstest.Impl.
func (p OnPath) Server(conn net.Conn, config *tls.Config) tlstest.Conn {
	return p.context(config).Server(conn)
}

func (p OnPath) context(config *tls.Config) *ossl.Context {
	ctx, err := ossl.NewContext(WithSessions(config), ossl.WithRecordPath(ossl.RecordPath(p)),
		ossl.WithTLS13CipherSuites(tls.TLS_AES_128_GCM_SHA256, tls.TLS_AES_256_GCM_SHA384, tls.TLS_CHACHA20_POLY1305_SHA256))
	if err != nil {
		panic(err)
	}
	return ctx
}

// Optioned is package ossl with options.
type Optioned struct {
	Impl
	Options []ossl.Option
}

func (o Optioned) context(config *tls.Config) *ossl.Context {
	ctx, err := ossl.NewContext(config, append(AsTests(), o.Options...)...)
	if err != nil {
		panic(err)
	}
	return ctx
}

// Client implements tlstest.Impl.
func (o Optioned) Client(conn net.Conn, config *tls.Config) tlstest.Conn {
	return o.context(config).Client(conn, "")
}

// Server implements tlstest.Impl.
func (o Optioned) Server(conn net.Conn, config *tls.Config) tlstest.Conn {
	return o.context(config).Server(conn)
}

// Before3 returns OpenSSL's version if it is 1.1.1, which has no providers, and "" otherwise.
func Before3(t *testing.T) string {
	t.Helper()
	lib, err := ossl.Library()
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(lib.Version, "1.") {
		return lib.Version
	}
	return ""
}
