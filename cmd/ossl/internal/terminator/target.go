package terminator

import (
	"errors"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strings"
	"time"
)

// A Backend is a server behind a Server, or several that do the same.
type Backend struct {
	// To is HOST:PORT, tcp://HOST:PORT, tls://HOST:PORT or unix:PATH for the bytes of connections,
	// or http://HOST:PORT, https://HOST:PORT or http+unix:PATH for HTTP requests.
	To string `toml:"-"`
	// Others are further servers that do the same, of the same kind as To. Each request, or TCP
	// connection, goes to one server.
	Others []string `toml:"-"`
	// Balance is "least", or "", for the server with the least requests or connections under way,
	// or "address" for the same server for all clients of an address.
	Balance string `toml:"balance"`
	// Check is the path of requests that each server must answer with a status of 2xx to get others,
	// or for TCP servers "connect". "" is for no checks.
	Check         string `toml:"check"`
	CheckInterval Time   `toml:"check-interval"` // between two checks, and for the answer; 0 for DefaultCheckInterval

	CA   string `toml:"to-ca"`   // the file of the authorities that may certify the backend, or "" for the system's
	Name string `toml:"to-name"` // the name in the backend's certificate, or "" for To's host
	Cert string `toml:"to-cert"` // for the backend, if it asks for a certificate
	Key  string `toml:"to-key"`
	// CRLs are the files of the revocation lists for the backend's certificate, and folders of such files.
	CRLs        []string `toml:"to-crl"`
	CRLSoftFail bool     `toml:"to-crl-soft-fail"` // backends pass for whose certificates no list counts

	SendProxy string `toml:"send-proxy"` // "v1" or "v2": each connection begins with a PROXY header; "" for none

	// ClientCert is whether requests of clients with a certificate have it in a header: RFC 9440.
	ClientCert bool `toml:"client-cert-header"`
	// UnderscoreHeaders is whether requests keep the headers whose names have underscores.
	UnderscoreHeaders bool `toml:"underscore-headers"`
}

// DefaultCheckInterval is the time between two checks of a server behind.
const DefaultCheckInterval = Time(5 * time.Second)

// empty reports whether there is no server behind, nor a setting for one.
func (b *Backend) empty() bool { return reflect.ValueOf(*b).IsZero() }

// SetTo sets To and Others to the elements of a list.
func (b *Backend) SetTo(list []string) {
	b.To, b.Others = "", nil
	if len(list) > 0 {
		b.To = list[0]
	}
	if len(list) > 1 {
		b.Others = list[1:]
	}
}

// all returns all servers.
func (b *Backend) all() []string { return append([]string{b.To}, b.Others...) }

// A backendPlan is the part of a plan that is about a site's backends.
type backendPlan struct {
	Backend
	targets []target // of To and Others
	engine  string
	fips    bool
	crls    crlPlan
	limits  *Limits
}

// compile checks the settings, and parses the servers.
func (b *Backend) compile(c *Config) (*backendPlan, error) {
	p := &backendPlan{Backend: *b, engine: c.Engine, fips: c.FIPS, limits: &c.Limits,
		crls: crlPlan{b.CRLs, b.CRLSoftFail, c.FIPS}}
	for _, to := range b.all() {
		t, err := parseTarget(to)
		if err != nil {
			return nil, err
		}
		p.targets = append(p.targets, t)
	}
	return p, p.check()
}

