package main

import (
	"testing"

	"github.com/ossl-go/ossl/audit/confgen"
)

// TestWithTLS: servers without OpenSSL have no version of it.
func TestWithTLS(t *testing.T) {
	for want, s := range map[string]confgen.Server{
		" with OpenSSL 3.0.22":    {Kind: "nginx", OpenSSL: confgen.Version{Major: 3, Patch: 22}},
		", built with Go 1.26.8,": {Kind: "caddy", Go: confgen.Version{Major: 1, Minor: 26, Patch: 8}},
		"":                        {Kind: "go", Go: confgen.Version{Major: 1, Minor: 26, Patch: 8}},
	} {
		if got := withTLS(s); got != want {
			t.Errorf("%s: %q, want %q", s.Kind, got, want)
		}
	}
}
