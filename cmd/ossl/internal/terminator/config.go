package terminator

import (
	"errors"
	"fmt"
	"mime"
	"net"
	"net/netip"
	"slices"
	"strings"
	"unicode"

	"github.com/mholt/acmez/v3"

	"golang.org/x/net/http/httpguts"

	"github.com/ossl-go/ossl/policy"
)

// A Config has the addresses, the sites and the limits of a Server.
type Config struct {
	Listen []string `toml:"listen"` // HOST:PORT, unix:PATH, or "systemd" for the sockets that the process was started with
	// Plain is whether clients have no TLS, and the backend has: as stunnel's client mode.
	Plain bool `toml:"plain"`
	// InsecureListen is whether a server without TLS for its clients may listen where other machines reach it.
	InsecureListen bool   `toml:"insecure-listen"`
	Admin          string `toml:"admin"` // the address of the administrator's requests, or ""
	// Redirect are the addresses at which plain HTTP is redirected to HTTPS, at RedirectPort or, if that is
	// 0, at the port of Listen.
	Redirect     []string `toml:"redirect"`
	RedirectPort int      `toml:"redirect-port"`
	User         string   `toml:"user"` // the user that the process becomes when it listens and has read its keys, or ""
	Sites        []Site   `toml:"-"`

	Engine     string   `toml:"engine"` // "ossl" or "go"
	Policy     string   `toml:"policy"` // the name of a policy of package policy, or "" for the library's defaults
	KernelTLS  bool     `toml:"kernel-tls"`
	FIPS       bool     `toml:"fips"`
	HTTP1      bool     `toml:"http1"` // HTTP/2 is off
	TicketKeys []string `toml:"ticket-keys"`
	Sessions   int      `toml:"sessions"` // in the cache of sessions; 0 for none
	Store               // of sessions and ticket keys

	// CRLs are the files of the revocation lists for the certificates of clients, and folders of such files.
	CRLs        []string `toml:"crl"`
	CRLSoftFail bool     `toml:"crl-soft-fail"` // clients pass for whose certificates no list counts

	ACME // for the sites with ACME

	// AcceptProxy are the senders of PROXY headers: prefixes of addresses, or "unix" for Unix sockets.
	// Their connections must begin with one, and no others are accepted. None means no headers.
	AcceptProxy []string `toml:"accept-proxy"`

	AccessLog bool `toml:"access-log"` // a line for each request or TCP connection
	// LeaveConnections is whether connections stay with the former process at a restart.
	LeaveConnections bool   `toml:"leave-connections"`
	Limits           Limits `toml:"limits"`

	// Landlock decides whether the process gives up all access that it doesn't need: "on"; "auto" for
	// on if the kernel can; "off" or "".
	Landlock     string   `toml:"landlock"`
	LandlockRead []string `toml:"landlock-read"` // further folders that the process may read
	File         string   `toml:"-"`             // that the Config was read from, or ""
	text         []byte   // of File
}

// A Site is served under some names.
type Site struct {
	// Names are DNS names, which may begin with "*.", or "*" for all names, and clients without one. A
	// single site needs none.
	Names []string `toml:"names"`
	Pairs []Pair   `toml:"-"`    // certificates and their keys; several for several kinds of keys
	ACME  bool     `toml:"acme"` // the certificate is one by ACME instead, for all names

	Root string `toml:"root"` // the folder of the files to serve, or ""
	List bool   `toml:"list"` // folders without index.html are listed
	// DefaultType is the media type of files whose names tell none, or "" for application/octet-stream.
	DefaultType string `toml:"default-type"`
	// Precompressed is whether NAME.br, NAME.zst or NAME.gz is sent in the place of NAME.
	Precompressed bool `toml:"precompressed"`

	Headers       []string `toml:"header"`        // "Name: value", for all responses
	RemoveHeaders []string `toml:"remove-header"` // names

	Backend // if Root is ""

	// ALPN are the application protocols of a TCP site, the most preferred first; none means that ALPN
	// is ignored.
	ALPN []string `toml:"alpn"`

	ClientCA       []string `toml:"client-ca"`       // files of the authorities of clients; none if clients need no certificate
	ClientOptional bool     `toml:"client-optional"` // clients may come without a certificate
	// ClientAllow are the rules of which the certificates of clients must fit one; none means all that the
	// authorities have certified. A rule is dns:NAME, uri:URI, email:ADDRESS, cn:NAME, ou:NAME or
	// sha256:FINGERPRINT.
	ClientAllow []string `toml:"client-allow"`
}

// A Pair is a certificate, with its chain, and its key.
type Pair struct {
	Cert string `toml:"cert"`
	Key  string `toml:"key"` // a file, or a URI as of package keys
	// Password is the file of the password under which the key is encrypted, or of a token's PIN; or "".
	Password string `toml:"key-password-file"`
}

// Check returns an error that names the first setting that is wrong, or contradicts another one.
func (c *Config) Check() error {
	_, err := c.compile()
	return err
}

// A setting has the name by which errors call it.
type setting struct {
	name string
	set  bool
}

