//go:build cgo

package ossl_test

import (
	"crypto/tls"
	"flag"
	"net"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// underTest stands in until there is a Conn.
var underTest tlstest.Impl = osslImpl{}

type osslImpl struct{}

func (osslImpl) Name() string { return "ossl" }

func (osslImpl) Client(conn net.Conn, config *tls.Config) tlstest.Conn {
	return tlstest.Std.Client(conn, config)
}

func (osslImpl) Server(conn net.Conn, config *tls.Config) tlstest.Conn {
	return tlstest.Std.Server(conn, config)
}

func libraryAtLeast(version string) bool { return true }

func runFlag() string { return flag.Lookup("test.run").Value.String() }

func libraryVersion() string { return "stand-in" }
