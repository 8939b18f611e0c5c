package otelossl_test

import (
	"crypto/tls"
	"fmt"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/metrics"
	"github.com/ossl-go/ossl/otelossl"
)

// A client exports the statistics of the process, and a span of each of its handshakes.
func Example() {
	tel, err := otelossl.New(metrics.Process)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer tel.Close()
	ctx, err := ossl.NewContext(&tls.Config{ServerName: "example.org"}, tel.Events(""))
	if err != nil {
		fmt.Println(err)
		return
	}
	// A span is a child of that in the context of HandshakeContext or DialContext.
	fmt.Println(ctx.ServerName())
	// Output: example.org
}

// A program has a client and a server with metrics of their own.
func ExampleInstrumentation_Events() {
	var contexts metrics.Contexts
	tel, err := otelossl.New(&contexts, otelossl.WithServerNames("example.org", "www.example.org"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer tel.Close()
	for name, config := range map[string]*tls.Config{"web": {}, "backend": {ServerName: "db.example.org"}} {
		ctx, err := ossl.NewContext(config, tel.Events(name))
		if err != nil {
			fmt.Println(err)
			return
		}
		remove, err := contexts.Add(name, ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer remove()
	}
	fmt.Println(len(contexts.Stats()))
	// Output: 2
}
