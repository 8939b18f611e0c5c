package policy_test

import (
	"crypto/tls"
	"fmt"
	"log"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/policy"
)

// A server that follows Mozilla's recommendation.
func ExamplePolicy_Server() {
	p, err := policy.Get("mozilla-intermediate")
	if err != nil {
		log.Fatal(err)
	}
	config, options, unmet, err := p.Server()
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
		if u.Field == "sockets.hsts" { // the program has to see to these itself
			fmt.Println("Strict-Transport-Security: max-age=" + u.Value)
		}
	}
	// Output: Strict-Transport-Security: max-age=63072000
}

// What a new edition of a document changes.
func ExampleDiff() {
	a, err := policy.Get("mozilla-modern-5.7")
	if err != nil {
		log.Fatal(err)
	}
	b, err := policy.Get("mozilla-modern-6.0")
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range policy.Diff(a, b) {
		fmt.Printf("%s %s: %q, %q\n", d.Field, d.Name, d.A, d.B)
	}
	// Output: groups X25519MLKEM768: "", "recommended"
}

// The policy of a later day.
func ExamplePolicy_At() {
	p, err := policy.Get("bsi")
	if err != nil {
		log.Fatal(err)
	}
	for _, v := range p.At(time.Date(2032, time.January, 1, 0, 0, 0, 0, time.UTC)).Versions {
		fmt.Println(v.Name)
	}
	// Output: TLS 1.3
}