func (b *backendPlan) check() error {
	target := b.targets[0]
	if err := b.checkServers(target); err != nil {
		return err
	}
	if name := firstSet(setting{"to-ca", b.CA != ""}, setting{"to-name", b.Name != ""}, setting{"to-cert", b.Cert != ""},
		setting{"to-key", b.Key != ""}, setting{"to-crl", len(b.CRLs) > 0}); name != "" && !target.tls {
		return fmt.Errorf("%s is for backends with TLS: tls:// or https://", name)
	}
	if len(b.CRLs) > 0 && b.engine == "go" {
		return errors.New("to-crl: the engine go, crypto/tls, doesn't have it")
	}
	if err := b.crls.check("to-"); err != nil {
		return err
	}
	if (b.Cert == "") != (b.Key == "") {
		return errors.New("to-cert and to-key go together")
	}
	ofHTTP := firstSet(setting{"client-cert-header", b.ClientCert}, setting{"underscore-headers", b.UnderscoreHeaders})
	if ofHTTP != "" && !target.http {
		return fmt.Errorf("%s is for backends of HTTP", ofHTTP)
	}
	switch {
	case b.SendProxy == "":
	case b.SendProxy != "v1" && b.SendProxy != "v2":
		return fmt.Errorf("send-proxy %q is neither v1 nor v2", b.SendProxy)
	case target.http:
		return errors.New("send-proxy is for backends of TCP: clients of HTTP share connections to a backend, " +
			"which gets their addresses in X-Forwarded-For")
	}
	return nil
}

// checkServers checks the settings of several servers.
func (b *backendPlan) checkServers(first target) error {
	for i, t := range b.targets[1:] {
		if t.http != first.http || t.tls != first.tls {
			return fmt.Errorf("the backends %s and %s are of different kinds: they must all be of HTTP or all of TCP, "+
				"and all have TLS or none", first.text, t.text)
		}
		if slices.Contains(b.all()[:i+1], t.text) {
			return fmt.Errorf("the backend %s is given twice", t.text)
		}
	}
	switch {
	case b.Balance != "" && b.Balance != "least" && b.Balance != "address":
		return fmt.Errorf("balance %q is neither least nor address", b.Balance)
	case b.Balance != "" && len(b.Others) == 0:
		return errors.New("balance is for several backends")
	case b.CheckInterval != 0 && b.Check == "":
		return errors.New("check-interval needs check")
	case b.CheckInterval < 0 || b.CheckInterval > 0 && b.CheckInterval < Time(10*time.Millisecond):
		return fmt.Errorf("check-interval is %v, but must be at least 10ms", b.CheckInterval)
	case b.Check == "":
	case first.http && (!strings.HasPrefix(b.Check, "/") || strings.ContainsFunc(b.Check, notInPath)):
		return fmt.Errorf("check %q is not a path, such as /healthz", b.Check)
	case !first.http && b.Check != "connect":
		return fmt.Errorf("check %q: the only check of backends of TCP is connect", b.Check)
	}
	return nil
}

// notInPath reports whether a character has no place in the path of a request.
func notInPath(c rune) bool { return c <= ' ' || c > '~' || c == '#' }

// A target is a parsed Backend.To.
type target struct {
	text             string
	network, address string // as of package net
	http, tls        bool
	host             string // for the backend's certificate
}

func parseTarget(to string) (target, error) {
	bad := fmt.Errorf("%q is not a backend: give HOST:PORT, tls://HOST:PORT, unix:PATH, http://HOST:PORT, "+
		"https://HOST:PORT or http+unix:PATH", to)
	if path, ok := strings.CutPrefix(to, "unix:"); ok && path != "" {
		return target{text: to, network: "unix", address: path}, nil
	}
	if path, ok := strings.CutPrefix(to, "http+unix:"); ok && path != "" {
		return target{text: to, network: "unix", address: path, http: true}, nil
	}
	scheme, address, ok := strings.Cut(to, "://")
	if !ok {
		scheme, address = "tcp", to
	}
	t := target{text: to, network: "tcp"}
	port := ""
	switch scheme {
	case "tcp":
	case "tls":
		t.tls = true
	case "http":
		t.http, port = true, "80"
	case "https":
		t.http, t.tls, port = true, true, "443"
	default:
		return target{}, bad
	}
	address = strings.TrimSuffix(address, "/")
	if _, _, err := net.SplitHostPort(address); err != nil && port != "" {
		address = net.JoinHostPort(strings.Trim(address, "[]"), port)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" || port == "" || strings.ContainsAny(address, "/?#@ ") {
		return target{}, bad
	}
	t.address, t.host = address, host
	return t, nil
}
