package localca

import (
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
)

// altNames are the subject alternative names of a certificate: RFC 5280, section 4.2.1.6.
type altNames struct {
	dns    []string
	ips    []net.IP
	emails []string
	uris   []*url.URL
}

// parseNames sorts the names of a request.
func parseNames(r Request) (names altNames, err error) {
	if len(r.Names) == 0 {
		return names, errors.New("no name for the certificate")
	}
	for i, name := range r.Names {
		if err := names.add(name); err != nil {
			if r.Client && i == 0 && isText(name) { // a person's name, for example
				continue
			}
			return names, err
		}
	}
	return names, nil
}

// isText reports whether a name can be the common name of a client.
func isText(name string) bool {
	return strings.TrimSpace(name) != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsPrint(r)
	})
}

func (n *altNames) add(name string) error {
	if ip, err := netip.ParseAddr(name); err == nil {
		if ip.Zone() != "" {
			return fmt.Errorf("%q: certificates have addresses without a zone", name)
		}
		n.ips = append(n.ips, ip.Unmap().AsSlice())
		return nil
	}
	switch {
	case strings.Contains(name, "://"):
		u, err := url.Parse(name)
		if err != nil || u.Scheme == "" || u.User != nil || !isHost(u.Hostname()) || !isASCII(u.String()) {
			return fmt.Errorf("%q is not a URI with a host", name)
		}
		n.uris = append(n.uris, u)
	case strings.Contains(name, "@"):
		address, err := mail.ParseAddress(name)
		if err != nil || address.Address != name || !isASCII(name) {
			return fmt.Errorf("%q is not an email address in ASCII", name)
		}
		n.emails = append(n.emails, name)
	default:
		host, err := dnsName(name)
		if err != nil {
			return err
		}
		if !slices.Contains(n.dns, host) {
			n.dns = append(n.dns, host)
		}
	}
	return nil
}

// isHost reports whether a host of a URI is an address or a DNS name, as crypto/x509 requires.
func isHost(name string) bool {
	if ip, err := netip.ParseAddr(name); err == nil {
		return ip.Zone() == ""
	}
	host, err := dnsName(name)
	return err == nil && !strings.HasPrefix(host, "*")
}

// dnsName returns a DNS name as certificates have it: in ASCII and lower case. A "*" may be its
// first label (RFC 6125, section 6.4.3).
func dnsName(name string) (string, error) {
	if _, _, err := net.SplitHostPort(name); err == nil {
		return "", fmt.Errorf("%q has a port: certificates have names alone", name)
	}
	rest, wildcard := strings.CutPrefix(name, "*.")
	host, err := idna.Lookup.ToASCII(rest)
	if err != nil || host == "" || strings.HasSuffix(host, ".") || strings.ContainsFunc(host, notInHost) {
		return "", fmt.Errorf("%q is not a DNS name, an IP address, an email address or a URI", name)
	}
	if wildcard {
		host = "*." + host
	}
	return host, nil
}

// notInHost reports whether a character can't be part of a host's name. Underscores are in use.
func notInHost(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '.' || r == '_')
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
}

// fileName returns a name as part of a file's name, on any system.
func fileName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), strings.ContainsRune("-.@", r):
			return r
		}
		return '_'
	}, name)
	const most = 100
	if r := []rune(name); len(r) > most {
		name = string(r[:most])
	}
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "-") { // neither a hidden file nor an option
		name = "_" + name
	}
	return name
}
