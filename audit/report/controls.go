package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
)

// encodeJSON writes a value. The characters that could control a terminal, or turn the direction of
// writing, are written as escapes, so that a document has the server's text and is safe to look at.
func encodeJSON(w io.Writer, v any) error {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	text := b.String()
	if strings.IndexFunc(text, controls) < 0 {
		_, err := io.WriteString(w, text)
		return err
	}
	b.Reset()
	for _, r := range text {
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
	_, err := io.WriteString(w, b.String())
	return err
}

// controls reports whether a character of JSON is neither ASCII, whose controls are escapes already,
// nor printable.
func controls(r rune) bool { return r >= 0x7f && !unicode.IsPrint(r) }
