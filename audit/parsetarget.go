package audit

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

type scheme struct {
	name     string
	protocol string
	port     uint16
}

// schemes are the protocols that targets can name. The first with a Target's Protocol and port is
// the one that Target.String writes.
var schemes = []scheme{
	{"https", "https", 443},
	{"tls", "tls", 443},
	{"smtp", "smtp", 25},
	{"submission", "smtp", 587},
	{"smtps", "tls", 465},
	{"imap", "imap", 143},
	{"imaps", "tls", 993},
	{"pop3", "pop3", 110},
	{"pop3s", "tls", 995},
	{"ldap", "ldap", 389},
	{"ldaps", "tls", 636},
	{"postgres", "postgres", 5432},
	{"postgresql", "postgres", 5432},
	{"postgres-direct", "postgres-direct", 5432},
	{"mysql", "mysql", 3306},
	{"mariadb", "mysql", 3306},
	{"xmpp", "xmpp", 5222},
	{"xmpp-server", "xmpp-server", 5269},
	{"xmpps", "tls", 5223},
}

// ports are the protocols of ports, if a target names none. The protocol of other ports is "tls".
var ports = map[uint16]string{
	25: "smtp", 587: "smtp", 2525: "smtp", 143: "imap", 110: "pop3", 389: "ldap", 5432: "postgres", 3306: "mysql",
	5222: "xmpp", 5269: "xmpp-server", 443: "https", 4443: "https", 8443: "https", 9443: "https",
}

// Schemes returns the schemes that [ParseTarget] knows.
func Schemes() []string {
	var names []string
	for _, s := range schemes {
		names = append(names, s.name)
	}
	return names
}

// ParseTarget parses HOST, HOST:PORT, SCHEME://HOST or SCHEME://HOST:PORT. The host is a name or an
// address, and an IPv6 address is in brackets. Without a scheme, the port decides the protocol: 443
// is the default and stands for HTTPS, as 8443 does, 25 for SMTP and so on, and TLS begins at once on
// ports that aren't known, unless [Check] recognises another protocol. Without a port, it is the
// scheme's: 587 of submission://mail.example.
func ParseTarget(s string) (Target, error) {
	t, err := parseTarget(s)
	if err != nil {
		return Target{}, fmt.Errorf("target %q: %w", s, err)
	}
	return t, nil
}

func parseTarget(s string) (Target, error) {
	var t Target
	rest := s
	if name, after, ok := strings.Cut(s, "://"); ok {
		i := slices.IndexFunc(schemes, func(known scheme) bool { return known.name == strings.ToLower(name) })
		if i < 0 {
			return t, unknownScheme(name)
		}
		t.Protocol, t.Port = schemes[i].protocol, schemes[i].port
		rest = strings.TrimSuffix(after, "/")
	}
	if i := strings.IndexAny(rest, "/?#@"); i >= 0 {
		what := map[byte]string{'/': "a path", '?': "a query", '#': "a fragment", '@': "a user"}[rest[i]]
		return t, fmt.Errorf("a target is a host and a port, and has no room for %s", what)
	}
	host, port, err := splitPort(rest)
	if err != nil {
		return t, err
	}
	if port != "" {
		if t.Port, err = parsePort(port); err != nil {
			return t, err
		}
	}
	if t.Host, err = parseHost(host); err != nil {
		return t, err
	}
	if t.Port == 0 {
		t.Port = 443
	}
	if t.Protocol == "" {
		t.Protocol = "tls"
		if known := ports[t.Port]; known != "" {
			t.Protocol = known
		}
	}
	return t, nil
}

func unknownScheme(name string) error {
	switch strings.ToLower(name) {
	case "http":
		return errors.New("plain HTTP has no TLS: write https://")
	case "ftp", "ftps", "nntp", "sieve", "irc", "rdp":
		return fmt.Errorf("the scheme %q is not supported", name)
	}
	return fmt.Errorf("unknown scheme %q: the schemes are %s", name, strings.Join(Schemes(), ", "))
}

// splitPort splits host:port. The port is empty if there is none.
func splitPort(s string) (host, port string, err error) {
	if strings.HasPrefix(s, "[") {
		host, after, ok := strings.Cut(s[1:], "]")
		if !ok {
			return "", "", errors.New("the closing bracket is missing")
		}
		if address, err := netip.ParseAddr(host); err != nil || !address.Is6() {
			return "", "", fmt.Errorf("%q is not an IPv6 address", host)
		}
		if after == "" {
			return host, "", nil
		}
		port, ok := strings.CutPrefix(after, ":")
		if !ok || port == "" {
			return "", "", fmt.Errorf("%q after the address is not a port", after)
		}
		return host, port, nil
	}
	switch strings.Count(s, ":") {
	case 0:
		return s, "", nil
	case 1:
		host, port, _ := strings.Cut(s, ":")
		if port == "" {
			return "", "", errors.New("the port is missing after the colon")
		}
		return host, port, nil
	}
	if _, err := netip.ParseAddr(s); err == nil {
		return "", "", fmt.Errorf("an IPv6 address needs brackets: [%s]", s)
	}
	return "", "", errors.New("more than one colon")
}

func parsePort(s string) (uint16, error) {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("the port %q is not a number", s)
		}
	}
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("the port %s is not from 1 to 65535", s)
	}
	return uint16(n), nil
}

// parseHost returns a name in lower case and in its ASCII form (RFC 5891), or an address in its usual
// form.
func parseHost(s string) (string, error) {
	if s == "" {
		return "", errors.New("the host is missing")
	}
	if address, err := netip.ParseAddr(s); err == nil {
		return address.Unmap().String(), nil
	}
	if !utf8.ValidString(s) {
		return "", errors.New("the host is not UTF-8")
	}
	name := strings.TrimSuffix(s, ".")
	for _, c := range []byte(name) {
		if c >= 0x80 {
			ascii, err := idna.Lookup.ToASCII(name)
			if err != nil {
				return "", fmt.Errorf("the host is not an international name: %w", err)
			}
			name = ascii
			break
		}
	}
	name = strings.ToLower(name)
	if len(name) > 253 {
		return "", errors.New("the host is longer than 253 bytes")
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if err := checkLabel(label); err != nil {
			return "", err
		}
	}
	last := labels[len(labels)-1]
	if strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
		return "", fmt.Errorf("the host %q is neither a name nor an address", s)
	}
	return name, nil
}

func checkLabel(label string) error {
	switch {
	case label == "":
		return errors.New("the host has an empty label")
	case len(label) > 63:
		return fmt.Errorf("the host's label %q is longer than 63 bytes", label)
	case label[0] == '-' || label[len(label)-1] == '-':
		return fmt.Errorf("the host's label %q begins or ends with a hyphen", label)
	}
	for _, c := range []byte(label) {
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
			return fmt.Errorf("the host has the character %q", c)
		}
	}
	return nil
}

// Address returns the target's host and port, as in example.com:443 and [::1]:443.
func (t Target) Address() string { return net.JoinHostPort(t.Host, strconv.Itoa(int(t.Port))) }

// String returns the target in a form that [ParseTarget] parses, without the parts that are
// defaults: "example.com" for HTTPS on port 443.
func (t Target) String() string {
	host := t.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if t.Protocol == "https" && t.Port == 443 {
		return host
	}
	for _, s := range schemes {
		if s.protocol == t.Protocol && s.port == t.Port {
			return s.name + "://" + host
		}
	}
	return t.Protocol + "://" + t.Address()
}

// ip returns the target's address, if its host isn't a name.
func (t Target) ip() (netip.Addr, bool) {
	address, err := netip.ParseAddr(t.Host)
	return address, err == nil
}
