package chain

import (
	"crypto/x509"
	"encoding/asn1"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

var (
	oidNames       = asn1.ObjectIdentifier{2, 5, 29, 17}
	oidConstraints = asn1.ObjectIdentifier{2, 5, 29, 30}
)

func hasExtension(cert *x509.Certificate, oid asn1.ObjectIdentifier) bool {
	for _, e := range cert.Extensions {
		if e.Id.Equal(oid) {
			return true
		}
	}
	return false
}

// checkIssuers refuses a chain, leaf first, that crypto/x509 refuses for its path lengths or name
// constraints and libcrypto doesn't: RFC 5280 exempts self-issued certificates, libcrypto accepts names
// that can't be parsed, and compares a wildcard as if it were a name. libcrypto has bounded the number of
// comparisons before.
func checkIssuers(chain []*x509.Certificate) error {
	for i, issuer := range chain {
		if i > 0 && issuer.BasicConstraintsValid && issuer.MaxPathLen >= 0 && i-1 > issuer.MaxPathLen {
			return x509.CertificateInvalidError{Cert: issuer, Reason: x509.TooManyIntermediates}
		}
		if !hasExtension(issuer, oidConstraints) {
			continue
		}
		for _, cert := range chain[:i] {
			if !hasExtension(cert, oidNames) {
				continue
			}
			if err := checkNames(issuer, cert); err != nil {
				return x509.CertificateInvalidError{Cert: cert, Reason: x509.CANotAuthorizedForThisName, Detail: err.Error()}
			}
		}
	}
	return nil
}

// checkNames applies an issuer's constraints to the names of a certificate.
func checkNames(issuer, cert *x509.Certificate) error {
	ips := func(list []*net.IPNet, ip net.IP) bool {
		return slices.ContainsFunc(list, func(n *net.IPNet) bool { return len(n.IP) == len(ip) && n.Contains(ip) })
	}
	for _, ip := range cert.IPAddresses {
		if len(issuer.PermittedIPRanges) > 0 && !ips(issuer.PermittedIPRanges, ip) || ips(issuer.ExcludedIPRanges, ip) {
			return fmt.Errorf("the address %v is not permitted", ip)
		}
	}
	for _, name := range cert.DNSNames {
		if !isDomain(name) {
			return fmt.Errorf("cannot parse dnsName %q", name)
		}
		if !permits(issuer.PermittedDNSDomains, issuer.ExcludedDNSDomains, name) {
			return fmt.Errorf("the name %q is not permitted", name)
		}
	}
	for _, uri := range cert.URIs {
		host, err := hostOf(uri)
		if err != nil {
			return err
		}
		if !permits(issuer.PermittedURIDomains, issuer.ExcludedURIDomains, host) {
			return fmt.Errorf("the URI %q is not permitted", uri)
		}
	}
	for _, address := range cert.EmailAddresses {
		local, domain, ok := cutMailbox(address)
		if !ok {
			return fmt.Errorf("cannot parse rfc822Name %q", address)
		}
		permitted, excluded := issuer.PermittedEmailAddresses, issuer.ExcludedEmailAddresses
		if len(permitted) > 0 && !fitsMailbox(permitted, local, domain, true) || fitsMailbox(excluded, local, domain, false) {
			return fmt.Errorf("the address %q is not permitted", address)
		}
	}
	return nil
}

// isDomain is crypto/x509's domainNameValid. An empty name passes there too.
func isDomain(name string) bool {
	if name == "" {
		return true
	}
	for _, label := range strings.Split(name, ".") {
		if label == "" || strings.ContainsFunc(label, func(r rune) bool { return r < 33 || r > 126 }) {
			return false
		}
	}
	return true
}

func permits(permitted, excluded []string, name string) bool {
	return (len(permitted) == 0 || fitsDomain(permitted, name, true)) && !fitsDomain(excluded, name, false)
}

// fitsDomain reports whether a name is below a constraint or, if that excludes it, a wildcard covers it.
func fitsDomain(constraints []string, name string, permitted bool) bool {
	name = strings.ToLower(name)
	parent := func(s string) string { return strings.TrimPrefix(s, strings.Split(s, ".")[0]) }
	return slices.ContainsFunc(constraints, func(constraint string) bool {
		constraint = strings.ToLower(constraint)
		if constraint == "" || constraint == name || strings.HasSuffix(name, "."+strings.TrimPrefix(constraint, ".")) {
			return true
		}
		return !permitted && strings.HasPrefix(name, "*") && parent(name) != "" && parent(name) == parent(constraint)
	})
}

// hostOf returns a URI's host, if constraints can be applied to it.
func hostOf(uri *url.URL) (string, error) {
	host := strings.ToLower(uri.Host)
	if strings.Contains(host, ":") && !strings.HasSuffix(host, "]") {
		var err error
		if host, _, err = net.SplitHostPort(host); err != nil {
			return "", fmt.Errorf("cannot parse URI host %q", uri.Host)
		}
	}
	if _, err := netip.ParseAddr(host); host == "" || err == nil || strings.HasPrefix(host, "[") || !isDomain(host) {
		return "", fmt.Errorf("URI %q cannot be matched against constraints", uri)
	}
	return host, nil
}

// cutMailbox cuts an address of a mailbox. Quoted local parts, and escaped characters, which crypto/x509
// knows, are refused.
func cutMailbox(address string) (local, domain string, ok bool) {
	local, domain, ok = strings.Cut(address, "@")
	const atext = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-/=?^_`{|}~."
	ok = ok && local != "" && strings.Trim(local, atext) == "" && local[0] != '.' && local[len(local)-1] != '.' &&
		!strings.Contains(local, "..") && isDomain(domain)
	return local, strings.ToLower(domain), ok
}

func fitsMailbox(constraints []string, local, domain string, permitted bool) bool {
	return slices.ContainsFunc(constraints, func(constraint string) bool {
		if !strings.Contains(constraint, "@") {
			return fitsDomain([]string{constraint}, domain, permitted)
		}
		otherLocal, otherDomain, ok := cutMailbox(constraint)
		return ok && otherLocal == local && otherDomain == domain
	})
}
