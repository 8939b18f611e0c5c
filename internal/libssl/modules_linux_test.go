//go:build cgo || ossl_nocgo

package libssl

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	version3_3 = 0x30300000 // the first 3.x that interprets the value of "activate"
	version4_0 = 0x40000000 // the first without engines
)

// cutShort makes dir/name a truncated library, and returns its path.
func cutShort(t *testing.T, dir, name string) string {
	t.Helper()
	lib, err := Load("")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile(lib.Path)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, code[:len(code)/2], 0o755)); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestModulesCutShort has openssl.cnf activate files that would end the process when they are
// loaded, in all possible ways.
func TestModulesCutShort(t *testing.T) {
	if dir := os.Getenv("OSSL_TEST_CUT"); dir != "" {
		loadCutShort(t, dir)
		return
	}
	lib, err := Load("")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cutShort(t, dir, "modules/cut.so")
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(text, "DIR", dir)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const section = "[cut_sect]\nactivate = 1\n"
	provider := func(entry, section string) string {
		return "openssl_conf = init\n[init]\nproviders = prov\n[prov]\n" + entry + " = cut_sect\n" + section
	}
	engine := "openssl_conf = init\n[init]\nengines = engines\n[engines]\ncut = cut_sect\n[cut_sect]\n" +
		"dynamic_path = DIR/modules/cut.so\n"
	providers := map[string]string{
		"by its name":         provider("cut", section),
		"by a path":           provider("other", section+"module = DIR/modules/cut.so\n"),
		"by a relative path":  provider("other", section+"module = ../modules/cut.so\n"),
		"by another name":     provider("other", section+"identity = cut\n"),
		"by a numbered entry": provider("1.cut", "[cut_sect]\n2.activate = yes\n"),
		"of a second list": "openssl_conf = init\n[init]\nproviders.1 = none\nproviders.2 = prov\n[none]\n[prov]\ncut = cut_sect\n" +
			section,
		"by a variable":   "D = DIR/modules\n" + provider("other", section+"module = $D/cut.so\n"),
		"by another file": "openssl_conf = init\n.include DIR/more\n[prov]\ncut = cut_sect\n" + section,
	}
	write("more", "[init]\nproviders = prov\n")
	switch {
	case lib.Number < Version3_0: // the others are ignored
		write("refused-engine", engine)
		for name, text := range providers {
			write("loaded-"+name, text)
		}
	default:
		if lib.Number < version4_0 {
			write("refused-engine", engine)
		} else {
			write("loaded-engine", engine)
		}
		for name, text := range providers {
			write("refused-"+name, text)
		}
	}
	write("loaded-not activated", provider("cut", "[cut_sect]\nmodule = DIR/modules/cut.so\n"))
	write("loaded-built in", provider("default", section+"module = DIR/modules/cut.so\n"))
	write("loaded-not there", provider("nothing", section))
	byWord := "loaded-not activated by a word"
	if lib.Number >= Version3_0 && lib.Number < version3_3 {
		byWord = "refused-activated by any word"
	}
	write(byWord, provider("cut", "[cut_sect]\nactivate = no\n"))
	loaded, err := filepath.Glob(filepath.Join(dir, "loaded-*"))
	if err != nil || len(loaded) < 3 {
		t.Fatal(loaded, err)
	}
	for _, conf := range loaded { // a process loads one library, once
		cmd := exec.Command(os.Args[0], "-test.run=^TestModulesCutShort$")
		cmd.Env = append(os.Environ(), "OSSL_TEST_CUT="+dir, "OSSL_TEST_CONF="+conf, EnvLibrary+"="+lib.Path,
			"OPENSSL_MODULES="+filepath.Join(dir, "modules"), "GORACE=atexit_sleep_ms=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", filepath.Base(conf), err, out)
		}
	}
}

// loadCutShort runs in a process of its own, with nothing loaded yet: a refused file is not loaded.
func loadCutShort(t *testing.T, dir string) {
	refused, err := filepath.Glob(filepath.Join(dir, "refused-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, conf := range refused {
		t.Setenv("OPENSSL_CONF", conf)
		want := filepath.Join(dir, "modules/cut.so")
		if _, err := Load(""); !errors.Is(err, ErrUnavailable) || !strings.Contains(clean(err, dir), want+": cut short") {
			t.Errorf("%s: %v", filepath.Base(conf), err)
		}
	}
	t.Setenv("OPENSSL_CONF", os.Getenv("OSSL_TEST_CONF"))
	if _, err := Load(""); err != nil {
		t.Error(err)
	}
}

// clean returns an error's text with shortened paths.
func clean(err error, dir string) string {
	return strings.ReplaceAll(err.Error(), dir+"/modules/../", dir+"/")
}

// TestProviderCutShort loads such a provider by name.
func TestProviderCutShort(t *testing.T) {
	lib, err := Load("")
	if err != nil {
		t.Fatal(err)
	}
	if lib.Number < Version3_0 {
		t.Skipf("OpenSSL %s has no providers", lib.Version())
	}
	dir := t.TempDir()
	for name, test := range map[string]struct{ file, conf string }{
		"by its name":         {"modules/cut.so", ""},
		"by a path":           {"other.so", "[prov]\ncut = sect\n[sect]\nmodule = DIR/other.so\n"},
		"by a relative path":  {"modules/below/other.so", "[prov]\ncut = sect\n[sect]\nmodule = below/other.so\n"},
		"by another name":     {"other.so", "[prov]\nother = sect\n[sect]\nidentity = cut\nmodule = DIR/other.so\n"},
		"by the first of two": {"other.so", "[prov]\n1.cut = sect\n2.cut = default_sect\n[sect]\nmodule = DIR/other.so\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
			file := cutShort(t, dir, test.file)
			conf := filepath.Join(dir, "openssl.cnf")
			text := "openssl_conf = init\n[init]\nproviders = prov\n[default_sect]\nx = 1\n" + strings.ReplaceAll(test.conf, "DIR", dir)
			if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			t.Setenv("OPENSSL_CONF", conf)
			t.Setenv("OPENSSL_MODULES", filepath.Join(dir, "modules"))
			if _, err := LoadProvider("cut"); err == nil || !strings.HasPrefix(err.Error(), file+": cut short") {
				t.Error(err)
			}
		})
	}
	t.Setenv("OPENSSL_MODULES", filepath.Dir(cutShort(t, dir, "default.so")))
	if _, err := LoadProvider("default"); err != nil {
		t.Error("a provider that is there:", err)
	}
}
