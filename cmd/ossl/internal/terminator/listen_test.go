package terminator_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestStartFails: a server that can't start returns the reason, and leaves no port open.
func TestStartFails(t *testing.T) {
	w := newWorld(t)
	taken := listen(t)
	root := w.folder(nil)
	a, b := w.pair(false, "a.test"), w.pair(false, "b.test")
	w.write(filepath.Join(w.dir, "garbage"), "garbage")
	open := filepath.Join(w.dir, "open.key")
	w.write(open, strings.Repeat("k", 80))
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change func(*terminator.Config)
		want   string
	}{
		{"port taken", func(c *terminator.Config) { c.Listen = append(c.Listen, taken.Addr().String()) }, "address already in use"},
		{"admin's port taken", func(c *terminator.Config) { c.Admin = taken.Addr().String() }, "address already in use"},
		{"no folder", func(c *terminator.Config) { c.Sites[0].Root = "/nonexistent" }, "/nonexistent"},
		{"file as folder", func(c *terminator.Config) { c.Sites[0].Root = filepath.Join(w.dir, "garbage") }, "garbage"},
		{"mismatch", func(c *terminator.Config) {
			c.Sites[0].Pairs = []terminator.Pair{{Cert: a.Cert, Key: b.Key}}
		}, "private key does not match"},
		{"key missing", func(c *terminator.Config) { c.Sites[0].Pairs[0].Key = "/nonexistent" }, "/nonexistent"},
		{"key is garbage", func(c *terminator.Config) { c.Sites[0].Pairs[0].Key = filepath.Join(w.dir, "garbage") }, "garbage"},
		{"key by URI missing", func(c *terminator.Config) { c.Sites[0].Pairs[0].Key = "file:/nonexistent" }, "/nonexistent"},
		{"authority is garbage", func(c *terminator.Config) {
			c.Sites[0].ClientCA = []string{filepath.Join(w.dir, "garbage")}
		}, "no certificate in PEM"},
		{"ticket key missing", func(c *terminator.Config) { c.TicketKeys = []string{"/nonexistent"} }, "/nonexistent"},
		{"ticket key too short", func(c *terminator.Config) { c.TicketKeys = []string{filepath.Join(w.dir, "garbage")} }, "80"},
		{"ticket key readable", func(c *terminator.Config) { c.TicketKeys = []string{open} }, "0644"},
		{"secret readable", func(c *terminator.Config) { c.Redis, c.RedisSecret = "127.0.0.1:1", open }, "0644"},
		{"secret is garbage", func(c *terminator.Config) {
			c.Redis, c.RedisSecret = "127.0.0.1:1", filepath.Join(w.dir, "garbage")
		}, "64 hexadecimal"},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := w.config("ossl", terminator.Site{Root: root})
			c.change(config)
			if err := config.Check(); err != nil {
				t.Fatal(err)
			}
			log := slog.New(slog.DiscardHandler)
			s, err := terminator.Start(context.Background(), config, log, log)
			if err == nil {
				s.Drain(context.Background())
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// TestBothVersions: 0.0.0.0 and [::] are the addresses of one version of IP each, so a server can
// listen on both with the same port.
func TestBothVersions(t *testing.T) {
	probe, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6: ", err)
	}
	_, port, _ := net.SplitHostPort(probe.Addr().String())
	_ = probe.Close()
	w := newWorld(t)
	config := w.config("ossl", terminator.Site{Root: w.folder(map[string]string{"index.html": "x"})})
	config.Listen = []string{"0.0.0.0:" + port, "[::]:" + port}
	s := w.start(config)
	var got []string
	addresses, _ := s.Addrs()
	for _, a := range addresses {
		got = append(got, a.String())
	}
	if !slices.Equal(got, config.Listen) {
		t.Errorf("listens on %q, want %q", got, config.Listen)
	}
}

// TestUnixListener: a server listens on a Unix socket, replaces one that was left behind, but not one
// that is in use, nor another file.
func TestUnixListener(t *testing.T) {
	w := newWorld(t)
	path := filepath.Join(shortFolder(t), "s")
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	_ = stale.Close()
	config := w.config("ossl", terminator.Site{Root: w.folder(map[string]string{"index.html": "x"})})
	config.Listen = []string{"unix:" + path}
	w.start(config)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: w.roots},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}}}
	if status, body := get(t, client, "https://localhost/"); status != 200 || body != "x" {
		t.Errorf("%d %q", status, body)
	}
	file := filepath.Join(w.dir, "file")
	w.write(file, "text")
	for _, used := range []string{path, file} {
		config.Listen = []string{"unix:" + used}
		log := slog.New(slog.DiscardHandler)
		if s, err := terminator.Start(context.Background(), config, log, log); err == nil {
			s.Drain(context.Background())
			t.Errorf("%s was replaced", used)
		}
	}
}
