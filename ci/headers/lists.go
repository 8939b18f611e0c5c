package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// An entry is an OpenSSL function or constant, as a list of ours has it.
type entry struct {
	name   string
	since  uint64 // the first version that has it, as OPENSSL_VERSION_NUMBER
	before uint64 // the first version that lacks it or has it otherwise, or 0

	lib         string // of a function: "ssl" or "crypto"
	ret, params string
	only111     bool // used with 1.1.1 only: later versions may lack it, or declare it otherwise

	value string // of a constant, in C
}

func (e entry) isFunction() bool { return e.lib != "" }

// A cList is a header that has two lists, in the form of internal/libssl/api.h.
type cList struct{ file, functions, constants string }

// readCLists returns the lists' entries in the form that the compiler's flags give them.
func readCLists(lists []cList, flags []string) ([]entry, error) {
	var source strings.Builder
	// A constant's name is made a string so that it can't be expanded.
	source.WriteString(includes(lists) + `
#define FUNCTION(lib, since, need, ret, name, params) @@ lib | since | need | name | ret | params @@
#define CONSTANT(since, name, value) @@ #name | since | value @@
`)
	for _, l := range lists {
		fmt.Fprintf(&source, "%s(FUNCTION)\n%s(CONSTANT)\n", l.functions, l.constants)
	}
	out, err := compile(source.String(), flags, preprocess)
	if err != nil {
		return nil, err
	}
	return parseEntries(out)
}

// parseEntries reads preprocessed lists: every second piece is an entry, and the rest is the
// headers' other declarations.
func parseEntries(text string) ([]entry, error) {
	var entries []entry
	for i, piece := range strings.Split(text, "@@") {
		if i%2 == 0 {
			continue
		}
		fields := strings.Split(strings.Join(strings.Fields(piece), " "), " | ") // without newlines
		var e entry
		switch len(fields) {
		case 3:
			e = entry{name: strings.Trim(fields[0], `"`), value: fields[2]}
		case 6:
			e = entry{lib: strings.ToLower(fields[0]), only111: fields[2] == "ONLY_1_1_1",
				name: fields[3], ret: fields[4], params: fields[5]}
		default:
			return nil, fmt.Errorf("not an entry: %q", piece)
		}
		var err error
		if e.since, err = number(fields[1]); err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

var constSince = regexp.MustCompile(`\bOSSL_CONST_SINCE_(\d+)_(\d+)\b`)

// differences returns the compiler's flags for a version: lists spell some parts of prototypes as
// macros, because versions differ. OSSL_CONST_SINCE_3_0 is const from 3.0 on.
func differences(lists []cList, version uint64) ([]string, error) {
	var flags []string
	for _, l := range lists {
		text, err := os.ReadFile(l.file)
		if err != nil {
			return nil, err
		}
		for _, found := range constSince.FindAllStringSubmatch(string(text), -1) {
			since, err := release(found[1] + "." + found[2])
			if err != nil {
				return nil, err
			}
			if flag := "-D" + found[0] + "="; version < since && !slices.Contains(flags, flag) {
				flags = append(flags, flag)
			}
		}
	}
	return flags, nil
}

func includes(lists []cList) string {
	var b strings.Builder
	for _, l := range lists {
		fmt.Fprintf(&b, "#include \"%s\"\n", l.file)
	}
	return b.String()
}

// openSSLsName finds the name of an OpenSSL constant at the beginning of a comment.
// openSSLsConstant finds the versions that have it too, and needs punctuation before other text, so
// that none of these is overlooked.
var (
	openSSLsName     = regexp.MustCompile(`^[A-Z][A-Z0-9]*_[A-Z]`)
	openSSLsConstant = regexp.MustCompile(`^(\w+)(?:, (since|before) ([0-9.]*[0-9]))?(?:[:;] .*)?$`)
)

// goConstants returns the constants of a package that are OpenSSL's too: those with OpenSSL's name
// in their comment. Constants inside of functions are left out.
func goConstants(dir string) ([]entry, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var entries []entry
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		var failed error
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				return false
			case *ast.ValueSpec:
				e, err := goConstant(n)
				if err != nil {
					failed = fmt.Errorf("%s: %w", fset.Position(n.Pos()), err)
				} else if e.name != "" {
					entries = append(entries, e)
				}
			}
			return failed == nil
		})
		if failed != nil {
			return nil, failed
		}
	}
	return entries, nil
}

// goConstant returns the zero entry for a constant that is not OpenSSL's.
func goConstant(spec *ast.ValueSpec) (e entry, err error) {
	comment := strings.TrimSpace(spec.Comment.Text())
	if !openSSLsName.MatchString(comment) {
		return entry{}, nil
	}
	found := openSSLsConstant.FindStringSubmatch(comment)
	if found == nil {
		return entry{}, fmt.Errorf("want NAME, since VERSION: TEXT in the comment, not %q", comment)
	}
	if len(spec.Names) != 1 || len(spec.Values) != 1 {
		return entry{}, errors.New("a constant of OpenSSL's needs a line and a value of its own")
	}
	value, err := types.Eval(token.NewFileSet(), nil, token.NoPos, types.ExprString(spec.Values[0]))
	if err != nil {
		return entry{}, fmt.Errorf("the value is not plain: %w", err)
	}
	e = entry{name: found[1], value: value.Value.ExactString()}
	switch found[2] {
	case "since":
		e.since, err = release(found[3])
	case "before":
		e.before, err = release(found[3])
	}
	return e, err
}

// release returns a version such as 3.0 or 1.1.1 as OPENSSL_VERSION_NUMBER.
func release(text string) (uint64, error) {
	var major, minor, patch uint64
	if n, err := fmt.Sscanf(text, "%d.%d.%d", &major, &minor, &patch); n < 2 {
		return 0, fmt.Errorf("version %q: %w", text, err)
	}
	if major >= 3 {
		return major<<28 | minor<<20 | patch<<4, nil
	}
	return major<<28 | minor<<20 | patch<<12, nil
}

// suffixes are the suffixes of C's integers.
var suffixes = regexp.MustCompile(`(?i)\b(0x[0-9a-f]+|[0-9]+)[ul]+\b`)

// number computes an integer that C's preprocessor printed, such as ( (3<<28) | (5<<20) | 0x0L ).
func number(expression string) (uint64, error) {
	value, err := types.Eval(token.NewFileSet(), nil, token.NoPos, suffixes.ReplaceAllString(expression, "$1"))
	if err != nil {
		return 0, fmt.Errorf("%q is not a number: %w", expression, err)
	}
	n, exact := constant.Uint64Val(constant.ToInt(value.Value))
	if !exact {
		return 0, fmt.Errorf("%q is not a number", expression)
	}
	return n, nil
}

// preprocess makes the compiler only expand macros.
var preprocess = []string{"-E", "-P"}

// compile runs the C compiler on a source and returns its output, or an error with all its
// messages.
func compile(source string, flags ...[]string) (string, error) {
	cc := strings.Fields(cmp.Or(os.Getenv("CC"), "cc"))
	cmd := exec.Command(cc[0], slices.Concat(cc[1:], slices.Concat(flags...), []string{"-I.", "-x", "c", "-"})...)
	cmd.Stdin = strings.NewReader(source)
	var out, says strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &says
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("the C compiler: %w\n%s", err, says.String())
	}
	return out.String(), nil
}
