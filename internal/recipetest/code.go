package recipetest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// maxLines is the length of a recipe.
const maxLines = 15

// CheckCode fails the test unless each exported function of the folder's package is in the
// document, as it is here, and has at most 15 lines.
func CheckCode(t *testing.T) {
	t.Helper()
	raw, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for name, code := range functions(t, file) {
			found++
			if lines := strings.Count(code, "\n"); lines > maxLines {
				t.Errorf("%s: %s has %d lines, more than %d", file, name, lines, maxLines)
			}
			start := "func " + name + "("
			before, part, after, err := between(text, "```go\n"+start, "```")
			switch {
			case err != nil:
				t.Errorf("%s: %v", file, err)
			case start+part == code:
			case *update:
				text = strings.TrimSuffix(before, start) + code + after
			default:
				t.Errorf("%s: %s differs from %s (-update changes that):\n%s", file, name, document, code)
			}
		}
	}
	if found == 0 {
		t.Fatal("no recipe found")
	}
	if *update {
		if err := os.WriteFile(document, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// functions returns the source of the exported functions of a file, each up to the end of its line.
func functions(t *testing.T, file string) map[string]string {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, source, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, decl := range parsed.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.IsExported() {
			found[f.Name.Name] = string(source[fset.Position(f.Pos()).Offset:fset.Position(f.End()).Offset]) + "\n"
		}
	}
	return found
}
