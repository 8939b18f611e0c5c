// Package confgen writes TLS configurations for servers: for the version of the server that is
// installed, and for the OpenSSL that it runs with, from a policy. Each directive comes with the reason
// for it, the document that asks for it, and the version that it needs. The parts of the policy that a
// server can't follow are listed too.
package confgen

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ossl-go/ossl/policy"
)

// Servers are the kinds of server that configurations can be written for.
var Servers = []string{"nginx", "apache", "haproxy", "lighttpd", "caddy", "postgresql", "go"}

// Options are the options of [Generate].
type Options struct {
	Server Server
	Policy *policy.Policy
	At     time.Time // values of the policy that expire before this day are left out; now if zero
	// NoAES reports whether the processor lacks instructions for AES: ChaCha20 comes first then.
	NoAES bool
	// OCSP reports whether the certificate names an OCSP responder. Without one nothing can be
	// stapled.
	OCSP   bool
	Layout Layout
}

// A Layout has the paths of the server's files, and the address that it listens on. The zero value
// stands for the places that are usual on Debian.
type Layout struct {
	Names        []string // the site's names; "example.com" if there are none
	Certificates []Certificate
	Address      string // to listen on; all addresses if empty
	Port         int    // 443 if 0, 5432 for PostgreSQL
	PlainPort    int    // of plain HTTP, which only redirects; 80 if 0, none if negative
	Root         string // the folder of the site's files
	Backend      string // host:port of the application behind HAProxy
	Snippet      bool   // only the site, as a file that nginx.conf of Debian includes
	// State is a folder for the pid file, logs and sockets. If it is set, the configuration is for
	// a server that a user starts from there, without root.
	State string
	// Modules is the folder of the server's loadable modules, if it isn't the usual one.
	Modules string
}

// A Certificate names the files of a certificate chain and its key. HAProxy reads both from Chain.
type Certificate struct{ Chain, Key string }

// A Directive is one line of a configuration that concerns TLS, or the speed of a site on TLS.
type Directive struct {
	Scope   string `json:"scope"` // "main", "site", or "listen" for words of the line that opens a port
	Name    string `json:"name"`
	Value   string `json:"value,omitempty"`
	Setting string `json:"setting"` // the part of the policy: "versions", "resumption.id"
	Reason  string `json:"reason"`
	Source  string `json:"source,omitempty"` // as in the policy
	Needs   string `json:"needs,omitempty"`  // the version that it needs: "nginx 1.19.4"
}

// An Unmet is a part of the policy that the server can't follow.
type Unmet struct {
	Setting string `json:"setting"`
	Reason  string `json:"reason"`
}

// A Config is a configuration.
type Config struct {
	Server     Server         `json:"server"`
	Policy     *policy.Policy `json:"-"`
	Directives []Directive    `json:"directives"`
	Unmet      []Unmet        `json:"unmet"`
	Notes      []string       `json:"notes"` // for the head of the file
	Layout     Layout         `json:"-"`

	// Set by [Read]: the first lines of the sites with TLS, and the parts that weren't read. The
	// first site is the one whose directives are in Directives.
	Sites  []Place  `json:"sites,omitempty"`
	Unread []Unread `json:"unread,omitempty"`
}

// Generate writes a configuration that follows a policy as far as the server can.
func Generate(o Options) (*Config, error) {
	if o.Policy == nil {
		return nil, errors.New("confgen: no policy")
	}
	if o.At.IsZero() {
		o.At = time.Now()
	}
	s := o.Server
	if !slices.Contains(Servers, s.Kind) {
		return nil, fmt.Errorf("confgen: unknown server %q; known are %s", s.Kind, strings.Join(Servers, ", "))
	}
	if s.Version == (Version{}) {
		return nil, fmt.Errorf("confgen: the version of %s is unknown", s.Kind)
	}
	if oldest := limits[s.Kind].oldest; s.Version.Before(oldest) {
		return nil, fmt.Errorf("confgen: %s %s is too old: this needs %s or newer", s.Kind, s.Version, oldest)
	}
	if usesOpenSSL(s.Kind) {
		if s.OpenSSL == (Version{}) {
			return nil, fmt.Errorf("confgen: the version of %s's OpenSSL is unknown", s.Kind)
		}
		if s.OpenSSL.Before(Version{1, 1, 1}) {
			return nil, fmt.Errorf("confgen: OpenSSL %s is too old: TLS 1.3 needs 1.1.1", s.OpenSSL)
		}
	}
	if o.Layout.Snippet && (s.Kind != "nginx" || o.Layout.State != "") {
		return nil, errors.New("confgen: only nginx has snippets, and they are no whole configuration")
	}
	g := &generator{Options: o, config: &Config{Server: s, Policy: o.Policy, Layout: o.Layout.withDefaults(s.Kind)}}
	g.head()
	switch s.Kind {
	case "nginx":
		g.nginx()
	case "apache":
		g.apache()
	case "haproxy":
		g.haproxy()
	case "lighttpd":
		g.lighttpd()
	case "caddy":
		g.caddy()
	case "postgresql":
		g.postgresql()
	case "go":
		g.golang()
	}
	if g.err != nil {
		return nil, g.err
	}
	return g.config, nil
}