// firstSet returns the name of the first setting that is set, or "".
func firstSet(settings ...setting) string {
	for _, s := range settings {
		if s.set {
			return s.name
		}
	}
	return ""
}

// compileTLS checks the TLS settings, and refuses those that the engine can't honour.
func (c *Config) compileTLS() (p tlsPlan, err error) {
	p = tlsPlan{plain: c.Plain, engine: c.Engine, policy: policyPlan{name: c.Policy}, kernelTLS: c.KernelTLS, fips: c.FIPS,
		http1: c.HTTP1, sessions: c.Sessions, ticketKeys: c.TicketKeys, handshakes: c.Limits.handshakes(), resumption: c.resumption(),
		crls: crlPlan{c.CRLs, c.CRLSoftFail, c.FIPS}}
	switch c.Engine {
	case "ossl":
	case "go":
		if name := firstSet(setting{"policy", c.Policy != ""}, setting{"kernel-tls", c.KernelTLS}, setting{"fips", c.FIPS},
			setting{"ticket-key", len(c.TicketKeys) > 0}, setting{"sessions", c.Sessions > 0}, setting{"redis", c.Redis != ""},
			setting{"handshakes", c.Limits.Handshakes > 0}, setting{"crl", len(c.CRLs) > 0}); name != "" {
			return p, fmt.Errorf("%s: the engine go, crypto/tls, doesn't have it", name)
		}
	default:
		return p, fmt.Errorf("engine %q is neither ossl nor go", c.Engine)
	}
	if c.Policy != "" {
		if p.policy.Policy, err = policy.Get(c.Policy); err != nil {
			return p, err
		}
	}
	if c.Sessions < 0 {
		return p, fmt.Errorf("sessions is %d, but must not be negative", c.Sessions)
	}
	if p.store, err = c.Store.compile(c.FIPS); err != nil {
		return p, err
	}
	if c.Redis != "" && (len(c.TicketKeys) > 0 || c.Sessions > 0) {
		return p, errors.New("redis keeps the sessions and the ticket keys: neither sessions nor ticket-key can be given with it")
	}
	if err := p.crls.check(""); err != nil {
		return p, err
	}
	if c.KernelTLS && c.FIPS {
		return p, errors.New("kernel-tls and fips contradict each other: the kernel's cryptography is not part of the FIPS module")
	}
	return p, nil
}

// A sitePlan is the part of a plan that is about a site.
type sitePlan struct {
	Site
	number   int  // from 1 on, or 0 if it is the only one
	http     bool // it answers HTTP requests, not connections
	header   *headerEdit
	allow    []allowRule
	backends *backendPlan // nil for folders
}

// compileSites checks the sites, and parses their settings.
func (c *Config) compileSites() (sites []*sitePlan, err error) {
	if len(c.Sites) == 0 {
		return nil, errors.New("no site")
	}
	seen := map[string]bool{}
	for i := range c.Sites {
		s := &sitePlan{Site: c.Sites[i]}
		if len(c.Sites) > 1 {
			s.number = i + 1
		}
		sites = append(sites, s)
		err := s.compile(c)
		for _, name := range s.Names {
			if err == nil && seen[name] {
				err = fmt.Errorf("the name %q belongs to another site too", name)
			}
			seen[name] = true
		}
		if err == nil && s.http != sites[0].http {
			err = errors.New("sites of HTTP and of TCP can't be mixed")
		}
		if err != nil {
			return nil, s.fault(err)
		}
	}
	switch s := sites[0]; {
	case c.Plain && (s.http || !s.backends.targets[0].tls):
		return nil, errors.New("plain needs a backend of TCP with TLS: tls://HOST:PORT")
	case c.HTTP1 && !s.http:
		return nil, errors.New("http1 is for sites of HTTP")
	case len(c.Redirect) > 0 && !s.http:
		return nil, errors.New("redirect is for sites of HTTP")
	case len(c.CRLs) > 0 && !slices.ContainsFunc(sites, func(s *sitePlan) bool { return len(s.ClientCA) > 0 }):
		return nil, errors.New("crl needs client-ca: no certificates of clients are verified")
	}
	return sites, nil
}

// fault returns an error about a site, which it names if there are several.
func (s *sitePlan) fault(err error) error {
	if s.number == 0 {
		return err
	}
	return fmt.Errorf("site %d (%s): %w", s.number, strings.Join(s.Names, ", "), err)
}

// name returns the first name of a site.
func (s *Site) name() string {
	if len(s.Names) == 0 {
		return "*"
	}
	return s.Names[0]
}

