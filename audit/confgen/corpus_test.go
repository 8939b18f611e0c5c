package confgen

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A fact is the result of an independent reading of a public configuration.
type fact struct {
	kind, source string
	text         string // the number of sites, and the directives; long values by their hash
}

// facts returns the facts of testdata/corpus.txt, by the SHA-256 of the file.
func facts(t *testing.T) map[string]fact {
	t.Helper()
	all, err := os.ReadFile("testdata/corpus.txt")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]fact{}
	hash := ""
	for line := range strings.Lines(string(all)) {
		if head := strings.SplitN(line, " ", 4); !strings.HasPrefix(line, "\t") && len(head) == 4 {
			hash = head[2]
			out[hash] = fact{head[0], strings.TrimSpace(head[3]), head[1] + "\n"}
			continue
		}
		f := out[hash]
		f.text += line
		out[hash] = f
	}
	return out
}

// TestCorpus reads the public configurations in the folders of OSSL_CORPUS that the table has facts about.
// The facts come from the Python package crossplane for nginx, from Caddy's own tests for Caddy, and from
// the configurations' lines for the others. Each file is read alone, without the files that it includes.
func TestCorpus(t *testing.T) {
	folders := os.Getenv("OSSL_CORPUS")
	if folders == "" {
		t.Skip("OSSL_CORPUS names no folder of configurations: ci/config runs it, and ci/corpus with more")
	}
	known := facts(t)
	found := map[string]bool{}
	for _, folder := range filepath.SplitList(folders) {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			if info, err := d.Info(); err != nil || info.Size() > 1<<20 {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			hash := fmt.Sprintf("%x", sha256.Sum256(text))
			if f, ok := known[hash]; ok && !found[hash] {
				found[hash] = true
				f.check(t, string(text))
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	if len(found) == 0 {
		t.Errorf("none of the %d configurations is in %s", len(known), folders)
	}
	t.Logf("%d of %d configurations found", len(found), len(known))
}

func (f fact) check(t *testing.T, text string) {
	text, _, _ = strings.Cut(text, "\n----------\n") // Caddy's tests have the result behind it
	file := filepath.Join(t.TempDir(), "conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Read(Server{Kind: f.kind}, file)
	if err != nil {
		t.Errorf("%s: %v", f.source, err)
		return
	}
	got := fmt.Sprintln(len(c.Sites))
	for _, d := range c.Directives {
		// The name may have a second word, which the table counts as part of the value.
		name, value, _ := strings.Cut(strings.TrimSpace(d.Name+" "+d.Value), " ")
		if len(value) > 80 {
			value = fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(value)))[:len("sha256:")+16]
		}
		got += strings.TrimRight("\t"+d.Scope+": "+name+" "+value, " ") + "\n"
	}
	if got != f.text {
		t.Errorf("%s: got %s\nwant %s", f.source, got, f.text)
	}
}
