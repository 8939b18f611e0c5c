package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
)

// encodeJSON writes a value, with EscapeControls.
func encodeJSON(w io.Writer, v any) error {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(w, EscapeControls(b.String()))
	return err
}

// EscapeControls returns a document in JSON with escapes in the place of the characters that could control
// a terminal, or turn the direction of writing: the document means the same, and is safe to look at.
func EscapeControls(document string) string {
	if strings.IndexFunc(document, controls) < 0 {
		return document
	}
	var b strings.Builder
	for _, r := range document {
		switch {
		case !controls(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// controls reports whether a character of JSON is neither ASCII, whose controls are escapes already,
// nor printable.
func controls(r rune) bool { return r >= 0x7f && !unicode.IsPrint(r) }
