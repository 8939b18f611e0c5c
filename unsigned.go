package ossl

import (
	"crypto"
	"crypto/rsa"
	"crypto/tls"
	"slices"
	"strings"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/negotiate"
	"github.com/ossl-go/ossl/internal/stdtls"
)

// A TLS 1.2 client without signature_algorithms knows SHA-1 alone (RFC 5246, section 7.4.1.4.1).
// crypto/tls serves it only if it chooses a suite with RSA key exchange, in which a server signs
// nothing. libssl refuses it whatever the suite, unless SHA-1 is among the signature algorithms. So
// such a client is given to another Context, which has SHA-1 and can't sign with it, since it has no
// suites but those.

// unsignedClients has the properties of a Context that serves clients without signature_algorithms.
type unsignedClients struct {
	versions, suites []uint16 // of the Context, which serves such clients with the suites that use RSA
	groups           []tls.CurveID
	config           *tls.Config // of the other Context
	opts             *options
}

// usesRSA reports whether a TLS 1.2 suite has RSA key exchange.
func usesRSA(suite uint16) bool { return strings.HasPrefix(tls.CipherSuiteName(suite), "TLS_RSA_") }

// mayServeUnsigned reports whether the configuration serves clients without signature_algorithms, if
// the Context has suites for them. It must not ask for certificates, because clients sign with these.
func (c *Context) mayServeUnsigned(offer *negotiate.Offer) bool {
	return c.serveErr == nil && !c.opts.psk.serversNeed() && c.config.ClientAuth == tls.NoClientCert && !c.opts.unsigned &&
		offer.MinVersion() <= tls.VersionTLS12 && slices.ContainsFunc(offer.CipherSuites, usesRSA)
}

// serveUnsigned prepares the Context for clients without signature_algorithms. All of the offer's
// suites are in the Context.
func (c *Context) serveUnsigned(offer *negotiate.Offer) {
	if !c.mayServeUnsigned(offer) {
		return
	}
	opts := *c.opts
	opts.unsigned, opts.suites13, opts.signatures = true, nil, []tls.SignatureScheme{tls.PKCS1WithSHA1}
	opts.psk = pskOptions{}                       // for a client that offers no suite with one
	opts.securityLevel, opts.levelNamed = 0, true // for SHA-1; suites and certificates have met c's level
	config := c.config.Clone()
	config.CipherSuites, config.MaxVersion = negotiate.Keep(offer.CipherSuites, usesRSA), tls.VersionTLS12
	c.unsigned = &unsignedClients{offer.Versions, offer.CipherSuites, offer.Groups, config, &opts}
}

// chooses reports whether crypto/tls would choose RSA key exchange for a client without
// signature_algorithms.
func (u *unsignedClients) chooses(hello *libssl.ClientHello, cert *tls.Certificate) bool {
	versions := negotiate.Keep(offeredVersions(hello), func(v uint16) bool { return slices.Contains(u.versions, v) })
	if hello.SignatureSchemes != nil || len(versions) == 0 || slices.Max(versions) != tls.VersionTLS12 {
		return false
	}
	signer, ok := cert.PrivateKey.(crypto.Signer)
	if !ok {
		return false
	}
	if _, ok := signer.Public().(*rsa.PublicKey); !ok {
		return false
	}
	group := slices.ContainsFunc(u.groups, func(id tls.CurveID) bool {
		return !libssl.IsPostQuantum(id) && slices.Contains(hello.Groups, uint16(id))
	})
	shared := negotiate.Keep(hello.CipherSuites, func(id uint16) bool {
		return slices.Contains(u.suites, id) && (usesRSA(id) || group && !strings.Contains(tls.CipherSuiteName(id), "_ECDSA_"))
	})
	return len(shared) > 0 && !slices.ContainsFunc(shared, func(id uint16) bool { return !usesRSA(id) })
}

// chooseUnsigned gives the connection another Context if the client has sent no
// signature_algorithms and can be served without.
func (h *handshake) chooseUnsigned() error {
	ctx, cert := h.c.context(), h.certificate
	if cert == nil {
		cert = &ctx.config.Certificates[0]
	}
	var records []byte
	err := h.withSSL(func(ssl *libssl.Conn) {
		if hello, ok := libssl.ParseClientHello(ssl.Hellos().Client); ok && ctx.unsigned.chooses(&hello, cert) {
			records = stdtls.HelloRecords(ssl.Message())
		}
	})
	if err != nil || records == nil {
		return err
	}
	other, err := ctx.chosen.context(ctx.unsigned.config, ctx.unsigned.opts, ctx)
	if err != nil {
		if noMemory(err) {
			h.sendAlert(alertInternalError)
			return err
		}
		return nil // such as a host policy without SHA-1: libssl refuses the client
	}
	h.c.pinned = other
	h.c.ctx.Store(other.ctx)
	return h.restart(records)
}
