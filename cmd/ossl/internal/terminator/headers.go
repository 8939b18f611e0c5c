package terminator

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// A headerEdit changes the header of each response of a site, also of errors: fields that are set
// replace fields of the same name.
type headerEdit struct {
	set    map[string][]string // by canonical names
	remove []string            // canonical
}

// ownFields are the header fields that HTTP itself needs, and fields that concern a single
// connection.
var ownFields = []string{"Connection", "Content-Length", "Content-Range", "Date", "Keep-Alive", "Proxy-Connection", "Te",
	"Trailer", "Transfer-Encoding", "Upgrade"}

// parseHeaderEdit parses the settings header, as "Name: value", and remove-header.
func parseHeaderEdit(set, remove []string) (*headerEdit, error) {
	if len(set)+len(remove) == 0 {
		return nil, nil
	}
	e := &headerEdit{set: map[string][]string{}}
	for _, field := range set {
		name, value, ok := strings.Cut(field, ":")
		value = strings.Trim(value, " \t")
		if !ok || !httpguts.ValidHeaderFieldValue(value) {
			return nil, fmt.Errorf("header %q is not of the form Name: value", field)
		}
		name, err := fieldName("header", name)
		if err != nil {
			return nil, err
		}
		e.set[name] = append(e.set[name], value)
	}
	for name, values := range e.set { // of which responses share the memory
		e.set[name] = slices.Clip(values)
	}
	for _, name := range remove {
		name, err := fieldName("remove-header", name)
		if err != nil {
			return nil, err
		}
		if e.set[name] != nil {
			return nil, fmt.Errorf("remove-header: header sets %s", name)
		}
		e.remove = append(e.remove, name)
	}
	return e, nil
}

// fieldName returns the canonical name of a header field that a setting may change.
func fieldName(setting, name string) (string, error) {
	if !httpguts.ValidHeaderFieldName(name) {
		return "", fmt.Errorf("%s: %q is not the name of a header field", setting, name)
	}
	name = http.CanonicalHeaderKey(name)
	if slices.Contains(ownFields, name) {
		return "", fmt.Errorf("%s: %s is the server's own", setting, name)
	}
	return name, nil
}

// apply changes the header of a response. e may be nil.
func (e *headerEdit) apply(h http.Header) {
	if e == nil {
		return
	}
	for _, name := range e.remove {
		delete(h, name)
	}
	for name, values := range e.set {
		h[name] = values
	}
}
