package main

import (
	"bytes"
	"io"
	stdlog "log"
	"log/slog"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestServerFlags: each flag arrives in the configuration.
func TestServerFlags(t *testing.T) {
	limits := terminator.DefaultLimits()
	base := terminator.Config{Listen: []string{"127.0.0.1:8443"}, Engine: "ossl", Policy: terminator.DefaultPolicy, Limits: limits,
		Landlock: "auto"}
	const proxied = "--to http://h"
	type config = terminator.Config
	for _, c := range []struct {
		args string
		want func(*config, *terminator.Site)
	}{
		{"", func(*config, *terminator.Site) {}},
		{"--listen :1 --listen unix:/s", func(c *config, _ *terminator.Site) { c.Listen = []string{":1", "unix:/s"} }},
		{"--admin :2", func(c *config, _ *terminator.Site) { c.Admin = ":2" }},
		{"--user nobody", func(c *config, _ *terminator.Site) { c.User = "nobody" }},
		{"--engine go", func(c *config, _ *terminator.Site) { c.Engine, c.Policy = "go", "" }},
		{"--policy bsi", func(c *config, _ *terminator.Site) { c.Policy = "bsi" }},
		{"--policy none", func(c *config, _ *terminator.Site) { c.Policy = "" }},
		{"--fips", func(c *config, _ *terminator.Site) { c.FIPS, c.Policy = true, "" }},
		{"--fips --policy fips", func(c *config, _ *terminator.Site) { c.FIPS, c.Policy = true, "fips" }},
		{"--kernel-tls", func(c *config, _ *terminator.Site) { c.KernelTLS = true }},
		{"--http1", func(c *config, _ *terminator.Site) { c.HTTP1 = true }},
		{"--sessions 3", func(c *config, _ *terminator.Site) { c.Sessions = 3 }},
		{"--ticket-key a --ticket-key b", func(c *config, _ *terminator.Site) { c.TicketKeys = []string{"a", "b"} }},
		{"--redis h:1 --redis-secret f", func(c *config, _ *terminator.Site) { c.Redis, c.RedisSecret = "h:1", "f" }},
		{"--redis rediss://h:1 --redis-secret f --redis-user u --redis-password-file p --redis-ca a --redis-name n --redis-cert c " +
			"--redis-key k", func(c *config, _ *terminator.Site) {
			c.Redis, c.RedisSecret, c.RedisUser, c.RedisPassword = "rediss://h:1", "f", "u", "p"
			c.RedisCA, c.RedisName, c.RedisCert, c.RedisKey = "a", "n", "c", "k"
		}},
		{"--accept-proxy 10.0.0.0/8 --accept-proxy unix",
			func(c *config, _ *terminator.Site) { c.AcceptProxy = []string{"10.0.0.0/8", "unix"} }},
		{"--access-log", func(c *config, _ *terminator.Site) { c.AccessLog = true }},
		{"--landlock off", func(c *config, _ *terminator.Site) { c.Landlock = "off" }},
		{"--landlock-read /a --landlock-read /b", func(c *config, _ *terminator.Site) { c.LandlockRead = []string{"/a", "/b"} }},
		{"--connections 1", func(c *config, _ *terminator.Site) { c.Limits.Connections = 1 }},
		{"--per-address 2", func(c *config, _ *terminator.Site) { c.Limits.PerAddress = 2 }},
		{"--rate 3.5", func(c *config, _ *terminator.Site) { c.Limits.Rate = 3.5 }},
		{"--address-rate 0", func(c *config, _ *terminator.Site) { c.Limits.RatePerSource = 0 }},
		{"--header-bytes 4096", func(c *config, _ *terminator.Site) { c.Limits.HeaderBytes = 4096 }},
		{"--streams 5", func(c *config, _ *terminator.Site) { c.Limits.Streams = 5 }},
		{"--backend-conns 6", func(c *config, _ *terminator.Site) { c.Limits.BackendConns = 6 }},
		{"--header-timeout 7s", func(c *config, _ *terminator.Site) { c.Limits.Header = terminator.Time(7 * time.Second) }},
		{"--idle-timeout 8m", func(c *config, _ *terminator.Site) { c.Limits.Idle = terminator.Time(8 * time.Minute) }},
		{"--backend-timeout 9s", func(c *config, _ *terminator.Site) { c.Limits.Backend = terminator.Time(9 * time.Second) }},
		{"--drain-timeout 1h", func(c *config, _ *terminator.Site) { c.Limits.Drain = terminator.Time(time.Hour) }},
		{"--cert d --key e", func(_ *config, s *terminator.Site) { s.Pairs = append(s.Pairs, terminator.Pair{Cert: "d", Key: "e"}) }},
		{"--client-ca x --client-ca y --client-optional",
			func(_ *config, s *terminator.Site) { s.ClientCA, s.ClientOptional = []string{"x", "y"}, true }},
		{"--client-ca x --crl y --crl z --crl-soft-fail", func(c *config, s *terminator.Site) {
			s.ClientCA, c.CRLs, c.CRLSoftFail = []string{"x"}, []string{"y", "z"}, true
		}},
		{"--to https://h --to-crl x --to-crl y --to-crl-soft-fail", func(_ *config, s *terminator.Site) {
			s.Backend = terminator.Backend{To: "https://h", CRLs: []string{"x", "y"}, CRLSoftFail: true}
		}},
		{"--to https://h --to-ca x --to-name n --to-cert c --to-key k", func(_ *config, s *terminator.Site) {
			s.Backend = terminator.Backend{To: "https://h", CA: "x", Name: "n", Cert: "c", Key: "k"}
		}},
		{"--to h:1 --to h:2 --balance address --check connect --check-interval 2s", func(_ *config, s *terminator.Site) {
			s.Backend = terminator.Backend{To: "h:1", Others: []string{"h:2"}, Balance: "address", Check: "connect",
				CheckInterval: terminator.Time(2 * time.Second)}
		}},
		{"--acme a.test --acme b.test --acme-directory https://h/d --acme-agree --acme-email a@h --acme-storage s --acme-roots r " +
			"--acme-eab-id i --acme-eab-key k", func(c *config, s *terminator.Site) {
			s.Pairs, s.ACME, s.Names = nil, true, []string{"a.test", "b.test"}
			c.ACME = terminator.ACME{Directory: "https://h/d", Agree: true, Email: "a@h", Storage: "s", Roots: "r",
				EABID: "i", EABKey: "k"}
		}},
		{"--to h:1 --send-proxy v2", func(_ *config, s *terminator.Site) {
			s.Backend = terminator.Backend{To: "h:1", SendProxy: "v2"}
		}},
	} {
		t.Run(c.args, func(t *testing.T) {
			want, site := base, terminator.Site{Pairs: []terminator.Pair{{Cert: "c", Key: "k"}}}
			site.Backend.To = "http://h"
			c.want(&want, &site)
			want.Sites = []terminator.Site{site}
			f := &serverFlags{config: terminator.Config{Limits: terminator.DefaultLimits()}}
			cmd := proxyCommandOf(f)
			args := c.args
			if !strings.Contains(args, "--acme ") {
				args = "--cert c --key k " + args
			}
			if !strings.Contains(args, "--to ") {
				args += " " + proxied
			}
			if err := cmd.ParseFlags(strings.Fields(args)); err != nil {
				t.Fatal(err)
			}
			got, err := f.read(cmd)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(normal(*got), normal(want)) {
				t.Errorf("got  %+v\nwant %+v", *got, want)
			}
		})
	}
}

// normal returns a configuration in which lists without elements are nil.
func normal(c terminator.Config) terminator.Config {
	for _, list := range []*[]string{&c.TicketKeys, &c.AcceptProxy, &c.LandlockRead, &c.Sites[0].ClientCA, &c.CRLs,
		&c.Sites[0].Backend.CRLs} {
		if len(*list) == 0 {
			*list = nil
		}
	}
	return c
}

// TestLogWithoutData: the log has no data that a backend sends without a request, though net/http quotes
// it.
func TestLogWithoutData(t *testing.T) {
	var out bytes.Buffer
	writer := withoutData{slog.NewLogLogger(slog.NewTextHandler(&out, nil), slog.LevelWarn).Writer()}
	log := stdlog.New(writer, "", 0)
	log.Printf("Unsolicited response received on idle HTTP channel starting with %q; err=%v", "secret", io.EOF)
	log.Print("another line")
	want := regexp.MustCompile(`^time=\S+ level=WARN msg="Unsolicited response received on idle HTTP channel"
time=\S+ level=WARN msg="another line"
$`)
	if !want.MatchString(out.String()) {
		t.Errorf("the log is %q", out.String())
	}
}
