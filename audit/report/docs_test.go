package report_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/audit"
)

const rulesFile = "../../docs/CHECK.md"

// TestRulesDocument: docs/CHECK.md has every rule, as it is in the code. "go test ./report -run
// Rules -update" writes them below the marker.
func TestRulesDocument(t *testing.T) {
	text, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	const marker = "<!-- The rest of this file is generated: go test ./report -run Rules -update, in audit. -->\n"
	head, _, found := strings.Cut(string(text), marker)
	if !found {
		t.Fatalf("%s has no line %q", rulesFile, marker)
	}
	var want bytes.Buffer
	want.WriteString(head + marker)
	for _, axis := range []audit.Axis{audit.Safe, audit.Fast} {
		fmt.Fprintf(&want, "\n## Rules: %s\n", axis)
		for _, r := range audit.Rules() {
			if r.Axis == axis {
				fmt.Fprintf(&want, "\n### %s\n\n**%s.**\n%s\n*%s.*\n", r.ID, r.Title, fill(r.Reason), fill(r.Source))
			}
		}
	}
	if *update {
		if err := os.WriteFile(rulesFile, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if !bytes.Equal(text, want.Bytes()) {
		t.Error("docs/CHECK.md doesn't have the rules of the code: go test ./report -run Rules -update")
	}
}

// fill breaks text into lines of at most 100 columns.
func fill(text string) string {
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case i > 0 && column+1+n > 98:
			b.WriteByte('\n')
			column = 0
		case i > 0:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}
