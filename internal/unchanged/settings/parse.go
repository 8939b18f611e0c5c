package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/ossl-go/ossl/internal/strictjson"
)

// MaxSize is the maximum size of a file of settings in bytes.
const MaxSize = 64 << 10

// impossible has keys that one may expect, and the reasons why they can't be had.
var impossible = map[string]string{
	"metrics":                "ossl's counters have no exporter in a program that ossl go has built: ossl inspect reads them",
	"servers.redis":          redis,
	"servers.sessions.redis": redis,
}

const redis = "a shared store of sessions needs the module ossl/session/redisstore, which a program imports by itself. " +
	"ticket_keys share the sessions of all clients that support tickets among a fleet"

// Parse decodes settings and checks them. Its errors are an [*Error].
func Parse(b []byte) (*File, error) {
	if len(b) > MaxSize {
		return nil, refuse("", "%d bytes are more than %d", len(b), MaxSize)
	}
	var tree any
	if err := json.Unmarshal(b, &tree); err != nil {
		return nil, &Error{Reason: place(b, err)}
	}
	if err := checkTree(tree, reflect.TypeFor[File](), ""); err != nil {
		return nil, err
	}
	f := new(File)
	if err := strictjson.Unmarshal(b, f); err != nil {
		return nil, &Error{Reason: err.Error()}
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	return f, nil
}

// place describes an error of encoding/json with its line.
func place(b []byte, err error) string {
	var e *json.SyntaxError
	if !errors.As(err, &e) {
		return err.Error()
	}
	return fmt.Sprintf("line %d: %v", 1+bytes.Count(b[:min(int(e.Offset), len(b))], []byte("\n")), err)
}

// checkTree returns an error for the first part of a JSON value that the type doesn't have. encoding/json
// would pass over a null, and doesn't say where an unknown key is.
func checkTree(v any, t reflect.Type, path string) error {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch v := v.(type) {
	case map[string]any:
		if t.Kind() != reflect.Struct {
			break
		}
		fields := keysOf(t)
		if len(v) == 0 {
			return refuse(path, "is empty: leave it out, or set one of %s", list(fields))
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			at := strings.TrimPrefix(path+"."+name, ".")
			field, ok := fields[name]
			if reason := impossible[at]; reason != "" {
				return refuse(at, "%s", reason)
			} else if !ok {
				return refuse(at, "unknown key; there are %s", list(fields))
			}
			if err := checkTree(v[name], field, at); err != nil {
				return err
			}
		}
		return nil
	case []any:
		if t.Kind() != reflect.Slice {
			break
		}
		for i, e := range v {
			if err := checkTree(e, t.Elem(), fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
		return nil
	case string:
		if t.Kind() == reflect.String && v == "" {
			return refuse(path, "is empty: leave the key out")
		} else if t.Kind() == reflect.String {
			return nil
		}
	case bool:
		if t.Kind() == reflect.Bool && !v { // no setting turns off what another one, or the host, has turned on
			return refuse(path, "is false: leave the key out")
		} else if t.Kind() == reflect.Bool {
			return nil
		}
	case float64:
		if t.Kind() == reflect.Int && v == float64(int32(v)) {
			return nil
		}
	}
	if path == "" {
		return refuse("", `is not an object: {"format": 1, ...}`)
	}
	return refuse(path, "is not %s", kinds[t.Kind()])
}

var kinds = map[reflect.Kind]string{reflect.Struct: "an object", reflect.Slice: "a list", reflect.String: "a string",
	reflect.Bool: "true", reflect.Int: "a number without a fraction"}

// keysOf returns the keys of an object, with their types.
func keysOf(t reflect.Type) map[string]reflect.Type {
	keys := map[string]reflect.Type{}
	for i := range t.NumField() {
		keys[t.Field(i).Tag.Get("json")] = t.Field(i).Type
	}
	return keys
}

func list(keys map[string]reflect.Type) string {
	return strings.Join(slices.Sorted(maps.Keys(keys)), ", ")
}
