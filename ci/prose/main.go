// Prose measures the English of comments: for each folder it counts, per 1,000 words, phrases that
// often mark a clumsy sentence. Their limits are twice the rates in package net/http's comments, or in
// crypto/tls's if those are higher; "what" may be four times as frequent.
//
//	prose [-v] [-except DIR,...] [DIR...]
//
// It reads the comments of Go and C files below each DIR, the current folder by default. It prints a
// table of the folders that exceed a limit, and fails if there is one. Because one use in a few
// sentences says nothing, two uses of a phrase are always allowed. -v prints all folders, and the
// lines with the phrases; -except leaves out folders, with those in them, except that "." is only the
// folder itself.
package main

import (
	"cmp"
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

// counted are the columns of the table. A limit of 0 is none.
var counted = []struct {
	name  string
	limit float64 // uses per 1,000 words
	re    *regexp.Regexp
}{
	{"what", 1.5, regexp.MustCompile(`(?i)\bwhat(ever)?\b`)},
	{"has X do", 0.6, regexp.MustCompile(`\b(has|have|having|had) (the |a |an |its |each |both )?[\w/'.-]+( [\w/'.-]+)? (` +
		`send|write|take|read|make|move|seal|sign|encrypt|verify|decrypt|resume|end|pause|continue|parse|let|give|deny|open|` +
		`free|run|choose|refuse|call|close|begin|go|wait|use|do|say|see|serve|start|come|judge|leave|answer|print|tell|follow|` +
		`count|derive|find|get|hold|look|check|load|keep|hash|copy|ask|agree|act|appear|test)\b`)},
	{"of TLS", 0.8, regexp.MustCompile(`\bof (TLS|HTTP|TCP|crypto/tls|libssl|OpenSSL|Go|nginx|Linux|UDP|SMTP|ECDSA|RSA)\b`)},
	{"ends", 0.8, regexp.MustCompile(`\b(ends|ended|ending)\b`)},
	{"that of", 1, regexp.MustCompile(`\b(that|those|ones?) of\b`)},
	{"says", 0.6, regexp.MustCompile(`\b(says?|said|saying)\b`)},
	{"where", 0, regexp.MustCompile(`(?i)\bwhere(ver)?\b`)},
	{"tell", 0, regexp.MustCompile(`(?i)\b(tells?|told)\b`)},
	{"who", 0, regexp.MustCompile(`(?i)\b(who|whom|whoever)\b`)},
	{"beside", 0, regexp.MustCompile(`(?i)\b(beside|but for|goes? for|meanwhile|as ever|all the same)\b`)},
}

var word = regexp.MustCompile(`[A-Za-z][A-Za-z'-]*`)

// A comment is a group of comments in a file.
type comment struct {
	file string
	line int
	text string
}

func main() {
	except := flag.String("except", "", "`folders` to leave out, separated by commas")
	verbose := flag.Bool("v", false, "print all folders, and the lines with the phrases that have a limit")
	flag.Parse()
	roots := flag.Args()
	if len(roots) == 0 {
		roots = []string{"."}
	}
	comments := map[string][]comment{} // by folder
	for _, root := range roots {
		if err := read(root, comments); err != nil {
			fmt.Fprintln(os.Stderr, "prose:", err)
			os.Exit(1)
		}
	}
	for left := range strings.SplitSeq(*except, ",") {
		maps.DeleteFunc(comments, func(dir string, _ []comment) bool { return dir == left || strings.HasPrefix(dir, left+"/") })
	}
	if !report(os.Stdout, comments, *verbose) {
		os.Exit(1)
	}
}

// read adds the comments of the files below root, by folder.
func read(root string, comments map[string][]comment) error {
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
		var found []comment
		switch filepath.Ext(name) {
		case ".go":
			found, err = goComments(path)
		case ".c", ".h":
			found, err = cComments(path)
		}
		if len(found) > 0 {
			comments[filepath.Dir(path)] = append(comments[filepath.Dir(path)], found...)
		}
		return err
	})
}

func goComments(path string) (found []comment, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	for _, group := range file.Comments {
		found = append(found, comment{path, files.Position(group.Pos()).Line, group.Text()})
	}
	return found, nil
}

// cToken matches a comment, or a literal, in which there is none.
var cToken = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*|"(\\.|[^"\\\n])*"|'(\\.|[^'\\\n])*'`)

func cComments(path string) (found []comment, err error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for _, at := range cToken.FindAllIndex(source, -1) {
		if text := string(source[at[0]:at[1]]); text[0] == '/' {
			found = append(found, comment{path, 1 + strings.Count(string(source[:at[0]]), "\n"), text})
		}
	}
	return found, nil
}

// report prints the table and reports whether all folders keep to the limits.
func report(w io.Writer, comments map[string][]comment, all bool) bool {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	var rows, lines strings.Builder
	good := true
	for _, dir := range slices.Sorted(maps.Keys(comments)) {
		words := 0
		for _, c := range comments[dir] {
			words += len(word.FindAllString(c.text, -1))
		}
		bad := false
		row := fmt.Sprintf("%s\t%d\t", dir, words)
		for _, phrase := range counted {
			var uses int
			for _, c := range comments[dir] {
				// A phrase may be broken into two lines.
				found := phrase.re.FindAllStringIndex(strings.ReplaceAll(c.text, "\n", " "), -1)
				uses += len(found)
				for _, at := range found {
					if phrase.limit > 0 {
						n := c.line + strings.Count(c.text[:at[0]], "\n")
						fmt.Fprintf(&lines, "%s:%d: %s\n", c.file, n, c.text[at[0]:at[1]])
					}
				}
			}
			rate := 1000 * float64(uses) / float64(max(words, 1))
			mark := ""
			if phrase.limit > 0 && uses > 2 && rate > phrase.limit {
				bad, mark = true, "!"
			}
			row += fmt.Sprintf("%.2f%s\t", rate, cmp.Or(mark, " "))
		}
		good = good && !bad
		if words > 0 && (all || bad) {
			fmt.Fprintln(&rows, row)
		}
	}
	if rows.Len() > 0 {
		fmt.Fprint(t, "folder\twords\t")
		for _, c := range counted {
			fmt.Fprintf(t, "%s \t", c.name)
		}
		fmt.Fprintf(t, "\n%s", rows.String())
		t.Flush()
	}
	if all {
		fmt.Fprint(w, lines.String())
	}
	return good
}
