// Command std is the program on crypto/tls.
package main

import (
	"crypto/tls"
	"io"

	"github.com/ossl-go/ossl/cmd/ossl/internal/bench/startup"
)

func main() {
	startup.Main(tls.Listen, func(network, addr string, config *tls.Config) (io.ReadWriteCloser, error) {
		return tls.Dial(network, addr, config)
	})
}
