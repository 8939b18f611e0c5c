package confgen

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// describe returns the directives that Read finds, the lines of the sites with TLS, and the parts that it
// didn't read.
func describe(t *testing.T, kind, file string) string {
	t.Helper()
	dir := filepath.Dir(file)
	short := strings.NewReplacer(dir+"/", "", dir, "DIR").Replace
	c, err := Read(Server{Kind: kind}, file)
	if err != nil {
		return "error: " + short(err.Error()) + "\n"
	}
	var out strings.Builder
	for _, d := range c.Directives {
		out.WriteString(strings.TrimSpace(d.Scope+": "+d.Name+" "+d.Value) + "\n")
	}
	for _, p := range c.Sites {
		out.WriteString(short("site "+p.String()) + "\n")
	}
	for _, u := range c.Unread {
		out.WriteString(short("unread "+u.Place.String()+": "+u.What) + "\n")
	}
	return out.String()
}

// TestReadText reads the configurations in testdata/read.txt, also with Windows line endings.
func TestReadText(t *testing.T) {
	all, err := os.ReadFile("testdata/read.txt")
	if err != nil {
		t.Fatal(err)
	}
	for test := range strings.SplitSeq(strings.TrimPrefix(string(all), "=== "), "\n=== ") {
		head, rest, _ := strings.Cut(test, "\n")
		kind, name, _ := strings.Cut(head, ": ")
		text, want, ok := strings.Cut(rest, "--- want\n")
		t.Run(kind+"/"+name, func(t *testing.T) {
			if !ok {
				t.Fatal("no line '--- want'")
			}
			for end, text := range map[string]string{"Unix": text, "Windows": "\ufeff" + strings.ReplaceAll(text, "\n", "\r\n")} {
				file := filepath.Join(t.TempDir(), "0")
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				if got := strings.TrimSuffix(describe(t, kind, file), "\n"); got != strings.TrimSuffix(want, "\n") {
					t.Errorf("%s: got\n%s\nwant\n%s", end, got, want)
				}
			}
		})
	}
}
