package terminator

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/mail"
	"net/url"
	"slices"
	"strings"
)

// An allowRule is a rule of client-allow: one that a client's certificate must fit.
type allowRule struct {
	kind  string // "dns", "uri", "email", "cn", "ou" or "sha256"
	value string
}

func parseAllow(texts []string) (rules []allowRule, err error) {
	for _, text := range texts {
		kind, value, _ := strings.Cut(text, ":")
		rule := allowRule{kind, value}
		if value == "" || value != strings.TrimSpace(value) {
			err = errors.New("it has no value, or blanks around it")
		} else {
			err = rule.check()
		}
		if err != nil {
			return nil, fmt.Errorf("client-allow %q: %w", text, err)
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// check refuses rules that no certificate can fit, or that look as if they fitted more than they do. It
// brings the value into the form in which it is compared.
func (r *allowRule) check() error {
	switch r.kind {
	case "dns":
		r.value = strings.ToLower(r.value)
		if !isDNSName(strings.TrimPrefix(r.value, "*.")) {
			return errors.New(`it is not a DNS name, which may begin with "*." for one label`)
		}
	case "uri":
		head, path, ok := cutAuthority(r.value)
		u, err := url.Parse(r.value)
		if !ok || err != nil || u.Scheme == "" || u.Host == "" || strings.Contains(head, "*") {
			return errors.New(`it is not a URI such as spiffe://example.org/ns/*/sa/web; a "*" can't be in the host`)
		}
		for _, segment := range strings.Split(path, "/") {
			if segment != "*" && strings.Contains(segment, "*") {
				return errors.New(`a "*" stands for one whole part of the path`)
			}
		}
	case "email":
		if a, err := mail.ParseAddress(r.value); err != nil || a.Address != r.value || strings.Contains(r.value, "*") {
			return errors.New("it is not the address of a mailbox")
		}
		r.value = lowerDomain(r.value)
	case "cn", "ou":
		if strings.Contains(r.value, "*") {
			return errors.New(`cn and ou have no patterns: a "*" stands for itself, and no such name is in use`)
		}
	case "sha256":
		sum, err := hex.DecodeString(strings.ReplaceAll(r.value, ":", ""))
		if err != nil || len(sum) != sha256.Size {
			return errors.New("it is not a fingerprint of 64 hexadecimal digits, such as of 'openssl x509 -fingerprint -sha256'")
		}
		r.value = hex.EncodeToString(sum)
	default:
		return errors.New("it doesn't begin with dns:, uri:, email:, cn:, ou: or sha256: and a value")
	}
	return nil
}

func isDNSName(name string) bool {
	for _, label := range strings.Split(name, ".") {
		if label == "" || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}

// cutAuthority cuts a URI behind its authority, and reports whether it has one.
func cutAuthority(uri string) (head, path string, ok bool) {
	scheme, rest, ok := strings.Cut(uri, "://")
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	return strings.ToLower(scheme + "://" + rest[:end]), rest[end:], ok
}

// lowerDomain returns an address with its domain in lower case; the part before it may be case-sensitive.
func lowerDomain(address string) string {
	at := strings.LastIndexByte(address, '@')
	return address[:at+1] + strings.ToLower(address[at+1:])
}

// fits reports whether a certificate has the name of the rule.
func (r allowRule) fits(cert *x509.Certificate) bool {
	switch r.kind {
	case "dns":
		return slices.ContainsFunc(cert.DNSNames, func(name string) bool {
			name = strings.ToLower(name)
			if parent, ok := strings.CutPrefix(r.value, "*."); ok {
				label, rest, _ := strings.Cut(name, ".")
				return label != "" && label != "*" && rest == parent
			}
			return name == r.value
		})
	case "uri":
		return slices.ContainsFunc(cert.URIs, func(u *url.URL) bool { return fitsURI(r.value, u.String()) })
	case "email":
		return slices.ContainsFunc(cert.EmailAddresses, func(address string) bool { return lowerDomain(address) == r.value })
	case "cn":
		return cert.Subject.CommonName == r.value
	case "ou":
		return slices.Contains(cert.Subject.OrganizationalUnit, r.value)
	case "sha256":
		sum := sha256.Sum256(cert.Raw)
		return hex.EncodeToString(sum[:]) == r.value
	}
	return false
}

// fitsURI compares a URI with a pattern, in which a "*" is one part of the path that is not empty.
func fitsURI(pattern, uri string) bool {
	head, path, _ := cutAuthority(pattern)
	otherHead, otherPath, ok := cutAuthority(uri)
	if !ok || head != otherHead {
		return false
	}
	parts, others := strings.Split(path, "/"), strings.Split(otherPath, "/")
	if len(parts) != len(others) {
		return false
	}
	for i, part := range parts {
		wild := part == "*" && others[i] != "" && others[i] != "." && others[i] != ".." && !strings.ContainsAny(others[i], "?#")
		if part != others[i] && !wild {
			return false
		}
	}
	return true
}

// errNotAllowed is the error of handshakes of clients whose certificate fits no rule of client-allow.
var errNotAllowed = errors.New("the client's certificate fits no rule of client-allow")

// setAllowed sets the rules of a site. They are asked in each handshake, also if it resumes a session
// that was made under other rules.
func setAllowed(config *tls.Config, rules []allowRule, site string) {
	if len(rules) == 0 {
		return
	}
	config.VerifyConnection = func(state tls.ConnectionState) error {
		if len(state.PeerCertificates) == 0 {
			return nil // ClientAuth has decided that it may come without
		}
		leaf := state.PeerCertificates[0]
		if slices.ContainsFunc(rules, func(r allowRule) bool { return r.fits(leaf) }) {
			return nil
		}
		return fmt.Errorf("site %s: %w: its subject is %q", site, errNotAllowed, leaf.Subject)
	}
}

// logHandshake logs the failure of a handshake.
func (g *generation) logHandshake(c *client, err error) {
	if errors.Is(err, errNotAllowed) {
		g.limited.report(g.log, "client-allow", c.String())
	}
	attributes := []any{"client", c.String(), "error", err}
	if slices.ContainsFunc(g.sites, func(s *site) bool { return s.authorities != nil }) {
		if hint := g.plan.tls.policy.clientHint(); hint != "" {
			attributes = append(attributes, "policy", hint)
		}
	}
	g.log.Debug("handshake", attributes...)
}
