package apply_test

import (
	"crypto/tls"
	"fmt"
	"log"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/policy"
	"github.com/ossl-go/ossl/policy/apply"
)

// A server that follows Mozilla's recommendation.
func ExampleServer() {
	p, err := policy.Get("mozilla-intermediate")
	if err != nil {
		log.Fatal(err)
	}
	config, options, unmet, err := apply.Server(p)
	if err != nil {
		log.Fatal(err)
	}
	// A certificate for the example; a program loads its own with tls.LoadX509KeyPair.
	config.Certificates = []tls.Certificate{tlstest.ServerCert(tlstest.P256)}
	ctx, err := ossl.NewContext(config, options...)
	if err != nil {
		log.Fatal(err)
	}
	listener, err := ctx.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer listener.Close()
	for _, u := range unmet {
		if u.Field == "sockets.hsts" { // the program must see to these itself
			fmt.Println("Strict-Transport-Security: max-age=" + u.Value)
		}
	}
	// Output: Strict-Transport-Security: max-age=63072000
}
