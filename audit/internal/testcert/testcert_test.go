package testcert_test

import (
	"testing"

	"github.com/ossl-go/ossl/audit/internal/testcert"
)

func TestCases(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range testcert.Cases() {
		if seen[c.Name] {
			t.Errorf("two cases are called %q", c.Name)
		}
		seen[c.Name] = true
		if err := c.Leaf.VerifyHostname("localhost"); (err != nil) != (c.Name == "wrong-name") {
			t.Errorf("%s: %v", c.Name, err)
		}
		chain := c.Leaf.TLS(c.Sent...)
		if len(chain.Certificate) != 1+len(c.Sent) {
			t.Errorf("%s: a chain of %d certificates", c.Name, len(chain.Certificate))
		}
	}
}
