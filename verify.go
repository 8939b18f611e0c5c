package ossl

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/ossl-go/ossl/internal/libssl"
)

// maxRSABits is crypto/tls's limit on the size of RSA keys in a peer's certificates.
const maxRSABits = 8192

// splitChain takes apart a chain as libssl.Conn.Message gives it, without copying.
func splitChain(packed []byte) ([][]byte, bool) {
	var chain [][]byte
	for len(packed) > 0 {
		if len(packed) < 4 {
			return nil, false
		}
		n := int(packed[0])<<24 | int(packed[1])<<16 | int(packed[2])<<8 | int(packed[3])
		if n <= 0 || n > len(packed)-4 {
			return nil, false
		}
		chain = append(chain, packed[4:4+n])
		packed = packed[4+n:]
	}
	return chain, true
}

// decide is what is decided on a chain that is there, by the configuration alone.
func (c *Conn) decide(packed []byte) (certs []*x509.Certificate, chains [][]*x509.Certificate, r *refusal) {
	config := c.context().config
	peer := "server"
	if !c.isClient {
		peer = "client"
	}
	now := c.context().time()
	if now.IsZero() {
		now = time.Now() // to crypto/x509, the zero time means now
	}
	verifies := c.isClient && !config.InsecureSkipVerify || !c.isClient && config.ClientAuth >= tls.VerifyClientCertIfGiven
	var key chainKey
	var trusted *trust
	if verifies {
		key = chainKey{sum: sha256.Sum256(packed), server: c.isClient}
		if c.isClient {
			key.name = c.serverName
		}
		if certs, chains, trusted = c.context().chains.get(key, now); certs != nil {
			return certs, chains, nil
		}
	}

	chain, ok := splitChain(packed)
	if !ok {
		return nil, nil, &refusal{errors.New("ossl: malformed chain from libssl"), alertInternalError}
	}
	certs = make([]*x509.Certificate, len(chain))
	for i, der := range chain {
		cert, err := c.parseCertificate(der)
		if err != nil {
			return nil, nil, &refusal{fmt.Errorf("tls: failed to parse certificate from %s: %w", peer, err), alertDecodeError}
		}
		if key, ok := cert.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() > maxRSABits {
			return nil, nil, &refusal{fmt.Errorf("tls: %s sent certificate containing RSA key larger than %d bits", peer, maxRSABits),
				alertBadCertificate}
		}
		certs[i] = cert
	}

	if verifies {
		opts := x509.VerifyOptions{CurrentTime: now, Intermediates: x509.NewCertPool()}
		if c.isClient {
			opts.Roots, opts.DNSName = config.RootCAs, c.serverName
		} else {
			opts.Roots, opts.KeyUsages = config.ClientCAs, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		}
		for _, cert := range certs[1:] {
			opts.Intermediates.AddCert(cert)
		}
		var err error
		if c.context().fips {
			chains, err = c.verifyByModule(certs, packed, &libssl.VerifyQuery{Time: now, OfServer: c.isClient})
		} else {
			chains, err = certs[0].Verify(opts)
		}
		if err != nil {
			return nil, nil, &refusal{&tls.CertificateVerificationError{UnverifiedCertificates: certs, Err: err}, c.verifyAlert(err)}
		}
		if chains, err = strongChains(chains, c.context().peerLevel); err != nil {
			return nil, nil, &refusal{&tls.CertificateVerificationError{UnverifiedCertificates: certs, Err: err}, alertBadCertificate}
		}
	}
	if c.context().fips && !fipsKey(certs[0].PublicKey) { // of a chain that is not verified too
		err := x509.CertificateInvalidError{Cert: certs[0], Reason: x509.NoValidChains, Detail: errFIPSKey}
		return nil, nil, &refusal{&tls.CertificateVerificationError{UnverifiedCertificates: certs, Err: err}, c.verifyAlert(err)}
	}
	switch certs[0].PublicKey.(type) {
	case *rsa.PublicKey, *ecdsa.PublicKey, ed25519.PublicKey:
	default:
		err := fmt.Errorf("tls: %s's certificate contains an unsupported type of public key: %T", peer, certs[0].PublicKey)
		return nil, nil, &refusal{err, alertUnsupportedCertificate}
	}
	if verifies {
		c.context().chains.put(key, certs, chains, now, trusted)
	}
	return certs, chains, nil
}

// verifyAlert is the alert for a failed verification: a client always sends bad_certificate.
func (c *Conn) verifyAlert(err error) uint8 {
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	switch {
	case c.isClient:
		return alertBadCertificate
	case errors.As(err, &unknown):
		return alertUnknownCA
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return alertCertificateExpired
	}
	return alertBadCertificate
}

// parseCertificate keeps no reference to der.
func (c *Conn) parseCertificate(der []byte) (*x509.Certificate, error) {
	if c.isClient {
		return c.context().certs.parse(der)
	}
	return x509.ParseCertificate(bytes.Clone(der))
}
