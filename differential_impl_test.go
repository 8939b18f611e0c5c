//go:build cgo

package ossl_test

import (
	"crypto/tls"
	"flag"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// underTest is this package through its drop-in functions.
var underTest tlstest.Impl = osslImpl{}

type osslImpl struct{}

func (osslImpl) Name() string { return "ossl" }

func (osslImpl) Client(conn net.Conn, config *tls.Config) tlstest.Conn {
	return ossl.Client(conn, withSessions(config))
}

func (osslImpl) Server(conn net.Conn, config *tls.Config) tlstest.Conn {
	return ossl.Server(conn, withSessions(config))
}

var library = sync.OnceValue(func() ossl.LibraryInfo {
	info, err := ossl.Library()
	if err != nil {
		panic(err)
	}
	return info
})

func libraryVersion() string { return library().Version }

// libraryAtLeast compares the version of libssl with one such as "3.5".
func libraryAtLeast(version string) bool {
	have, want := strings.Split(libraryVersion(), "."), strings.Split(version, ".")
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

func runFlag() string { return flag.Lookup("test.run").Value.String() }