// compile checks the settings of a site of c, and parses them.
func (s *sitePlan) compile(c *Config) (err error) {
	if s.number > 0 && len(s.Names) == 0 {
		return errors.New(`no names; "*" stands for all others`)
	}
	for i, name := range s.Names {
		host := strings.TrimPrefix(name, "*.")
		if name != "*" && (host == "" || strings.ContainsAny(host, "*:/ ") || strings.HasSuffix(host, ".")) {
			return fmt.Errorf("%q is not a DNS name", name)
		}
		if _, err := netip.ParseAddr(host); err == nil {
			return fmt.Errorf("%q is an address, which clients don't send as a name: \"*\" is for them", name)
		}
		if strings.ContainsFunc(host, func(r rune) bool { return r > unicode.MaxASCII }) {
			return fmt.Errorf("%q is not in ASCII: write it as in DNS, with xn--", name)
		}
		if lower := strings.ToLower(name); slices.Contains(s.Names[:i], lower) {
			return fmt.Errorf("the name %q is given twice", name)
		} else {
			s.Names[i] = lower
		}
	}
	if err := s.checkACME(); err != nil {
		return err
	}
	if len(s.Pairs) == 0 && !s.ACME && !c.Plain {
		return errors.New("no certificate")
	}
	for _, p := range s.Pairs {
		if p.Cert == "" || p.Key == "" {
			return errors.New("a certificate and its key go together")
		}
	}
	if s.ClientOptional && len(s.ClientCA) == 0 {
		return errors.New("client-optional needs client-ca")
	}
	if len(s.ClientAllow) > 0 && len(s.ClientCA) == 0 {
		return errors.New("client-allow needs client-ca")
	}
	if s.allow, err = parseAllow(s.ClientAllow); err != nil {
		return err
	}
	if err := s.compileContents(c); err != nil {
		return err
	}
	if err := s.checkALPN(); err != nil {
		return err
	}
	if s.header, err = parseHeaderEdit(s.Headers, s.RemoveHeaders); err == nil && s.header != nil && !s.http {
		err = errors.New("header and remove-header are for sites of HTTP")
	}
	return err
}

// compileContents checks and parses the settings of the folder or of the backends.
func (s *sitePlan) compileContents(c *Config) (err error) {
	if s.Root != "" {
		if !s.Backend.empty() {
			return errors.New("a site has either a folder (root) or a backend (to)")
		}
		if _, _, err := mime.ParseMediaType(s.DefaultType); s.DefaultType != "" && (err != nil ||
			!strings.Contains(s.DefaultType, "/") || !httpguts.ValidHeaderFieldValue(s.DefaultType)) {
			return fmt.Errorf("default-type %q is not a media type, such as text/plain", s.DefaultType)
		}
		s.http = true
		return nil
	}
	if s.Backend.To == "" {
		return errors.New("neither a folder (root) nor a backend (to)")
	}
	if name := firstSet(setting{"list", s.List}, setting{"default-type", s.DefaultType != ""},
		setting{"precompressed", s.Precompressed}); name != "" {
		return fmt.Errorf("%s is for folders", name)
	}
	if s.Backend.ClientCert && len(s.ClientCA) == 0 {
		return errors.New("client-cert-header needs client-ca")
	}
	s.backends, err = s.Backend.compile(c)
	if err != nil {
		return err
	}
	s.http = s.backends.targets[0].http
	return nil
}

func (s *sitePlan) checkALPN() error {
	if len(s.ALPN) > 0 && s.http {
		return errors.New("alpn is for sites of TCP")
	}
	for i, protocol := range s.ALPN {
		switch {
		case protocol == "" || len(protocol) > 255: // RFC 7301, section 3.1
			return fmt.Errorf("alpn %q: a protocol has 1 to 255 bytes", protocol)
		case protocol == acmez.ACMETLS1Protocol:
			return fmt.Errorf("alpn %q is for challenges of ACME alone", protocol)
		case slices.Contains(s.ALPN[:i], protocol):
			return fmt.Errorf("alpn %q is given twice", protocol)
		}
	}
	return nil
}

// senders are the peers whose connections begin with a PROXY header.
type senders struct {
	prefixes []netip.Prefix
	unix     bool
}

func parseSenders(texts []string) (s senders, err error) {
	for _, text := range texts {
		if text == "unix" {
			s.unix = true
			continue
		}
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			address, err := netip.ParseAddr(text)
			if err != nil {
				return s, fmt.Errorf("accept-proxy: %q is neither an address, nor a prefix such as 10.0.0.0/8, nor unix", text)
			}
			prefix = netip.PrefixFrom(address, address.BitLen())
		}
		if prefix.Addr().Is4In6() { // no peer has such an address here
			return s, fmt.Errorf("accept-proxy: write %q as an address of IPv4", text)
		}
		s.prefixes = append(s.prefixes, prefix.Masked())
	}
	return s, nil
}

// expected reports whether connections must begin with a PROXY header.
func (s senders) expected() bool { return s.unix || len(s.prefixes) > 0 }

// has reports whether a peer may send one.
func (s senders) has(peer net.Addr) bool {
	if peer.Network() == "unix" {
		return s.unix
	}
	address := addrPortOf(peer).Addr()
	return slices.ContainsFunc(s.prefixes, func(p netip.Prefix) bool { return p.Contains(address) })
}

// addrPortOf returns the address and port of a TCP address, and the zero AddrPort for others.
func addrPortOf(a net.Addr) netip.AddrPort {
	if tcp, ok := a.(*net.TCPAddr); ok {
		p := tcp.AddrPort()
		return netip.AddrPortFrom(p.Addr().Unmap().WithZone(""), p.Port())
	}
	return netip.AddrPort{}
}
