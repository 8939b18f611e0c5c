package report_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ossl-go/ossl/audit"
	"github.com/ossl-go/ossl/audit/report"
)

var update = flag.Bool("update", false, "write the files that are generated from the code")

const schemaFile = "../../docs/check.schema.json"

// TestSchema: the published schema matches the Go types, and describes reports as they are written.
// "go test ./report -run Schema -update" writes it.
func TestSchema(t *testing.T) {
	s := &schemas{defs: map[string]any{}, comments: commentsOf(t, ".", "..")}
	root := s.of(reflect.TypeFor[report.Document]())
	schema := map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"$id":     "https://raw.githubusercontent.com/ossl-go/ossl/main/docs/check.schema.json",
		"title":   "Reports of ossl check", "$defs": s.defs, "$ref": root["$ref"],
	}
	var want bytes.Buffer
	e := json.NewEncoder(&want)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(schema); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(schemaFile, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Error("docs/check.schema.json is not that of the types: go test ./report -run Schema -update")
	}

	compiled, err := jsonschema.NewCompiler().Compile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := report.Write(&out, sample(), "json", report.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := validate(compiled, out.String()); err != nil {
		t.Errorf("a report isn't valid: %v", err)
	}
	for _, change := range [][2]string{
		{`"mark": "D"`, `"mark": "G"`}, {`"severity": "high"`, `"severity": "terrible"`}, {`"findings": [`, `"surplus": [`},
		{`"state": "failed"`, `"state": "unlucky"`}, {`"connections": 41`, `"connections": "41"`}, {`"version": 1`, `"version": 2`},
	} {
		broken := strings.Replace(out.String(), change[0], change[1], 1)
		if broken == out.String() {
			t.Errorf("the sample has no %s", change[0])
		} else if validate(compiled, broken) == nil {
			t.Errorf("a report with %s is valid", change[1])
		}
	}
}

func validate(s *jsonschema.Schema, text string) error {
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

// schemas makes schemas of types.
type schemas struct {
	defs     map[string]any
	comments map[string]string // by "Type" and "Type.Field"
}

// values are the values of the strings that have few.
var values = map[reflect.Type][]any{
	reflect.TypeFor[audit.State]():    {"tested", "not tested", "failed"},
	reflect.TypeFor[audit.Severity](): {"info", "low", "medium", "high", "critical"},
	reflect.TypeFor[audit.Axis]():     {"fast", "safe"},
}

func (s *schemas) of(t reflect.Type) map[string]any {
	if list, ok := values[t]; ok {
		return map[string]any{"type": "string", "enum": list}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Slice:
		return map[string]any{"type": []any{"array", "null"}, "items": s.of(t.Elem())}
	case reflect.Map:
		values := s.of(t.Elem())
		if t.Elem().Kind() == reflect.Pointer {
			values = map[string]any{"anyOf": []any{map[string]any{"type": "null"}, values}}
		}
		return map[string]any{"type": []any{"object", "null"}, "additionalProperties": values}
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() {
			return map[string]any{"type": "string", "format": "date-time"}
		}
		if t.Name() == "" {
			return s.object(t)
		}
		if _, ok := s.defs[t.Name()]; !ok {
			s.defs[t.Name()] = true // of recursive types
			s.defs[t.Name()] = s.object(t)
		}
		return map[string]any{"$ref": "#/$defs/" + t.Name()}
	default:
		return map[string]any{"type": "integer"}
	}
}

func (s *schemas) object(t reflect.Type) map[string]any {
	properties, required := map[string]any{}, []string{}
	s.fields(t, properties, &required)
	object := map[string]any{"type": "object", "properties": properties, "required": required}
	if c := s.comments[t.Name()]; c != "" {
		object["description"] = c
	}
	return object
}

func (s *schemas) fields(t reflect.Type, properties map[string]any, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			s.fields(f.Type, properties, required)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() {
			continue
		}
		p := s.of(f.Type)
		if c := s.comments[t.Name()+"."+f.Name]; c != "" {
			p["description"] = c
		}
		switch t.Name() + "." + f.Name {
		case "Grade.Mark":
			p["enum"] = []any{"A", "B", "C", "D", "F", "?"}
		case "Document.Version":
			p["const"] = 1
		}
		properties[name] = p
		if !strings.Contains(options, "omitempty") {
			*required = append(*required, name)
		}
	}
}

// commentsOf returns the comments of the types in folders, and of their fields.
func commentsOf(t *testing.T, folders ...string) map[string]string {
	t.Helper()
	comments := map[string]string{}
	for _, folder := range folders {
		names, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				declaration, ok := n.(*ast.GenDecl)
				if !ok {
					return true
				}
				for _, spec := range declaration.Specs {
					typ, ok := spec.(*ast.TypeSpec)
					if !ok {
						continue
					}
					comments[typ.Name.Name] = join(declaration.Doc, typ.Doc)
					if object, ok := typ.Type.(*ast.StructType); ok {
						for _, f := range object.Fields.List {
							for _, name := range f.Names {
								comments[typ.Name.Name+"."+name.Name] = join(f.Doc, f.Comment)
							}
						}
					}
				}
				return false
			})
		}
	}
	return comments
}

func join(groups ...*ast.CommentGroup) string {
	var texts []string
	for _, g := range groups {
		if text := strings.Join(strings.Fields(g.Text()), " "); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, " ")
}
