package keys

import (
	"os"
	"strings"
)

// schemeOf returns a URI's scheme in lower case, or "" for a path: RFC 3986, section 3.1. One
// letter is a drive of Windows.
func schemeOf(uri string) string {
	scheme, _, ok := strings.Cut(uri, ":")
	scheme = strings.ToLower(scheme)
	if !ok || len(scheme) < 2 || scheme[0] < 'a' || scheme[0] > 'z' ||
		strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyz0123456789+-.") != "" {
		return ""
	}
	return scheme
}

// isFileURI reports whether OpenSSL's own loader of files loads uri.
func isFileURI(uri string) bool { return schemeOf(uri) == "" || schemeOf(uri) == "file" }

// isFile reports whether there is a file of this name.
func isFile(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// shownAttributes are the attributes of a pkcs11: URI that are not secret: RFC 7512, section 2.3.
// Others, such as PINs, are hidden.
var shownAttributes = map[string]bool{"token": true, "manufacturer": true, "serial": true, "model": true,
	"library-manufacturer": true, "library-version": true, "library-description": true, "object": true, "type": true, "id": true,
	"slot-manufacturer": true, "slot-description": true, "slot-id": true, "module-name": true, "module-path": true}

const hidden = "..."

// showURI returns a URI without the parts that must not appear in errors and logs.
func showURI(uri string) string {
	scheme := schemeOf(uri)
	switch scheme {
	case "", "file":
		return uri
	case "pkcs11":
	default: // its query is unknown, and other parts may be secret too
		end := strings.IndexAny(uri, "?#;&")
		switch {
		case strings.Contains(uri, "@"):
			return scheme + ":" + hidden
		case end < 0:
			return uri
		}
		return uri[:end+1] + hidden
	}
	var shown strings.Builder
	rest := uri[len(scheme)+1:]
	shown.WriteString(uri[:len(scheme)+1])
	for rest != "" {
		end := strings.IndexAny(rest, ";?&")
		attribute, delimiter := rest, ""
		if end >= 0 {
			attribute, delimiter, rest = rest[:end], rest[end:end+1], rest[end+1:]
		} else {
			rest = ""
		}
		name, value, ok := strings.Cut(attribute, "=")
		switch {
		case !ok && name != "":
			name = hidden
		case !shownAttributes[strings.ToLower(name)] || strings.Contains(strings.ToLower(value), "pin-"):
			if ok {
				value = hidden
			}
		}
		shown.WriteString(name)
		if ok {
			shown.WriteString("=" + value)
		}
		shown.WriteString(delimiter)
	}
	return shown.String()
}
