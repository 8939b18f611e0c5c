package confgen

import (
	"fmt"
	"strings"
)

// Line returns a directive as it is in a file of the server.
func (d Directive) Line(server string) string {
	words := strings.TrimSpace(d.Name + " " + d.Value)
	switch server {
	case "nginx":
		if d.Scope != "listen" {
			words += ";"
		}
	case "postgresql":
		return d.Name + " = " + d.Value
	case "go":
		if d.Scope == "main" {
			return d.Name + ": " + d.Value + ","
		}
	case "lighttpd":
		command, isCommand := strings.CutPrefix(d.Name, confCmd)
		header, isHeader := strings.CutPrefix(d.Name, "setenv.add-response-header ")
		key, value, _ := strings.Cut(d.Value, "=")
		switch {
		case isCommand:
			return fmt.Sprintf(`%s+= ( "%s" => "%s" )`, confCmd, command, d.Value)
		case isHeader:
			return fmt.Sprintf(`setenv.add-response-header += ( "%s" => "%s" )`, header, d.Value)
		case d.Scope == "main":
			return fmt.Sprintf(`%s += ( "%s" => "%s" )`, d.Name, key, value)
		}
		return d.Name + " = " + d.Value
	}
	return words
}

// NeedsNewer reports whether the oldest version of the server that configurations are made for lacks the
// directive. Needs names the first version that has it.
func (d Directive) NeedsNewer(server string) bool {
	v, err := ParseVersion(d.Needs)
	return err == nil && limits[server].oldest.Before(v)
}

// Newest returns the newest version of a kind of server that configurations are made for.
func Newest(kind string) Version { return limits[kind].newest }
