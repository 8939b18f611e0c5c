package httptls

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/ossl-go/ossl/keys"
)

// parsePair makes a certificate, with its Leaf, of the contents of its files. Unlike
// [tls.X509KeyPair] it leaves no certificate out.
func parsePair(certText []byte, keyFile string, keyText []byte, options []keys.Option) (cert tls.Certificate, err error) {
	chain, err := chainOf(certText)
	if err != nil {
		return cert, fmt.Errorf("the certificate file: %w", err)
	}
	key, plain, err := plainKey(keyText)
	if err != nil {
		return cert, fmt.Errorf("the key file: %w", err)
	}
	if plain {
		if cert, err = tls.X509KeyPair(chain, key); err != nil {
			return cert, explainPair(err, keyFile, options)
		}
		if cert.Leaf == nil {
			cert.Leaf, err = x509.ParseCertificate(cert.Certificate[0])
		}
		return cert, err
	}
	loaded, err := keys.Load(keyFile, options...)
	if err != nil {
		return cert, err
	}
	for block, rest := pem.Decode(chain); block != nil; block, rest = pem.Decode(rest) {
		cert.Certificate = append(cert.Certificate, block.Bytes)
	}
	cert.PrivateKey = loaded
	if cert.Leaf, err = x509.ParseCertificate(cert.Certificate[0]); err != nil {
		return cert, err
	}
	public, ok := cert.Leaf.PublicKey.(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(loaded.Public()) {
		return cert, errors.New("tls: private key does not match public key")
	}
	return cert, nil
}

// loadPair is [tls.LoadX509KeyPair], except that it refuses a chain with a PEM block that is cut or
// damaged: crypto/tls would leave its certificate out.
func loadPair(certFile, keyFile string) (cert tls.Certificate, err error) {
	text, err := os.ReadFile(certFile)
	if err != nil {
		return cert, err
	}
	chain, err := keys.NormalizePEM(text)
	if err != nil {
		return cert, fmt.Errorf("httptls: %s: %w", certFile, err)
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return cert, err
	}
	return tls.X509KeyPair(chain, key)
}

// explainPair returns the reason why package keys doesn't load a key either, which names its kind, or
// crypto/tls's error.
func explainPair(err error, keyFile string, options []keys.Option) error {
	if _, loadErr := keys.Load(keyFile, options...); errors.As(loadErr, new(*keys.Error)) {
		return loadErr
	}
	return err
}

// chainOf returns the certificates in PEM text, as PEM. It refuses blocks that hold certificates and
// that crypto/tls would leave out.
func chainOf(text []byte) (chain []byte, err error) {
	blocks, err := keys.DecodePEM(text)
	if err != nil {
		return nil, err
	}
	for i, block := range blocks {
		switch {
		case block.Type == "CERTIFICATE" && len(block.Headers) > 0:
			return nil, fmt.Errorf("PEM block %d is a certificate with headers", i+1)
		case block.Type == "CERTIFICATE":
			chain = append(chain, pem.EncodeToMemory(block)...)
		case strings.HasSuffix(block.Type, "CERTIFICATE") || block.Type == "PKCS7" || block.Type == "CMS":
			return nil, fmt.Errorf("PEM block %d is a %s, which is not sent: openssl x509 or openssl pkcs7 makes a CERTIFICATE of it",
				i+1, block.Type)
		}
	}
	if len(chain) == 0 {
		return nil, errors.New("it holds no certificate in PEM")
	}
	return chain, nil
}

// plainKey returns the first key in PEM text, which is the key that crypto/tls uses, and reports
// whether there is one that isn't encrypted.
func plainKey(text []byte) (key []byte, plain bool, err error) {
	if !strings.Contains(string(text), "-----BEGIN ") { // DER or PKCS #12
		return nil, false, nil
	}
	blocks, err := keys.DecodePEM(text)
	if err != nil {
		return nil, false, err
	}
	for _, block := range blocks {
		if block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "" {
			return nil, false, nil
		}
		if block.Type == "PRIVATE KEY" || strings.HasSuffix(block.Type, " PRIVATE KEY") {
			return pem.EncodeToMemory(block), true, nil
		}
	}
	return text, true, nil // crypto/tls reports why there is none
}
