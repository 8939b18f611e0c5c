package chain

import (
	"bytes"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/ossl-go/ossl/internal/libssl"
)

// A Module verifies chains in FIPS mode, with libcrypto and the FIPS module.
//
// After libcrypto's verification, it refuses the chains that libcrypto accepts and crypto/x509 does
// not. These checks are not cryptography.
type Module struct {
	// Servers and Clients return the trust anchors for the chains of each.
	Servers, Clients func() (*libssl.Roots, error)

	// Level is the security level that chains must have.
	Level int
}

// verify returns the chain that the module finds.
func (m *Module) verify(certs []*x509.Certificate, packed []byte, p peer, now time.Time) ([][]*x509.Certificate, error) {
	query := libssl.VerifyQuery{Time: now, OfServer: p.server, SecurityLevel: m.Level}
	usage, anchors := x509.ExtKeyUsageClientAuth, m.Clients
	if p.server {
		usage, anchors = x509.ExtKeyUsageServerAuth, m.Servers
		if err := certs[0].VerifyHostname(p.name); err != nil { // OpenSSL checks it as well
			return nil, err
		}
		query.Host, query.IP = splitName(p.name)
	}
	roots, err := anchors()
	if err != nil {
		return nil, err
	}
	if err := checkPolicyConstraints(certs); err != nil {
		return nil, err
	}
	found, err := roots.Verify(packed, &query)
	// For libcrypto a certificate has expired at NotAfter itself, for crypto/x509 and RFC 5280 after it.
	last := now.Nanosecond() == 0 && expired(err)
	if last {
		query.Time = now.Add(-time.Second)
		found, err = roots.Verify(packed, &query)
	}
	if err != nil {
		return nil, x509Error(err, certs, p)
	}
	ders, ok := split(found)
	if !ok || len(ders) == 0 {
		return nil, errors.New("ossl: malformed chain from libcrypto")
	}
	chain := make([]*x509.Certificate, len(ders))
	for i, der := range ders {
		if chain[i] = sameCertificate(certs, der); chain[i] == nil {
			if chain[i], err = x509.ParseCertificate(der); err != nil {
				return nil, err
			}
		}
		if cert := chain[i]; last && (now.Before(cert.NotBefore) || now.After(cert.NotAfter)) {
			return nil, x509.CertificateInvalidError{Cert: cert, Reason: x509.Expired}
		}
	}
	if err := checkModuleChain(chain, usage); err != nil {
		return nil, err
	}
	return [][]*x509.Certificate{chain}, nil
}

func expired(err error) bool {
	var e *libssl.VerifyError
	return errors.As(err, &e) && e.Code == libssl.VerifyExpired
}

// splitName returns a server's name as crypto/x509 takes it: an IP address, or a host name without
// its last dot.
func splitName(name string) (host string, ip []byte) {
	address := name
	if len(name) >= 3 && name[0] == '[' && name[len(name)-1] == ']' {
		address = name[1 : len(name)-1]
	}
	if parsed := net.ParseIP(address); parsed != nil {
		if short := parsed.To4(); short != nil {
			return "", short
		}
		return "", parsed
	}
	return strings.TrimSuffix(name, "."), nil
}

func sameCertificate(certs []*x509.Certificate, der []byte) *x509.Certificate {
	for _, cert := range certs {
		if bytes.Equal(cert.Raw, der) {
			return cert
		}
	}
	return nil
}

// x509Error returns crypto/x509's error for a failed verification by libcrypto.
func x509Error(err error, certs []*x509.Certificate, p peer) error {
	var e *libssl.VerifyError
	if !errors.As(err, &e) {
		return err
	}
	// libcrypto may have built another list of certificates. Its text names the right one.
	cert := certs[min(max(e.Depth, 0), len(certs)-1)]
	invalid := func(reason x509.InvalidReason) error {
		return x509.CertificateInvalidError{Cert: cert, Reason: reason, Detail: e.Text}
	}
	switch e.Code {
	case libssl.VerifyNotYetValid, libssl.VerifyExpired:
		return invalid(x509.Expired)
	case libssl.VerifyNoIssuer, libssl.VerifySelfSigned, libssl.VerifySelfSignedChain, libssl.VerifyNoLocalIssuer,
		libssl.VerifyNoLeafSignature, libssl.VerifySignature, libssl.VerifyUntrusted, libssl.VerifyInvalidCA, libssl.VerifyInvalidCA3,
		libssl.VerifyKeyUsageNoSign:
		return x509.UnknownAuthorityError{Cert: cert}
	case libssl.VerifyHostname, libssl.VerifyIP:
		return x509.HostnameError{Certificate: certs[0], Host: p.name}
	case libssl.VerifyPurpose, libssl.VerifyRejected:
		return invalid(x509.IncompatibleUsage)
	case libssl.VerifyCriticalExtension:
		return x509.UnhandledCriticalExtension{}
	case libssl.VerifyPathLength:
		return invalid(x509.TooManyIntermediates)
	case libssl.VerifyPermitted, libssl.VerifyExcluded:
		return invalid(x509.CANotAuthorizedForThisName)
	}
	return invalid(x509.NoValidChains)
}
