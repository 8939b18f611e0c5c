package settings

import (
	"encoding/json"
	"reflect"
	"strings"
)

// A Setting is one that is in force, or should be.
type Setting struct {
	Name    string `json:"name"`              // "servers.kernel_tls"
	Value   string `json:"value"`             // without secrets, as in JSON
	Refused string `json:"refused,omitempty"` // the reason why it is not in force, or ""
}

// List returns the settings of a file in the order of its format.
func (f *File) List() []Setting { return listOf(nil, reflect.ValueOf(f).Elem(), "") }

func listOf(list []Setting, v reflect.Value, path string) []Setting {
	for i := range v.NumField() {
		name := strings.TrimPrefix(path+"."+v.Type().Field(i).Tag.Get("json"), ".")
		field := v.Field(i)
		if field.IsZero() || name == "format" {
			continue
		}
		if field.Kind() == reflect.Pointer {
			field = field.Elem()
		}
		if field.Kind() == reflect.Struct {
			list = listOf(list, field, name)
			continue
		}
		value := field.Interface()
		if name == "keys" {
			value = shown(field.Interface().([]string))
		}
		text, err := json.Marshal(value)
		if err != nil {
			panic(err) // there are only strings, numbers and booleans
		}
		list = append(list, Setting{Name: name, Value: string(text)})
	}
	return list
}

// shown returns URIs without the parts that may be secret. In those of pkcs11: that is the query, which is
// about PINs; in those of other schemes it is unknown.
func shown(uris []string) []string {
	out := make([]string, len(uris))
	for i, uri := range uris {
		scheme, _, ok := strings.Cut(uri, ":")
		switch strings.ToLower(scheme) {
		case "pkcs11":
			name, _, cut := strings.Cut(uri, "?")
			if out[i] = name; cut {
				out[i] += "?..."
			}
		case "file":
			out[i] = uri
		default:
			if out[i] = scheme + ":..."; !ok || strings.HasPrefix(uri, "/") {
				out[i] = uri // a path
			}
		}
	}
	return out
}
