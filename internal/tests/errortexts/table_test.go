//go:build cgo || ossl_nocgo

package errortexts

import (
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// A row is a row of a table in docs/ERRORS.md, without its first cell.
type row []string

// rows are the rows by their first cells, the mistakes.
var rows = sync.OnceValue(func() map[string]row {
	doc, err := os.ReadFile("../../../docs/ERRORS.md")
	if err != nil {
		panic(err)
	}
	all := map[string]row{}
	for line := range strings.Lines(string(doc)) {
		line, ok := strings.CutPrefix(strings.TrimSpace(line), "| ")
		cells := strings.Split(strings.TrimSuffix(line, "|"), " | ")
		if !ok || cells[0] == "mistake" {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if all[cells[0]] != nil {
			panic("docs/ERRORS.md has twice: " + cells[0])
		}
		all[cells[0]] = cells[1:]
	}
	return all
})

// rowOf returns a mistake's row.
func rowOf(t *testing.T, mistake string) row {
	t.Helper()
	r := rows()[mistake]
	if r == nil {
		t.Fatalf("docs/ERRORS.md has no row for %q", mistake)
	}
	return r
}

// matches reports whether text is a cell's: between backquotes, with … for any text.
func matches(cell, text string) bool {
	cell, ok := strings.CutPrefix(cell, "`")
	if cell, end := strings.CutSuffix(cell, "`"); ok && end {
		pattern := strings.ReplaceAll(regexp.QuoteMeta(cell), "…", ".*")
		return regexp.MustCompile("^(?s:" + pattern + ")$").MatchString(text)
	}
	return false
}

// checkText compares an error's text with a cell, and with the rules for all texts.
func checkText(t *testing.T, cell string, err error) {
	t.Helper()
	if err == nil {
		t.Fatal("there is no error")
	}
	text := err.Error()
	if !matches(cell, text) {
		t.Errorf("the error is\n\t%s\nand docs/ERRORS.md has\n\t%s", text, cell)
	}
	if problem := badText(text); problem != "" {
		t.Errorf("%s: %s", problem, text)
	}
}

// badText returns the mistake in a text of ours, or "".
func badText(text string) string {
	head, rest, _ := strings.Cut(text, ": ")
	for _, prefix := range []string{"ossl: ", "keys: "} {
		if strings.Contains(": "+rest, ": "+prefix) {
			return "a prefix in the middle (" + prefix + ")"
		}
	}
	switch {
	case strings.Contains(text, head+": "+head+": "):
		return "a prefix twice"
	case strings.HasSuffix(text, ": unsupported"), strings.HasSuffix(text, ": "), strings.HasSuffix(text, ":"):
		return "an end that says nothing"
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }):
		return "control characters"
	case len(text) > 2000:
		return "too long"
	}
	return ""
}

func TestBadText(t *testing.T) {
	for text, bad := range map[string]bool{
		"ossl: handshake: no shared cipher": false, "ossl: X: ossl: no": true, "ossl: ossl: no": true,
		"keys: a: load: unsupported": true, "tls: no": false, "tls: \x1b[0m": true, "ossl: " + strings.Repeat("x", 3000): true,
	} {
		if got := badText(text); (got != "") != bad {
			t.Errorf("%q: %q", text, got)
		}
	}
}
