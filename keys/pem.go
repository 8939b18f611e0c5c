package keys

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/ossl-go/ossl/internal/pemtext"
)

// DecodePEM returns the blocks of a text in PEM. [pem.Decode] skips a block that is cut or damaged,
// so that a chain would be served without one of its certificates; DecodePEM returns an error with
// the line in which such a block begins. Text between blocks is ignored (RFC 7468, section 5.2), and
// so is a byte order mark at the beginning of a line, as in files that were put together.
func DecodePEM(text []byte) ([]*pem.Block, error) { return pemtext.Decode(text) }

// NormalizePEM returns the blocks of a text in PEM, encoded anew, for functions that would leave out some of the
// text's own, such as [tls.X509KeyPair] and [x509.CertPool.AppendCertsFromPEM]. It fails with the
// same errors as [DecodePEM].
func NormalizePEM(text []byte) (normal []byte, err error) {
	blocks, err := pemtext.Decode(text)
	for _, block := range blocks {
		normal = append(normal, pem.EncodeToMemory(block)...)
	}
	return normal, err
}

// ParseCertificates returns the certificates of a text in PEM that holds nothing else, in their order.
func ParseCertificates(text []byte) (certs []*x509.Certificate, err error) {
	blocks, err := pemtext.Decode(text)
	if err != nil {
		return nil, err
	}
	for i, block := range blocks {
		if block.Type != "CERTIFICATE" || len(block.Headers) > 0 {
			return nil, fmt.Errorf("PEM block %d is a %q, not a certificate", i+1, block.Type)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("PEM block %d: %w", i+1, err)
		}
		certs = append(certs, cert)
	}
	if len(certs) == 0 {
		return nil, errors.New("it holds no certificate in PEM")
	}
	return certs, nil
}
