// Command ossl is the program on ossl.
package main

import (
	"crypto/tls"
	"io"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/cmd/ossl/internal/bench/startup"
)

func main() {
	startup.Main(ossl.Listen, func(network, addr string, config *tls.Config) (io.ReadWriteCloser, error) {
		return ossl.Dial(network, addr, config)
	})
}