// limits are the versions that the rules were made for.
var limits = map[string]struct{ oldest, newest Version }{
	"nginx":      {Version{1, 13, 0}, Version{1, 30, 6}},
	"apache":     {Version{2, 4, 37}, Version{2, 4, 71}},
	"haproxy":    {Version{2, 2, 0}, Version{3, 2, 26}},
	"lighttpd":   {Version{1, 4, 56}, Version{1, 4, 85}},
	"caddy":      {Version{2, 0, 0}, Version{2, 11, 4}},
	"postgresql": {Version{12, 0, 0}, Version{18, 99, 0}},
	"go":         {Version{1, 21, 0}, Version{1, 27, 99}},
}

// newestOpenSSL is the newest OpenSSL whose groups and suites are known here.
var newestOpenSSL = Version{4, 0, 99}

func usesOpenSSL(kind string) bool { return kind != "caddy" && kind != "go" }

// A generator writes one configuration.
type generator struct {
	Options
	config *Config
	err    error
}

func (g *generator) head() {
	s := g.Server
	if newest := limits[s.Kind].newest; newest.Before(s.Version) {
		g.note("%s %s is newer than the versions that this generator knows. It uses the rules for %s: check them.",
			s.Kind, s.Version, newest)
	}
	if usesOpenSSL(s.Kind) && newestOpenSSL.Before(s.OpenSSL) {
		g.note("OpenSSL %s is newer than the versions that this generator knows. It uses the rules for 4.0: check them.",
			s.OpenSSL)
	}
	if g.Policy.FIPS {
		g.remain("fips", "a configuration of the server doesn't choose the FIPS module: activate it in openssl.cnf")
	}
	if g.NoAES {
		g.note("This machine's processor has no instructions for AES, so ChaCha20 comes first.")
	}
}

func (g *generator) note(format string, args ...any) {
	g.config.Notes = append(g.config.Notes, fmt.Sprintf(format, args...))
}

func (g *generator) remain(setting, reason string) {
	g.config.Unmet = append(g.config.Unmet, Unmet{setting, reason})
}

func (g *generator) add(d Directive) { g.config.Directives = append(g.config.Directives, d) }

// at reports whether the server has at least this version.
func (g *generator) at(major, minor, patch int) bool {
	return !g.Server.Version.Before(Version{major, minor, patch})
}

// versions returns the policy's TLS versions that are still allowed, 1.2 before 1.3.
func (g *generator) versions() (tls12, tls13 bool, source string) {
	for _, v := range current(g.Policy.Versions, g.At) {
		switch v.Name {
		case "TLS 1.2":
			tls12 = true
		case "TLS 1.3":
			tls13 = true
		default:
			g.remain("versions", v.Name+" is not configured: no current OpenSSL and no current client needs it")
		}
		if source == "" {
			source = v.Source
		}
	}
	if !tls12 && !tls13 && g.err == nil {
		g.err = fmt.Errorf("confgen: the policy %s allows neither TLS 1.2 nor TLS 1.3", g.Policy.Name)
	}
	return tls12, tls13, source
}

// current returns the values that a new configuration should have. It leaves out values that
// the policy phases out, that have expired, or that need encrypt-then-MAC, since OpenSSL can't refuse
// clients without it.
func current(values []policy.Value, at time.Time) []policy.Value {
	var out []policy.Value
	for _, v := range values {
		if v.Level != policy.PhaseOut && !v.Until.Passed(at) && v.Needs == "" {
			out = append(out, v)
		}
	}
	return out
}

// sources returns the different sources of values.
func sources(values []policy.Value) string {
	var all []string
	for _, v := range values {
		if v.Source != "" && !slices.Contains(all, v.Source) {
			all = append(all, v.Source)
		}
	}
	return strings.Join(all, "; ")
}

func (l Layout) withDefaults(kind string) Layout {
	l.Names = slices.Clone(l.Names)
	if len(l.Names) == 0 {
		l.Names = []string{"example.com"}
	}
	if l.Port == 0 {
		l.Port = 443
		if kind == "postgresql" {
			l.Port = 5432
		}
	}
	if l.PlainPort == 0 {
		l.PlainPort = 80
	}
	if len(l.Certificates) == 0 {
		name := l.Names[0]
		l.Certificates = []Certificate{{"/etc/ssl/certs/" + name + ".pem", "/etc/ssl/private/" + name + ".key"}}
		if kind == "haproxy" {
			l.Certificates = []Certificate{{"/etc/haproxy/certs/" + name + ".pem", ""}}
		}
	}
	if l.Root == "" {
		l.Root = "/var/www/html"
	}
	if l.Backend == "" {
		l.Backend = "127.0.0.1:8080"
	}
	return l
}
