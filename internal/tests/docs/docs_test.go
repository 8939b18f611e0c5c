package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

const root = "../../.."

// TestREADMEServer: the server in README.md is ExampleListen, which the compiler has checked.
func TestREADMEServer(t *testing.T) {
	server := between(t, read(t, "README.md"), "\nfunc main() {\n", "\n}\n")
	example := between(t, read(t, "example_test.go"), "\nfunc ExampleListen() {\n", "\n}\n")
	if server != example {
		t.Errorf("README.md has\n%s\nand ExampleListen\n%s", server, example)
	}
}

// TestLinks: a link from one file of the repository to another leads to a file.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	for _, file := range markdown(t) {
		for _, match := range link.FindAllStringSubmatch(read(t, file), -1) {
			target := filepath.Join(root, filepath.Dir(file), match[1])
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: link to %s: %v", file, match[1], err)
			}
		}
	}
}

// TestProseWraps: prose has lines of at most 100 characters, so that a change of one sentence is a
// change of few lines. Tables, code and the files that ci/bench writes can't be wrapped.
func TestProseWraps(t *testing.T) {
	const width = 100
	for _, file := range markdown(t) {
		if strings.HasPrefix(file, "docs/figures/") {
			continue
		}
		code := false
		for i, line := range strings.Split(read(t, file), "\n") {
			if strings.HasPrefix(line, "```") {
				code = !code
			}
			table, link := strings.HasPrefix(line, "|"), strings.HasPrefix(line, "[")
			if n := utf8.RuneCountInString(line); n > width && !code && !table && !link && !strings.HasPrefix(line, "    ") {
				t.Errorf("%s:%d: %d characters", file, i+1, n)
			}
		}
	}
}

// TestNames: the files, tests, benchmarks and Examples that the documents name exist.
func TestNames(t *testing.T) {
	files, tests := map[string]bool{}, map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)\w+)\(`)
	walk(t, func(file string) {
		parts := strings.Split(file, "/")
		for i := range parts {
			files[strings.Join(parts[i:], "/")] = true
		}
		if strings.HasSuffix(file, "_test.go") {
			for _, match := range declared.FindAllStringSubmatch(read(t, file), -1) {
				tests[match[1]] = true
			}
		}
	})
	span := regexp.MustCompile("`([^`\n]+)`")
	source := regexp.MustCompile(`^[\w/]+\.(go|c|h)$`)
	test := regexp.MustCompile(`^(Test|Fuzz|Benchmark|Example)\w+$`)
	for _, file := range markdown(t) {
		if file == "CHANGELOG.md" {
			continue // it is about the past
		}
		for _, match := range span.FindAllStringSubmatch(read(t, file), -1) {
			name := match[1]
			if source.MatchString(name) && !files[name] || test.MatchString(name) && !tests[name] {
				t.Errorf("%s: there is no %s", file, name)
			}
		}
	}
}

// TestRooms: the rooms in ARCHITECTURE.md exist, and every package of the core is in a room.
func TestRooms(t *testing.T) {
	table := between(t, read(t, "docs/ARCHITECTURE.md"), "| package | holds |\n|---|---|\n", "\n\n")
	rooms := map[string]bool{}
	for line := range strings.Lines(table) {
		packages, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		for _, match := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(packages, -1) {
			rooms[match[1]] = true
		}
	}
	delete(rooms, "ossl")
	for room := range rooms {
		if _, err := os.Stat(filepath.Join(root, room)); err != nil {
			t.Errorf("a room that doesn't exist: %v", err)
		}
	}
	internal, err := os.ReadDir(filepath.Join(root, "internal"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range internal {
		if name := "internal/" + entry.Name(); entry.IsDir() && !rooms[name] {
			t.Errorf("%s is not in the table", name)
		}
	}
}

// markdown lists the Markdown files of the repository.
func markdown(t *testing.T) []string {
	t.Helper()
	var files []string
	walk(t, func(file string) {
		if strings.HasSuffix(file, ".md") {
			files = append(files, file)
		}
	})
	if len(files) < 10 {
		t.Fatalf("found only %q: has the root moved?", files)
	}
	return files
}

// walk calls visit with the files of the repository, except tests' data and other tools' files.
func walk(t *testing.T, visit func(file string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() {
			if base == "testdata" || base == "bin" || strings.HasPrefix(base, ".") && name != root {
				return fs.SkipDir
			}
			return nil
		}
		relative, err := filepath.Rel(root, name)
		if err == nil {
			visit(filepath.ToSlash(relative))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// between returns the part of text between before and after.
func between(t *testing.T, text, before, after string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, before)
	part, _, ok2 := strings.Cut(rest, after)
	if !ok || !ok2 {
		t.Fatalf("no text between %q and %q", before, after)
	}
	return part
}
