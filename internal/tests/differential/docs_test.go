//go:build cgo || ossl_nocgo

package differential

import (
	"os"
	"strings"
	"testing"
)

// TestDeviationsAreDocumented: every reason in the table is quoted, with its versions, in
// docs/COMPATIBILITY.md.
func TestDeviationsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/COMPATIBILITY.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(doc)), " ")
	for _, d := range deviations {
		if strings.Contains(d.Reason, "see above") || strings.HasPrefix(d.Reason, "Follows from") {
			continue // the consequence of another row
		}
		if !strings.Contains(text, strings.Join(strings.Fields(d.Reason), " ")) {
			t.Errorf("docs/COMPATIBILITY.md lacks: %s", d.Reason)
		}
	}
}
