package gofarm

import (
	"archive/zip"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

// TestDownload: a released ossl takes its sources from its own module, by the hash that the command has.
func TestDownload(t *testing.T) {
	const version = "v0.9.9"
	proxy := t.TempDir()
	dir := filepath.Join(proxy, module, "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	const goMod = "module " + module + "\n\ngo 1.26.0\n"
	for name, text := range map[string]string{"info": `{"Version": "` + version + `"}`, "mod": goMod} {
		if err := os.WriteFile(filepath.Join(dir, version+"."+name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	archive, err := os.Create(filepath.Join(dir, version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(archive)
	for name, text := range map[string]string{"go.mod": goMod, markerSource: "package unchanged\n"} {
		f, err := z.Create(module + "@" + version + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"GOPROXY": "file://" + proxy, "GOMODCACHE": t.TempDir(), "GONOSUMDB": "*",
		"GOFLAGS": "-modcacherw"} {
		t.Setenv(name, value)
	}

	m := &debug.Module{Path: module, Version: version, Sum: "h1:another"}
	_, err = download(t.Context(), m)
	if err == nil || !strings.Contains(err.Error(), "but this command was made for h1:another") {
		t.Fatalf("another hash: %v", err)
	}
	_, sum, _ := strings.Cut(err.Error(), "have the hash ")
	m.Sum, _, _ = strings.Cut(sum, ",")
	dir, err = download(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	if files, err := readOssl(dir); err != nil || files[markerSource] == nil {
		t.Errorf("%d files, %v", len(files), err)
	}
	m.Version = "v0.9.8"
	if _, err := download(t.Context(), m); err == nil || !strings.HasPrefix(err.Error(), module+": ") {
		t.Errorf("a version that isn't there: %v", err)
	}
}
