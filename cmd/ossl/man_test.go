package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the manual pages")

// TestManPages: the pages in man match the commands. "go test -run ManPages -update" writes them.
func TestManPages(t *testing.T) {
	pages := manPages(rootCommand(new(bool)))
	if *update {
		for name, text := range pages {
			if err := os.WriteFile(filepath.Join("man", name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	files, err := filepath.Glob("man/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if _, ok := pages[filepath.Base(file)]; !ok {
			t.Errorf("%s is the page of no command", file)
		}
	}
	for name, text := range pages {
		got, err := os.ReadFile(filepath.Join("man", name))
		if err != nil || string(got) != text {
			t.Errorf("man/%s is not the command's page (%v): go test -run ManPages -update", name, err)
		}
		for line := range strings.SplitSeq(text, "\n") {
			if strings.HasPrefix(line, "'") {
				t.Errorf("%s: %q is a request of roff", name, line)
			}
		}
	}
	dir := filepath.Join(t.TempDir(), "share", "man1")
	var out, errs bytes.Buffer
	if code := run(context.Background(), []string{"man", dir}, &out, &errs); code != 0 {
		t.Fatalf("exit status %d: %s", code, &errs)
	}
	if written, _ := filepath.Glob(dir + "/*"); len(written) != len(pages) {
		t.Errorf("ossl man wrote %d pages, want %d", len(written), len(pages))
	}
}

// TestCompletion: shells complete commands, flags, and the flags' values.
func TestCompletion(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"che", "check"},
		{"check --fail", "--fail-on"},
		{"check --fail-on h", "high"},
		{"check --format sa", "sarif"},
		{"check --policy fast", "fast-and-safe"},
		{"check --server ng", "nginx"},
	} {
		var out, errs bytes.Buffer
		code := run(context.Background(), append([]string{"__complete"}, strings.Fields(c.args)...), &out, &errs)
		if code != 0 || !strings.Contains("\n"+out.String(), "\n"+c.want) { // shells filter the values
			t.Errorf("%s: exit status %d, %q, want %q", c.args, code, &out, c.want)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		var out, errs bytes.Buffer
		if code := run(context.Background(), []string{"completion", shell}, &out, &errs); code != 0 || out.Len() < 1000 {
			t.Errorf("%s: exit status %d, %d bytes, %s", shell, code, out.Len(), &errs)
		}
	}
}
