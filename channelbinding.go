package ossl

import (
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/ossl-go/ossl/internal/stdtls"
)

// ChannelBinding returns the bytes to which an authentication above TLS, such as SCRAM-SHA-256-PLUS,
// is bound. They are of one of these types:
//
//   - "tls-exporter" (RFC 9266), of TLS 1.3 and TLS 1.2. TLS 1.2 needs Extended Master Secret, as
//     [Conn.ExportKeyingMaterial] does.
//   - "tls-server-end-point" (RFC 5929, section 4), the hash of the server's certificate. In a server,
//     it needs Go 1.27 and a full handshake, since older Go releases have no LocalCertificate in
//     [tls.ConnectionState], and neither has a resumed connection; see [ServerEndPoint].
//   - "tls-unique" (RFC 5929, section 3), of TLS 1.2: the TLSUnique of [tls.ConnectionState]. TLS 1.3
//     has none.
//
// It is an error if the connection has no binding of the type, or the handshake isn't complete.
func (c *Conn) ChannelBinding(kind string) ([]byte, error) {
	if !c.complete.Load() {
		return nil, errors.New("ossl: channel binding: the handshake is not complete")
	}
	switch kind {
	case "tls-exporter":
		return c.ExportKeyingMaterial("EXPORTER-Channel-Binding", []byte{}, 32)
	case "tls-server-end-point":
		if c.isClient {
			if len(c.state.PeerCertificates) == 0 {
				return nil, errors.New("ossl: channel binding tls-server-end-point: the server has no certificate")
			}
			return ServerEndPoint(c.state.PeerCertificates[0])
		}
		local := stdtls.LocalCertificate(&c.state)
		if len(local) == 0 {
			return nil, errors.New("ossl: channel binding tls-server-end-point: this connection doesn't have the server's certificate")
		}
		cert, err := x509.ParseCertificate(local[0])
		if err != nil {
			return nil, err
		}
		return ServerEndPoint(cert)
	case "tls-unique":
		if len(c.state.TLSUnique) == 0 {
			return nil, errors.New("ossl: channel binding tls-unique: this connection has none")
		}
		return c.state.TLSUnique, nil
	}
	return nil, fmt.Errorf("ossl: channel binding %q is unknown", kind)
}

// ServerEndPoint returns the channel binding "tls-server-end-point" of connections to a server with
// this certificate: its hash, by the hash function of its signature, or by SHA-256 in place of MD5 and
// SHA-1 (RFC 5929, section 4.1). It is an error if the signature has no single hash function.
func ServerEndPoint(cert *x509.Certificate) ([]byte, error) {
	var hash crypto.Hash
	switch cert.SignatureAlgorithm {
	case x509.MD5WithRSA, x509.SHA1WithRSA, x509.DSAWithSHA1, x509.ECDSAWithSHA1,
		x509.SHA256WithRSA, x509.DSAWithSHA256, x509.ECDSAWithSHA256, x509.SHA256WithRSAPSS:
		hash = crypto.SHA256
	case x509.SHA384WithRSA, x509.ECDSAWithSHA384, x509.SHA384WithRSAPSS:
		hash = crypto.SHA384
	case x509.SHA512WithRSA, x509.ECDSAWithSHA512, x509.SHA512WithRSAPSS:
		hash = crypto.SHA512
	default:
		return nil, fmt.Errorf("ossl: channel binding tls-server-end-point is undefined for certificates signed with %v",
			cert.SignatureAlgorithm)
	}
	h := hash.New()
	h.Write(cert.Raw)
	return h.Sum(nil), nil
}
