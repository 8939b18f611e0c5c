//go:build cgo || ossl_nocgo

package metrics_test

import (
	"crypto/tls"
	"fmt"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/metrics"
)

// A program replaces its Context, and the counts of the name go on.
func ExampleContexts() {
	var contexts metrics.Contexts
	remove := func() {}
	for range 2 { // the second time with another certificate, for example
		ctx, err := ossl.NewContext(&tls.Config{ServerName: "example.org"})
		if err != nil {
			fmt.Println(err)
			return
		}
		remove()
		if remove, err = contexts.Add("backend", ctx); err != nil {
			fmt.Println(err)
			return
		}
	}
	for _, named := range contexts.Stats() {
		fmt.Println(named.Name, named.Stats.OpenConns)
	}
	// Output: backend 0
}
