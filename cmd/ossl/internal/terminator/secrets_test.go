//go:build unix

package terminator_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestSecretsInRoot: a configuration whose site has a secret below its folder, by whatever path, is
// refused at the start and at a reload.
func TestSecretsInRoot(t *testing.T) {
	w := newWorld(t)
	root := w.folder(map[string]string{"index.html": "x", "sub/secret": strings.Repeat("k", 80), ".hidden/secret": "y"})
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(root, link); err != nil {
		t.Fatal(err)
	}
	pair := w.pair(false, "localhost")
	inside := w.folder(nil)
	for _, name := range []string{pair.Cert, pair.Key} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		w.write(filepath.Join(inside, filepath.Base(name)), string(text))
	}
	key := filepath.Join(inside, filepath.Base(pair.Key))
	good := func() *terminator.Config { return w.config("ossl", terminator.Site{Root: root}) }
	r := w.start(good())
	log := slog.New(slog.DiscardHandler)
	for _, c := range []struct {
		name   string
		change func(*terminator.Config, *terminator.Site)
	}{
		{"a key", func(_ *terminator.Config, s *terminator.Site) { s.Root, s.Pairs[0].Key = inside, key }},
		{"a key by URI", func(_ *terminator.Config, s *terminator.Site) { s.Root, s.Pairs[0].Key = inside, "file:"+key }},
		{"a folder above", func(_ *terminator.Config, s *terminator.Site) { s.Root, s.Pairs[0].Key = filepath.Dir(inside), key }},
		{"a ticket key", func(c *terminator.Config, _ *terminator.Site) { c.TicketKeys = []string{root + "/sub/secret"} }},
		{"by a link to the folder", func(c *terminator.Config, s *terminator.Site) {
			s.Root, c.TicketKeys = link, []string{root + "/sub/secret"}
		}},
		{"by a link to the folder of the file", func(c *terminator.Config, _ *terminator.Site) {
			c.TicketKeys = []string{link + "/sub/secret"}
		}},
		{"in a folder that isn't served", func(c *terminator.Config, _ *terminator.Site) {
			c.TicketKeys = []string{root + "/.hidden/secret"}
		}},
		{"Redis's secret", func(c *terminator.Config, _ *terminator.Site) {
			c.Redis, c.RedisSecret = "127.0.0.1:1", root+"/sub/secret"
		}},
		{"the configuration", func(c *terminator.Config, _ *terminator.Site) { c.File = root + "/index.html" }},
		{"the key of another site", func(c *terminator.Config, s *terminator.Site) {
			other := terminator.Site{Names: []string{"b.test"}, Root: inside, Pairs: s.Pairs}
			s.Names, s.Pairs = []string{"a.test"}, []terminator.Pair{{Cert: pair.Cert, Key: key}}
			c.Sites = append(c.Sites, other)
		}},
		{"the log of keys, which doesn't exist yet", func(*terminator.Config, *terminator.Site) {
			t.Setenv("OSSL_KEYLOG", root+"/new")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := good()
			c.change(config, &config.Sites[0])
			t.Cleanup(func() { _ = os.Unsetenv("OSSL_KEYLOG") })
			const want = "a secret of this server, which every client could read"
			if s, err := terminator.Start(context.Background(), config, log, log); err == nil {
				s.Drain(context.Background())
				t.Error("the server starts")
			} else if !strings.Contains(err.Error(), want) {
				t.Error(err)
			}
			if err := r.Reload(context.Background(), config); err == nil {
				t.Error("the server takes it at a reload")
			}
		})
	}
}

// TestSecretLinks: a secret that is in a site's folder under another name isn't served, also if the link
// comes later or the secret is renewed.
func TestSecretLinks(t *testing.T) {
	w := newWorld(t)
	site := terminator.Site{Root: w.folder(map[string]string{"index.html": "x", "sub/x": "x"}), List: true}
	config := w.config("ossl", site)
	key := config.Sites[0].Pairs[0].Key
	link := func(name string) {
		t.Helper()
		if err := os.Link(key, filepath.Join(site.Root, name)); err != nil {
			t.Skipf("this file system has no hard links: %v", err)
		}
	}
	link("before.pem")
	r := w.start(config)
	link("after.pem")
	link("sub/index.html")
	client := r.client(false, nil)
	for _, path := range []string{"/before.pem", "/after.pem", "/sub/", "/sub/index.html"} {
		if _, body := get(t, client, "https://localhost"+path); strings.Contains(body, "PRIVATE KEY") {
			t.Errorf("%s is served", path)
		}
	}
	if status, body := get(t, client, "https://localhost/"); status != 200 || body != "x" {
		t.Errorf("%d %q", status, body)
	}
}

// TestSecretSettings: each setting that is named like a secret is in the list of secrets.
func TestSecretSettings(t *testing.T) {
	secret := regexp.MustCompile("(Key|Keys|Secret|Password|Token)(File|Files)?$")
	config := terminator.Config{Sites: []terminator.Site{{Pairs: []terminator.Pair{{}}}}}
	var set []string
	var fill func(reflect.Value)
	fill = func(v reflect.Value) {
		for i := range v.NumField() {
			field, name := v.Field(i), v.Type().Field(i).Name
			text := "/secrets/" + v.Type().Name() + "." + name
			switch {
			case !field.CanSet():
			case field.Kind() == reflect.Struct:
				fill(field)
			case field.Kind() == reflect.Slice && field.Len() > 0 && field.Index(0).Kind() == reflect.Struct:
				fill(field.Index(0))
			case !secret.MatchString(name):
			case field.Kind() == reflect.String:
				field.SetString(text)
				set = append(set, text)
			case field.Type() == reflect.TypeFor[[]string]():
				field.Set(reflect.ValueOf([]string{text}))
				set = append(set, text)
			}
		}
	}
	fill(reflect.ValueOf(&config).Elem())
	names := config.SecretNames()
	if len(set) < 4 {
		t.Errorf("the settings are %q", set)
	}
	for _, name := range set {
		if !slices.Contains(names, name) {
			t.Errorf("%s is no secret", name)
		}
	}
}
