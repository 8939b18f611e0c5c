// Prose measures the English of comments: for each folder it counts, per 1,000 words, words that
// often mark a clumsy sentence. Comments in package crypto/tls use "what" 0.4 times.
//
//	prose [-v] [-limit N] [-except DIR,...] [DIR...]
//
// It reads the comments of Go and C files below each DIR, the current folder by default, but not
// those of tests. It prints a table of the folders that use "what" more often than the limit, and
// fails if there is one. Because one use in a few sentences says nothing, two uses are always
// allowed. -v prints all folders; -except leaves out some, with the folders in them, except that
// "." is only the folder itself.
package main

import (
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
)

// counted are the columns of the table. The first one has the limit.
var counted = []struct {
	name string
	re   *regexp.Regexp
}{
	{"what", regexp.MustCompile(`(?i)\bwhat(ever)?\b`)},
	{"where", regexp.MustCompile(`(?i)\bwhere(ver)?\b`)},
	{"tell", regexp.MustCompile(`(?i)\b(tells?|told)\b`)},
	{"who", regexp.MustCompile(`(?i)\b(who|whom|whoever)\b`)},
	{"beside", regexp.MustCompile(`(?i)\b(beside|but for|goes? for|meanwhile|as ever|all the same)\b`)},
}

var word = regexp.MustCompile(`[A-Za-z][A-Za-z'-]*`)

func main() {
	limit := flag.Float64("limit", 1.5, "the highest number of `uses` of what per 1,000 words")
	except := flag.String("except", "", "`folders` to leave out, separated by commas")
	verbose := flag.Bool("v", false, "print all folders")
	flag.Parse()
	roots := flag.Args()
	if len(roots) == 0 {
		roots = []string{"."}
	}
	comments := map[string]string{} // by folder
	for _, root := range roots {
		if err := read(root, comments); err != nil {
			fmt.Fprintln(os.Stderr, "prose:", err)
			os.Exit(1)
		}
	}
	for left := range strings.SplitSeq(*except, ",") {
		maps.DeleteFunc(comments, func(dir, _ string) bool { return dir == left || strings.HasPrefix(dir, left+"/") })
	}
	if !report(os.Stdout, comments, *limit, *verbose) {
		os.Exit(1)
	}
}

// read adds the comments of the files below root, by folder.
func read(root string, comments map[string]string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != root && (name == "testdata" || strings.HasPrefix(name, ".")) {
				return fs.SkipDir
			}
			return nil
		}
		var text string
		switch {
		case strings.HasSuffix(name, "_test.go"):
		case strings.HasSuffix(name, ".go"):
			text, err = goComments(path)
		case strings.HasSuffix(name, ".c") || strings.HasSuffix(name, ".h"):
			text, err = cComments(path)
		}
		comments[filepath.Dir(path)] += text
		return err
	})
}

func goComments(path string) (string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, group := range file.Comments {
		text.WriteString(group.Text())
	}
	return text.String(), nil
}

// cToken matches a comment, or a literal, in which there is none.
var cToken = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*|"(\\.|[^"\\\n])*"|'(\\.|[^'\\\n])*'`)

func cComments(path string) (string, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, t := range cToken.FindAllString(string(source), -1) {
		if t[0] == '/' {
			text.WriteString(t + "\n")
		}
	}
	return text.String(), nil
}

// report prints the table and reports whether all folders keep to the limit.
func report(w io.Writer, comments map[string]string, limit float64, all bool) bool {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	var rows strings.Builder
	good := true
	for _, dir := range slices.Sorted(maps.Keys(comments)) {
		words := len(word.FindAllString(comments[dir], -1))
		uses := len(counted[0].re.FindAllString(comments[dir], -1))
		bad := uses > 2 && 1000*float64(uses)/float64(words) > limit
		good = good && !bad
		if words == 0 || !all && !bad {
			continue
		}
		fmt.Fprintf(&rows, "%s\t%d\t", dir, words)
		for _, c := range counted {
			fmt.Fprintf(&rows, "%.2f\t", 1000*float64(len(c.re.FindAllString(comments[dir], -1)))/float64(words))
		}
		fmt.Fprintln(&rows)
	}
	if rows.Len() > 0 {
		fmt.Fprint(t, "folder\twords\t")
		for _, c := range counted {
			fmt.Fprintf(t, "%s\t", c.name)
		}
		fmt.Fprintf(t, "\n%s", rows.String())
		t.Flush()
	}
	return good
}
