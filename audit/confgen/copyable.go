package confgen

import (
	"fmt"
	"strings"
)

// Copyable returns an error for a directive that [Read] found, and that can't be copied into another
// configuration without doubt about its meaning: a value that ends its own line would smuggle in
// directives that aren't about TLS, and some directives run programs.
func (d Directive) Copyable() error {
	name := strings.ContainsFunc(d.Name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("._- ", r))
	})
	value, unsafe := d.Value, ";{}#"
	for _, quote := range []string{`"`, "'"} {
		// What follows the closing quote is nginx's "always".
		if after, ok := strings.CutPrefix(d.Value, quote); ok {
			if inner, rest, ok := strings.Cut(after, quote); ok && (rest == "" || rest == " always") {
				value, unsafe = inner, "{}"
			}
		}
	}
	if d.Scope == "listen" {
		unsafe += " "
	}
	switch control := func(r rune) bool { return r < ' ' || r == 0x7f }; {
	case name:
		return fmt.Errorf("the directive %.100q has a name that isn't known here", d.Name)
	case strings.ContainsAny(value, unsafe+"\"'`\\") || strings.ContainsFunc(value, control):
		return fmt.Errorf("the value of %s, %.200q, has characters that can't be copied", d.Name, d.Value)
	case strings.Contains(strings.ToLower(value), "exec:"):
		return fmt.Errorf("%s would run a program: %.200q", d.Name, d.Value)
	}
	return nil
}
