package trace

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"
	"time"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/tlsnames"
)

func (p *Printer) clientHello(r *reader) {
	p.field("legacy version", "%s", tls.VersionName(uint16(r.number(2))))
	p.field("random", "%d bytes", len(r.bytes(32)))
	p.field("session ID", "%d bytes", len(r.vector(1)))
	p.field("cipher suites", "%s", list(r.numbers(r.vector(2), 2), suiteName))
	p.field("compression methods", "%s", list(r.numbers(r.vector(1), 1), func(n int) string {
		if n == 0 {
			return "none"
		}
		return fmt.Sprint(n)
	}))
	if len(r.b) > 0 {
		p.extensions(r, clientHello, 0)
	}
}

func (p *Printer) serverHello(r *reader) {
	p.version = uint16(r.number(2))
	if versions := supportedVersion(*r); versions != 0 {
		p.version = versions
	}
	p.field("version", "%s", tls.VersionName(p.version))
	p.field("random", "%d bytes", len(r.bytes(32)))
	p.field("session ID", "%d bytes", len(r.vector(1)))
	p.field("cipher suite", "%s", suiteName(r.number(2)))
	r.number(1) // compression
	if len(r.b) > 0 {
		p.extensions(r, serverHello, 0)
	}
}

// supportedVersion returns the version in the extension supported_versions of a ServerHello, or 0.
// r begins behind the message's version.
func supportedVersion(r reader) uint16 {
	r.bytes(32)
	r.vector(1)
	r.bytes(3)
	for all := (reader{b: r.vector(2)}); len(all.b) > 0; {
		id, body := all.number(2), reader{b: all.vector(2)}
		if id == extensionVersions {
			return uint16(body.number(2))
		}
	}
	return 0
}

func (p *Printer) tls13() bool { return p.version >= tls.VersionTLS13 }

func (p *Printer) certificate(r *reader) {
	if p.tls13() {
		if context := r.vector(1); len(context) > 0 {
			p.field("request context", "%d bytes", len(context))
		}
	}
	all := reader{b: r.vector(3)}
	if len(all.b) == 0 {
		p.field("no certificate", "")
	}
	for i := 0; len(all.b) > 0 && i < maxList; i++ {
		p.describeCertificate(i, all.vector(3))
		if p.tls13() {
			p.extensions(&all, certificate, 1)
		}
	}
	r.failed = r.failed || all.failed
}

func (p *Printer) describeCertificate(i int, der []byte) {
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		p.field(fmt.Sprintf("certificate %d", i), "%d bytes, malformed", len(der))
		return
	}
	p.field(fmt.Sprintf("certificate %d", i), "%q", cert.Subject.String())
	p.fieldAt(1, "issuer", "%q", cert.Issuer.String())
	var names []string
	for _, name := range cert.DNSNames {
		names = append(names, fmt.Sprintf("%q", name))
	}
	for _, ip := range cert.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) > 0 {
		p.fieldAt(1, "names", "%s", strings.Join(names[:min(len(names), maxList)], ", "))
	}
	p.fieldAt(1, "valid", "%s to %s", cert.NotBefore.UTC().Format(time.DateOnly), cert.NotAfter.UTC().Format(time.DateOnly))
	p.fieldAt(1, "key, signature", "%v, %v", cert.PublicKeyAlgorithm, cert.SignatureAlgorithm)
}

func (p *Printer) certificateRequest(r *reader) {
	if p.tls13() {
		r.vector(1)
		p.extensions(r, certificateRequest, 0)
		return
	}
	p.field("certificate types", "%s", list(r.numbers(r.vector(1), 1), func(n int) string { return fmt.Sprint(n) }))
	p.field("signature algorithms", "%s", list(r.numbers(r.vector(2), 2), signatureName))
	p.authorities(r.vector(2), 0, r)
}

// authorities prints how many names of authorities there are: they may be hundreds.
func (p *Printer) authorities(names []byte, depth int, r *reader) {
	all := reader{b: names}
	n := 0
	for ; len(all.b) > 0; n++ {
		all.vector(2)
	}
	r.failed = r.failed || all.failed
	p.fieldAt(depth, "authorities", "%d", n)
}

// serverKeyExchange prints an ECDHE message: RFC 8422, section 5.4.
func (p *Printer) serverKeyExchange(r *reader) {
	const namedCurve = 3
	if r.number(1) != namedCurve {
		r.b = nil // of another key exchange
		return
	}
	p.field("group", "%s", groupName(r.number(2)))
	p.field("public key", "%d bytes", len(r.vector(1)))
	p.field("signature algorithm", "%s", signatureName(r.number(2)))
	p.field("signature", "%d bytes", len(r.vector(2)))
}

func (p *Printer) newSessionTicket(r *reader) {
	p.field("lifetime", "%v", time.Duration(r.number(4))*time.Second)
	if !p.tls13() {
		p.field("ticket", "%d bytes", len(r.vector(2)))
		return
	}
	r.number(4) // ticket_age_add
	p.field("nonce", "%d bytes", len(r.vector(1)))
	p.field("ticket", "%d bytes", len(r.vector(2)))
	p.extensions(r, newSessionTicket, 0)
}

// list prints the elements of a list, and how many there are if these are too many.
func list(numbers []int, name func(int) string) string {
	var names []string
	for i, n := range numbers {
		if i == maxList {
			names = append(names, fmt.Sprintf("and %d more", len(numbers)-i))
			break
		}
		names = append(names, name(n))
	}
	return strings.Join(names, " ")
}

// isGrease reports whether a number is reserved so that peers learn to ignore unknown ones: RFC 8701.
func isGrease(n int) bool { return n&0x0f0f == 0x0a0a && n>>8 == n&0xff }

func named(n int, name string) string {
	switch {
	case name != "":
		return name
	case isGrease(n):
		return "GREASE"
	}
	return fmt.Sprintf("0x%04x", n)
}

func suiteName(n int) string { return named(n, tlsnames.CipherSuites.Name(uint16(n))) }

func groupName(n int) string { return named(n, libssl.GroupName(tls.CurveID(n))) }

func signatureName(n int) string { return named(n, libssl.SignatureName(tls.SignatureScheme(n))) }

func versionName(n int) string {
	if isGrease(n) {
		return "GREASE"
	}
	return tls.VersionName(uint16(n))
}
