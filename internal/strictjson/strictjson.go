// Package strictjson decodes JSON that people write, and that must not have parts without effect.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// Unmarshal is [json.Unmarshal] for a value whose fields have names in lower case. It returns an error
// for a field that v doesn't have, a field that is there twice, and a text with characters that can't be
// printed.
func Unmarshal(b []byte, v any) error {
	if err := checkKeys(b); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows the value")
	}
	return nil
}

// checkKeys returns an error if an object of JSON has a field twice, or one with a name that is not
// in lower case, which encoding/json would match with a field in lower case, or a text with a
// character that could control a terminal or end a line.
func checkKeys(b []byte) error {
	type object struct {
		fields map[string]bool // nil in arrays
		value  bool            // a value follows, not a field's name
	}
	var stack []object
	d := json.NewDecoder(bytes.NewReader(b))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if text, ok := token.(string); ok && strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return fmt.Errorf("%q has characters that can't be printed", text)
		}
		if len(stack) > 0 && token != json.Delim('}') && token != json.Delim(']') {
			top := &stack[len(stack)-1]
			if name, ok := token.(string); ok && top.fields != nil && !top.value {
				if top.fields[name] {
					return fmt.Errorf("field %q is there twice", name)
				}
				if name != strings.ToLower(name) {
					return fmt.Errorf("unknown field %q", name)
				}
				top.fields[name], top.value = true, true
				continue
			}
			top.value = false
		}
		switch token {
		case json.Delim('{'):
			stack = append(stack, object{fields: map[string]bool{}})
		case json.Delim('['):
			stack = append(stack, object{})
		case json.Delim('}'), json.Delim(']'):
			stack = stack[:len(stack)-1]
		}
	}
}
