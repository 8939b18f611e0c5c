//go:build unix

package localca_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/cmd/ossl/internal/localca"
)

// TestOwner: an authority is refused if another user could have made it, or can exchange it.
func TestOwner(t *testing.T) {
	const stranger = 1234
	root := os.Geteuid() == 0
	for _, c := range []struct {
		name  string
		owner bool   // change it, or the mode
		path  string // below the test's folder; the authority is in a/ca
		mode  os.FileMode
		want  string // in the error, or ""
	}{
		{name: "ours"},
		{"the key's owner", true, "a/ca/ca-key.pem", 0, "ca-key.pem belongs to"},
		{"the certificate's owner", true, "a/ca/ca.pem", 0, "ca.pem belongs to"},
		{"the folder's owner", true, "a/ca", 0, "/a/ca belongs to"},
		{"the owner of the folder above", true, "a", 0, "/a belongs to"},
		{"the key's mode", false, "a/ca/ca-key.pem", 0o640, "ca-key.pem has the mode 0640"},
		{"the certificate's mode", false, "a/ca/ca.pem", 0o666, "ca.pem has the mode 0666"},
		{"a certificate for all to read", false, "a/ca/ca.pem", 0o644, ""},
		{"a folder for all", false, "a/ca", 0o777, "/a/ca has the mode 0777"},
		{"a folder for all to read", false, "a/ca", 0o755, ""},
		{"a folder for all, with the sticky bit", false, "a/ca", os.ModeSticky | 0o777, "/a/ca has the mode 0777"},
		{"a folder above for all", false, "a", 0o777, "/a has the mode 0777"},
		{"a folder above for all, with the sticky bit", false, "a", os.ModeSticky | 0o777, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.owner && !root {
				t.Skip("only root can give a file away: run the test as root")
			}
			dir := t.TempDir()
			folder := filepath.Join(dir, "a/ca")
			open(t, folder, "")
			link := filepath.Join(dir, "link")
			if err := os.Symlink(folder, link); err != nil {
				t.Fatal(err)
			}
			if c.owner {
				if err := os.Chown(filepath.Join(dir, c.path), stranger, -1); err != nil {
					t.Fatal(err)
				}
			} else if c.path != "" {
				if err := os.Chmod(filepath.Join(dir, c.path), c.mode); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range []string{folder, link} {
				_, err := localca.Open(name, "")
				if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s: error %v, want %q", name, err, c.want)
				}
			}
		})
	}
}

// TestOwnerOfNew: no authority is made in a folder in which others can exchange it.
func TestOwnerOfNew(t *testing.T) {
	for _, c := range []struct {
		mode os.FileMode
		good bool
	}{{0o755, true}, {os.ModeSticky | 0o777, true}, {0o777, false}, {0o757, false}} {
		dir := filepath.Join(t.TempDir(), "shared")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, c.mode); err != nil {
			t.Fatal(err)
		}
		folder := filepath.Join(dir, "new/ca")
		_, err := localca.Open(folder, "")
		if (err == nil) != c.good {
			t.Errorf("%v: %v", c.mode, err)
		}
		if _, err := os.Stat(filepath.Dir(folder)); !c.good && err == nil {
			t.Errorf("%v: the folder has been made", c.mode)
		}
	}
}

// TestOwnerOfLeftKey: a key that is left of an earlier certificate isn't used if another user owns it.
func TestOwnerOfLeftKey(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away: run the test as root")
	}
	a, out := open(t, filepath.Join(t.TempDir(), "ca"), ""), t.TempDir()
	request := localca.Request{Names: []string{"a.test"}, Lifetime: day}
	issued, err := a.Issue(request, out)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(issued.CertificateFile); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(issued.KeyFile, 1234, -1); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Issue(request, out); err == nil || !strings.Contains(err.Error(), "a.test-key.pem belongs to") {
		t.Error(err)
	}
}
