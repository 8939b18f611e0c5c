package policy_test

import (
	"fmt"
	"log"
	"time"

	"github.com/ossl-go/ossl/policy"
)

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
