package trace

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"
	"time"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/wire"
	"github.com/ossl-go/ossl/tlsnames"
)

func (p *Printer) clientHello(r *wire.Reader) {
	p.field("legacy version", "%s", tls.VersionName(uint16(r.Number(2))))
	p.field("random", "%d bytes", len(r.Bytes(32)))
	p.field("session ID", "%d bytes", len(r.Vector(1)))
	p.field("cipher suites", "%s", list(numbers(r, 2, 2), suiteName))
	p.field("compression methods", "%s", list(numbers(r, 1, 1), func(n int) string {
		if n == 0 {
			return "none"
		}
		return fmt.Sprint(n)
	}))
	if len(r.Rest) > 0 {
		p.extensions(r, clientHello, 0)
	}
}

func (p *Printer) serverHello(r *wire.Reader) {
	p.version = uint16(r.Number(2))
	if versions := supportedVersion(*r); versions != 0 {
		p.version = versions
	}
	p.field("version", "%s", tls.VersionName(p.version))
	p.field("random", "%d bytes", len(r.Bytes(32)))
	p.field("session ID", "%d bytes", len(r.Vector(1)))
	p.field("cipher suite", "%s", suiteName(r.Number(2)))
	r.Number(1) // compression
	if len(r.Rest) > 0 {
		p.extensions(r, serverHello, 0)
	}
}

// supportedVersion returns the version in the extension supported_versions of a ServerHello, or 0.
// r begins behind the message's version.
func supportedVersion(r wire.Reader) uint16 {
	r.Bytes(32)
	r.Vector(1)
	r.Bytes(3)
	for all := r.List(2); len(all.Rest) > 0; {
		id, body := all.Number(2), all.List(2)
		if id == extensionVersions {
			return uint16(body.Number(2))
		}
	}
	return 0
}

func (p *Printer) tls13() bool { return p.version >= tls.VersionTLS13 }

func (p *Printer) certificate(r *wire.Reader) {
	if p.tls13() {
		if context := r.Vector(1); len(context) > 0 {
			p.field("request context", "%d bytes", len(context))
		}
	}
	all := r.List(3)
	if len(all.Rest) == 0 {
		p.field("no certificate", "")
	}
	for i := 0; len(all.Rest) > 0 && i < maxList; i++ {
		p.describeCertificate(i, all.Vector(3))
		if p.tls13() {
			p.extensions(&all, certificate, 1)
		}
	}
	r.Failed = all.Failed
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

func (p *Printer) certificateRequest(r *wire.Reader) {
	if p.tls13() {
		r.Vector(1)
		p.extensions(r, certificateRequest, 0)
		return
	}
	p.field("certificate types", "%s", list(numbers(r, 1, 1), func(n int) string { return fmt.Sprint(n) }))
	p.field("signature algorithms", "%s", list(numbers(r, 2, 2), signatureName))
	p.authorities(r)
}

// authorities prints how many names of authorities there are: they may be hundreds.
func (p *Printer) authorities(r *wire.Reader) {
	all := r.List(2)
	n := 0
	for ; len(all.Rest) > 0; n++ {
		all.Vector(2)
	}
	r.Failed = all.Failed
	p.field("authorities", "%d", n)
}

// serverKeyExchange prints an ECDHE message: RFC 8422, section 5.4.
func (p *Printer) serverKeyExchange(r *wire.Reader) {
	const namedCurve = 3
	if r.Number(1) != namedCurve {
		r.Rest = nil // of another key exchange
		return
	}
	p.field("group", "%s", groupName(r.Number(2)))
	p.field("public key", "%d bytes", len(r.Vector(1)))
	p.field("signature algorithm", "%s", signatureName(r.Number(2)))
	p.field("signature", "%d bytes", len(r.Vector(2)))
}

func (p *Printer) newSessionTicket(r *wire.Reader) {
	p.field("lifetime", "%v", time.Duration(r.Number(4))*time.Second)
	if !p.tls13() {
		p.field("ticket", "%d bytes", len(r.Vector(2)))
		return
	}
	r.Number(4) // ticket_age_add
	p.field("nonce", "%d bytes", len(r.Vector(1)))
	p.field("ticket", "%d bytes", len(r.Vector(2)))
	p.extensions(r, newSessionTicket, 0)
}

// numbers takes a vector, whose length has so many bytes, of numbers of size bytes.
func numbers(r *wire.Reader, length, size int) (list []int) {
	all := r.List(length)
	for len(all.Rest) > 0 {
		list = append(list, all.Number(size))
	}
	r.Failed = all.Failed
	return list
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
