//go:build unix

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// install writes files that look like an OpenSSL's libraries: only the version's text is read.
func install(t *testing.T, root, folder, major, text string) {
	t.Helper()
	dir := filepath.Join(root, folder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"libssl": "", "libcrypto": "\x7fELF\x00" + text + "\x00and more"} {
		if err := os.WriteFile(filepath.Join(dir, name+".so."+major), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestVersionAt checks that an OpenSSL is found in each place, and gets the rows of the nearest
// version.
func TestVersionAt(t *testing.T) {
	cases := []struct {
		name, folder, major, text string
		number, like              string
		rows                      []string
	}{
		{"newer than all", "lib64", "4", "OpenSSL 4.1.0 13 Oct 2026", "4.1.0", "4.0", []string{"at", "at libssl", "at sessions"}},
		{"a later minor", "lib", "3", "OpenSSL 3.12.1 1 Oct 2026", "3.12.1", "new", []string{"at", "at libssl", "at sessions"}},
		{"itself", ".", "3", "OpenSSL 3.5.7 9 Jun 2026", "3.5.7", "3.5",
			[]string{"at", "at libssl", "at sessions", "at not slim", "at shards"}},
		{"between two", "usr/lib64", "3", "OpenSSL 3.2.2 4 Jun 2024", "3.2.2", "system",
			[]string{"at", "at libssl", "at sessions", "at not slim", "at shards"}},
		{"a package of Debian's", "usr/lib/x86_64-linux-gnu", "1.1", "OpenSSL 1.1.1w  11 Sep 2023", "1.1.1w", "1.1",
			[]string{"at", "at libssl", "at sessions"}},
		{"a package of Alpine's", "usr/lib", "3", "OpenSSL 3.3.3 11 Feb 2025", "3.3.3", "system",
			[]string{"at", "at libssl", "at sessions", "at not slim", "at shards"}},
		{"not released", "lib", "4", "OpenSSL 4.2.0-dev ", "4.2.0-dev", "4.0", []string{"at", "at libssl", "at sessions"}},
		{"a vendor's", "lib", "3", "OpenSSL 3.0.16+quic 11 Feb 2025", "3.0.16+quic", "system",
			[]string{"at", "at libssl", "at sessions", "at not slim", "at shards"}},
		{"too old", "lib", "1.1", "OpenSSL 1.0.2u  20 Dec 2019", "", "", nil},
		{"no version", "lib", "3", "OpenSSL", "", "", nil},
		{"two versions", "lib", "3", "OpenSSL 3.5.7 9 Jun 2026\x00OpenSSL 3.5.6 9 Jun 2026", "", "", nil},
		{"another folder", "deep/down", "3", "OpenSSL 3.5.7 9 Jun 2026", "", "", nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			root, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			install(t, root, c.folder, c.major, c.text)
			v, err := versionAt(root)
			if c.number == "" {
				if err == nil {
					t.Fatalf("version %+v; want an error", v)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			libraries := filepath.Join(root, c.folder)
			if v.number != c.number || v.like != c.like || v.major != c.major || v.libraries != libraries {
				t.Errorf("%+v; want %s like %s in %s", v, c.number, c.like, libraries)
			}
			var rows []string
			for _, p := range rowsOf([]version{v}) {
				rows = append(rows, p.name())
			}
			if !slices.Equal(rows, c.rows) {
				t.Errorf("rows %q; want %q", rows, c.rows)
			}
			if got := v.libraryDirs(); !slices.Equal(got, []string{libraries}) {
				t.Errorf("library folders %q; want %q alone", got, libraries)
			}
			if p := (planned{version: v}); !slices.Contains(p.environment(), "OSSL_LIBRARY="+c.major) {
				t.Error("the environment does not choose the library")
			}
		})
	}
}

// TestVersionAtNewest checks that, like ossl, versionAt takes the newest of several libraries in a
// folder, and reads the version from the libcrypto next to libssl.
func TestVersionAtNewest(t *testing.T) {
	root := t.TempDir()
	install(t, root, "lib", "3", "OpenSSL 3.5.7 9 Jun 2026")
	install(t, root, "lib", "4", "OpenSSL 4.0.3 9 Jun 2026")
	if v, err := versionAt(root); err != nil || v.number != "4.0.3" {
		t.Errorf("%+v, %v; want 4.0.3", v, err)
	}
	if err := os.Remove(filepath.Join(root, "lib", "libcrypto.so.4")); err != nil {
		t.Fatal(err)
	}
	if v, err := versionAt(root); err == nil || !strings.Contains(err.Error(), "libcrypto.so.4") {
		t.Errorf("%+v, %v; want an error about the missing libcrypto.so.4", v, err)
	}
}

// TestKnownVersions checks that the rows of each known version exist.
func TestKnownVersions(t *testing.T) {
	for _, k := range known {
		if like, err := nearest(k.number + ".1"); err != nil || like != k.name {
			t.Errorf("nearest of %s.1 is %q, %v; want %s", k.number, like, err, k.name)
		}
	}
	for _, name := range withAdapters {
		if !slices.ContainsFunc(known, func(k struct{ number, name string }) bool { return k.name == name }) {
			t.Errorf("%s has the adapters' rows, and is not among the known versions", name)
		}
	}
}
