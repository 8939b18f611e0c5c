package deps

import (
	"bufio"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// root is the folder of the repository.
const root = "../../.."

// modulePath is the core module; every other module of the repository lies below it.
const modulePath = "github.com/ossl-go/ossl"

// allowedRequirements are the modules that the core's go.mod may require, each with its reason: a
// program that imports the core gets them all in its module graph, so the reason must be good.
var allowedRequirements = map[string]string{
	"golang.org/x/sys": "processor features and socket options that package syscall has no names for",
}

// internalImporters are the folders outside of the core's module whose packages may import internal
// ones of the core. Go permits it to all modules below the core's path, but it ties their releases
// to the core's.
var internalImporters = map[string]string{
	"cmd/ossl/internal/bench":   "counts crossings and C's heap, shares the tests' certificates; installed at the core's version",
	"cmd/ossl/internal/inspect": "asks processes, which answer in the format of internal/status",
	"cmd/ossl/internal/gofarm":  "makes farms of the core's packages, at the core's version",
	"audit/confgen":             "its trials take ports where the core's tests do, so that none gets another's",
	"nocgo/link":                "hands the core its C code; used at the core's version, which it checks",
	"examples":                  "not released: the tests of the recipes share internal/recipetest",
}

// leaves are folders of the core that import no folder of the repository, or only those that are
// listed. Tests may import more.
var leaves = map[string][]string{
	"tlsnames": nil, "internal/wire": nil, "internal/gate": nil, "internal/ticketsecret": nil, "internal/status": nil,
	"internal/record": {"internal/wire"}, "internal/libssl": {"internal/wire", "tlsnames"},
}

// refusedModules are modules that no module may need, not even indirectly, with the reasons.
var refusedModules = map[string]string{
	"kernel.org/pub/linux/libs/security/libcap/psx": "it interrupts all threads by a signal, and then allocates memory in C: " +
		"that never returns if one of them was in malloc; and it ends the process where there is no /proc",
}

// withoutOpenSSL are folders whose packages, and those below, build without cgo and never load
// OpenSSL: they import neither the root nor internal/libssl, directly or indirectly. Tests may
// import everything.
var withoutOpenSSL = []string{"policy", "audit"}

// withOpenSSL are the exceptions from withoutOpenSSL.
var withOpenSSL = map[string]string{
	"policy/apply":       "makes configurations for the root",
	"audit/internal/zoo": "servers for tests, some of them on OpenSSL",
	"audit/zoo":          "the command that starts these servers",
}

// TestRefusedModules reads the go.mod files, which list all modules that a build needs.
func TestRefusedModules(t *testing.T) {
	t.Chdir(root)
	for dir := range moduleDirs(t) {
		file := path.Join(dir, "go.mod")
		for _, words := range directives(t, file, "require") {
			if reason := refusedModules[words[0]]; reason != "" {
				t.Errorf("%s requires %s: %s", file, words[0], reason)
			}
		}
	}
}

// TestCoreRequirements reads the core's go.mod.
func TestCoreRequirements(t *testing.T) {
	t.Chdir(root)
	for _, words := range directives(t, "go.mod", "require") {
		if name := words[0]; allowedRequirements[name] == "" {
			t.Errorf("go.mod requires %s: the core stands on the standard library; put what needs more into a module of its own", name)
		}
	}
}

// TestReleases: the modules can be installed as they are, and all are released at one version. Only
// go.work, which users don't see, has replace directives.
func TestReleases(t *testing.T) {
	t.Chdir(root)
	released, version := map[string]bool{}, ""
	for _, words := range directives(t, "go.work", "replace") { // PATH VERSION => FOLDER
		if version == "" {
			version = words[1]
		}
		if words[1] != version {
			t.Errorf("go.work replaces %s %s, and others of %s: all modules have one version", words[0], words[1], version)
		}
		released[words[0]] = true
	}
	if !released[modulePath] {
		t.Fatal("go.work does not replace the core")
	}
	for dir := range moduleDirs(t) {
		file := path.Join(dir, "go.mod")
		for _, words := range directives(t, file, "replace") {
			t.Errorf("%s replaces %s: users' builds ignore it, and go install refuses it", file, words[0])
		}
		for _, words := range directives(t, file, "require") {
			if !within(words[0], modulePath) {
				continue
			}
			if words[1] != version {
				t.Errorf("%s requires %s %s, not %s as in go.work", file, words[0], words[1], version)
			}
			if !released[words[0]] {
				t.Errorf("%s requires %s, which go.work does not replace: it is not released", file, words[0])
			}
		}
	}
}

// TestImports reads the import declarations of every Go file of the repository, tests and files for
// other systems included.
func TestImports(t *testing.T) {
	t.Chdir(root)
	modules := moduleDirs(t)
	cgoFiles := 0
	for _, file := range goFiles(t, ".") {
		dir := path.Dir(file)
		module := moduleOf(modules, dir)
		below, isLeaf := leaves[dir]
		for _, imported := range importsOf(t, file) {
			switch {
			case imported == "C":
				cgoFiles++
				if dir != "internal/libssl" {
					t.Errorf(`%s: import "C" belongs in internal/libssl only: what is unsafe is read in one place`, file)
				}
			case isLeaf && !strings.HasSuffix(file, "_test.go") && within(imported, modulePath) &&
				!slices.Contains(below, strings.TrimPrefix(imported, modulePath+"/")):
				t.Errorf("%s imports %s: %s is below all packages that use it", file, imported, dir)
			case isTestHelper(imported) && module == "." && !strings.HasSuffix(file, "_test.go") && !isTestCode(dir):
				t.Errorf("%s imports %s, which is for tests", file, imported)
			case within(imported, modulePath+"/internal"):
				ports := imported == modulePath+"/internal/freeport" && strings.HasSuffix(file, "_test.go")
				if module != "." && !mayImportInternal(dir) && !ports {
					t.Errorf("%s: module %s imports %s: adapters use the core's public API only", file, module, imported)
				}
			case module == "." && isThirdParty(imported) && !isAllowed(imported):
				t.Errorf("%s: the core, tests included, imports %s: it stands on the standard library", file, imported)
			}
		}
	}
	// If the boundary were renamed or the walk broken, everything above would pass without checking
	// anything.
	if cgoFiles == 0 {
		t.Error(`no file with import "C" found: has the boundary moved?`)
	}
}

// TestWithoutOpenSSL follows the imports of the packages in withoutOpenSSL.
func TestWithoutOpenSSL(t *testing.T) {
	t.Chdir(root)
	imports := map[string][]string{} // by folder, the imports of its files except tests
	for _, file := range goFiles(t, ".") {
		if dir := path.Dir(file); !strings.HasSuffix(file, "_test.go") {
			imports[dir] = append(imports[dir], importsOf(t, file)...)
		}
	}
	for dir := range imports {
		if !slices.ContainsFunc(withoutOpenSSL, func(root string) bool { return within(dir, root) }) {
			continue
		}
		excepted := false
		for root := range withOpenSSL {
			excepted = excepted || within(dir, root)
		}
		if way := wayToOpenSSL(imports, dir, map[string]bool{}); way != "" && !excepted {
			t.Errorf("%s: programs that have it should build without cgo", way)
		}
	}
	// If nothing were found here, everything above would pass without checking anything.
	for dir := range withOpenSSL {
		if wayToOpenSSL(imports, dir, map[string]bool{}) == "" {
			t.Errorf("%s doesn't import the root: the exception for it is not needed", dir)
		}
	}
}

// wayToOpenSSL returns the imports by which a folder's package reaches the root or internal/libssl,
// or "" if it doesn't. seen are the folders that don't.
func wayToOpenSSL(imports map[string][]string, dir string, seen map[string]bool) string {
	if dir == "." || dir == "internal/libssl" {
		return dir
	}
	seen[dir] = true
	for _, imported := range imports[dir] {
		if !within(imported, modulePath) {
			continue
		}
		next := path.Clean("." + strings.TrimPrefix(imported, modulePath))
		if seen[next] {
			continue
		}
		if way := wayToOpenSSL(imports, next, seen); way != "" {
			return dir + " imports " + way
		}
	}
	return ""
}

// TestCgoRuleWithoutOpenSSLHeaders keeps builds free of OpenSSL's headers: the boundary's C code
// includes only its own files and the C library's.
func TestCgoRuleWithoutOpenSSLHeaders(t *testing.T) {
	t.Chdir(root)
	seen := 0
	err := filepath.WalkDir("internal/libssl", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		switch filepath.Ext(name) {
		case ".c", ".h", ".go":
		default:
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		seen++
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(strings.TrimSpace(line), "#include <openssl/") {
				t.Errorf("%s: %s: nothing is to be built against OpenSSL's headers; add what is needed to api.h",
					name, strings.TrimSpace(line))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen == 0 {
		t.Error("internal/libssl holds no source: has the boundary moved?")
	}
}

// directives lists the words of the directives in a go.mod or go.work that have the verb ("require",
// "replace"), without it, in either of its forms.
func directives(t *testing.T, file, verb string) [][]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var found [][]string
	block := "" // the verb whose parentheses are open
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		text, _, _ := strings.Cut(lines.Text(), "//")
		words := strings.Fields(text)
		switch {
		case len(words) == 0:
		case words[0] == ")":
			block = ""
		case len(words) == 2 && words[1] == "(":
			block = words[0]
		case block == verb:
			found = append(found, words)
		case block == "" && words[0] == verb && len(words) > 1:
			found = append(found, words[1:])
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

// goFiles lists the Go files below root with slashes, as the go command would see them: testdata
// and names that begin with a dot or an underscore are left out. So is bin, in which other tools
// may be building.
func goFiles(t *testing.T, root string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		hidden := name != root && (name == "bin" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_"))
		switch {
		case entry.IsDir() && (hidden || base == "testdata"):
			return fs.SkipDir
		case !entry.IsDir() && !hidden && strings.HasSuffix(base, ".go"):
			files = append(files, filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// moduleDirs lists the folders that hold a go.mod, "." among them.
func moduleDirs(t *testing.T) map[string]bool {
	t.Helper()
	dirs := map[string]bool{}
	for _, pattern := range []string{"go.mod", "*/go.mod", "*/*/go.mod", "*/*/*/go.mod"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range found {
			dirs[path.Dir(filepath.ToSlash(name))] = true
		}
	}
	if !dirs["."] {
		t.Fatal("no go.mod in the folder of the repository")
	}
	return dirs
}

// moduleOf returns the folder of the module that dir belongs to.
func moduleOf(modules map[string]bool, dir string) string {
	for !modules[dir] {
		dir = path.Dir(dir)
	}
	return dir
}

// importsOf returns the import paths of a Go file.
func importsOf(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		paths = append(paths, imported)
	}
	return paths
}

// isThirdParty reports whether an import path is neither the standard library's nor the core's own:
// the first element of a module's path has a dot in it (go help importpath).
func isThirdParty(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return strings.Contains(first, ".") && !within(imported, modulePath)
}

// mayImportInternal reports whether a folder lies in one of internalImporters.
func mayImportInternal(dir string) bool {
	for name := range internalImporters {
		if within(dir, name) {
			return true
		}
	}
	return false
}

// isTestHelper reports whether an import path is of a package that tests share.
func isTestHelper(imported string) bool {
	return within(imported, modulePath+"/internal/tlstest") || within(imported, modulePath+"/internal/ossltest") ||
		within(imported, modulePath+"/internal/recipetest")
}

// isTestCode reports whether a folder of the core is never part of a program that uses the core.
func isTestCode(dir string) bool {
	return within(dir, "internal/ossltest") || within(dir, "internal/recipetest") || within(dir, "internal/bogoshim") ||
		within(dir, "ci")
}

// isAllowed reports whether an import path lies in a module in allowedRequirements.
func isAllowed(imported string) bool {
	for name := range allowedRequirements {
		if within(imported, name) {
			return true
		}
	}
	return false
}

// within reports whether an import path is root or lies below it.
func within(imported, root string) bool {
	return imported == root || strings.HasPrefix(imported, root+"/")
}
