package terminator_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestCovers: the changes of a configuration that a confined process can serve, and those that it
// refuses by name.
func TestCovers(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"a/cert", "a/key", "a/sub/cert", "b/cert", "b/key", "live/x", "archive/1", "archive/2", "www/1/x",
		"www/2/x", "more/site/x", "run/x", "aa/cert", "b/lists/x"} {
		if err := os.MkdirAll(filepath.Dir(path(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := func(to, name string) {
		t.Helper()
		_ = os.Remove(path(name))
		if err := os.Symlink(to, path(name)); err != nil {
			t.Fatal(err)
		}
	}
	config := func(change func(*terminator.Config, *terminator.Site)) *terminator.Config {
		c := &terminator.Config{Listen: []string{"127.0.0.1:443", "unix:" + path("run/s"), "systemd"}, Landlock: "on",
			LandlockRead: []string{path("more")}, Sites: []terminator.Site{{Root: path("www/current"),
				Pairs: []terminator.Pair{{Cert: path("a/cert"), Key: path("live/key")}}}}}
		if change != nil {
			change(c, &c.Sites[0])
		}
		return c
	}
	pair := func(cert, key string) func(*terminator.Config, *terminator.Site) {
		return func(_ *terminator.Config, s *terminator.Site) { s.Pairs[0] = terminator.Pair{Cert: cert, Key: key} }
	}
	to := func(to string) func(*terminator.Config, *terminator.Site) {
		return func(_ *terminator.Config, s *terminator.Site) { s.Root, s.Backend.To = "", to }
	}
	acme := func(storage string) func(*terminator.Config, *terminator.Site) {
		return func(c *terminator.Config, s *terminator.Site) {
			s.Pairs, s.ACME, s.Names = nil, true, []string{"a.test"}
			c.ACME = terminator.ACME{Directory: nowhere, Storage: path(storage)}
		}
	}
	for _, c := range []struct {
		name   string
		first  func(*terminator.Config, *terminator.Site)
		change func(*terminator.Config, *terminator.Site)
		want   string // in the error
	}{
		{"the same", nil, nil, ""},
		{"a folder below", nil, pair(path("a/sub/cert"), path("live/key")), ""},
		{"a renewed link", nil, func(*terminator.Config, *terminator.Site) { link("../archive/2", "live/key") }, ""},
		{"a site's link that is switched", nil, func(*terminator.Config, *terminator.Site) { link("2", "www/current") }, ""},
		{"a folder for later", nil, func(_ *terminator.Config, s *terminator.Site) { s.Root = path("more/site") }, ""},
		{"a port less", nil, func(c *terminator.Config, _ *terminator.Site) { c.Listen = c.Listen[:1] }, ""},
		{"another backend", to("tls://127.0.0.1:1"), to("http://h:2"), ""},
		{"a port more", nil, func(c *terminator.Config, _ *terminator.Site) { c.Admin = ":444" }, ""},
		{"a Unix backend", to("h:1"), to("unix:/run/x"), ""},
		{"a file URI", nil, pair(path("a/cert"), "file:"+path("a/key")), ""},

		{"a folder beside", nil, pair(path("aa/cert"), path("live/key")), path("aa")},
		{"a file URI beside", nil, pair(path("a/cert"), "file://"+path("b/key")), path("b")},
		{"an authority", nil, func(_ *terminator.Config, s *terminator.Site) { s.ClientCA = []string{path("b/cert")} }, path("b")},
		{"a revocation list", nil, func(c *terminator.Config, _ *terminator.Site) { c.CRLs = []string{path("b/cert")} }, path("b")},
		{"a folder of lists", nil, func(c *terminator.Config, _ *terminator.Site) { c.CRLs = []string{path("b")} }, path("b")},
		{"another list", func(c *terminator.Config, _ *terminator.Site) { c.CRLs = []string{path("b/lists")} },
			func(c *terminator.Config, _ *terminator.Site) { c.CRLs = []string{path("b/cert")} }, path("b")},
		{"a ticket key", nil, func(c *terminator.Config, _ *terminator.Site) { c.TicketKeys = []string{path("b/key")} }, path("b")},
		{"a site", nil, func(_ *terminator.Config, s *terminator.Site) { s.Root = "/" }, "may not read /"},
		{"a missing file", nil, pair(path("none"), path("live/key")), "no such file"},
		{"a socket", nil, func(c *terminator.Config, _ *terminator.Site) { c.Admin = "unix:" + path("a/s") },
			"make sockets in " + path("a")},
		{"a backend", nil, to("https://127.0.0.1"), "connect to backends"},
		{"a store", nil, func(c *terminator.Config, _ *terminator.Site) { c.Redis = "127.0.0.1:6379" }, "to backends, Redis or"},
		{"another name with ACME", acme("acme"), func(c *terminator.Config, s *terminator.Site) {
			acme("acme")(c, s)
			s.Names = []string{"b.test"}
		}, ""},
		{"ACME", nil, acme("acme"), "may not write in " + path("acme")},
		{"another storage", acme("acme"), acme("acme2"), "may not write in " + path("acme2")},
		{"ACME beside backends", to("h:1"), acme("www/acme"), "may not write in " + path("www/acme")},
		{"a provider", nil, pair(path("a/cert"), "pkcs11:pin-value=1"), "keys of scheme pkcs11 need"},
		{"off", nil, func(c *terminator.Config, _ *terminator.Site) { c.Landlock = "off" }, "landlock can't be turned off"},
	} {
		t.Run(c.name, func(t *testing.T) {
			link("../archive/1", "live/key")
			link("1", "www/current")
			changed := false
			err := terminator.CoversAfter(config(c.first), func() *terminator.Config {
				changed = true
				return config(c.change)
			})
			if !changed {
				t.Fatal(err)
			}
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}
