package main

import (
	"crypto"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/ossl-go/ossl"
)

// setCredentials configures the certificates. It sets seen.credential to the index of the one whose
// key signs; -1 is the one without a preceding -new-x509-credential.
func setCredentials(s *settings, config *tls.Config, seen *seen) error {
	seen.credential = -1
	for i, c := range s.credentials {
		cert, err := loadCredential(s, c)
		if err != nil {
			return err
		}
		// Only the use of the key shows which certificate was chosen.
		signer, ok := cert.PrivateKey.(crypto.Signer)
		if !ok {
			return fmt.Errorf("key of type %T can't sign", cert.PrivateKey)
		}
		cert.PrivateKey = &notingSigner{signer, func() { seen.credential = i }}
		config.Certificates = append(config.Certificates, cert)
	}
	if s.credential.certFile != "" || s.credential.keyFile != "" {
		cert, err := loadCredential(s, &s.credential)
		if err != nil {
			return err
		}
		config.Certificates = append(config.Certificates, cert)
	}
	if s.server && s.ocspCallback {
		setOCSPCallback(s, config)
	}
	if s.failCertCallback {
		config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, errFailCertCallback }
		config.Certificates = nil
	}
	if !s.server {
		setClientCertificate(s, config)
	}
	return nil
}

// setOCSPCallback makes a server decide on its OCSP response when it chooses its certificate.
func setOCSPCallback(s *settings, config *tls.Config) {
	certs := config.Certificates
	if len(certs) == 0 {
		return
	}
	config.Certificates = nil
	config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		if s.failOCSPCallback {
			return nil, errFailOCSPCallback
		}
		return &certs[0], nil
	}
}

// setClientCertificate makes a client present its only certificate regardless of the server's
// request, as the runner expects: a mismatch is a failure, not a handshake without a certificate.
// If there are several, ossl chooses.
func setClientCertificate(s *settings, config *tls.Config) {
	certs := config.Certificates
	looks := s.oldClientCertCallback || s.failCertCallback || s.expectPeerVerifyPrefs != nil || s.expectClientCAList != nil
	if !looks && (len(certs) == 0 || len(s.credentials) > 0) {
		return
	}
	config.GetClientCertificate = func(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if err := checkVerifyPrefs(s, request.SignatureSchemes); err != nil {
			return nil, err
		}
		if err := checkClientCAList(s, request.AcceptableCAs); err != nil {
			return nil, err
		}
		switch {
		case s.failCertCallback:
			return nil, errFailCertCallback
		case len(certs) == 0:
			return &tls.Certificate{}, nil
		}
		return &certs[0], nil
	}
}

func checkClientCAList(s *settings, got [][]byte) error {
	if s.expectClientCAList == nil {
		return nil
	}
	var want [][]byte
	if list := *s.expectClientCAList; list != "<EMPTY>" {
		var err error
		if want, err = hexNames(list); err != nil {
			return err
		}
	}
	if !slices.EqualFunc(got, want, slices.Equal) {
		return fmt.Errorf("server names the authorities %x, not %x", got, want)
	}
	return nil
}

// serverSchemes are the server's signature schemes if only its clients' are specified: ossl has one
// list for both.
var serverSchemes = []tls.SignatureScheme{
	tls.PSSWithSHA256, tls.ECDSAWithP256AndSHA256, tls.ECDSAWithP384AndSHA384, tls.ECDSAWithP521AndSHA512, tls.Ed25519,
}

// loadCredential reads a credential's files.
func loadCredential(s *settings, c *credential) (tls.Certificate, error) {
	cert, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return cert, err
	}
	cert.SupportedSignatureAlgorithms = schemes(c.signingPrefs)
	if !s.declineOCSPCallback && !(s.server && s.failOCSPCallback) { // it would not be used
		cert.OCSPStaple = c.ocspResponse
	}
	if cert.SignedCertificateTimestamps, err = splitSCTs(c.scts); err != nil {
		return cert, err
	}
	// An unusable credential fails here instead of in a callback during the handshake.
	_, err = ossl.NewContext(&tls.Config{Certificates: []tls.Certificate{cert}})
	var refused *ossl.ConfigError
	if errors.As(err, &refused) {
		return cert, unimplemented(refused.Error())
	}
	return cert, err
}

// splitSCTs splits a SignedCertificateTimestampList: RFC 6962, section 3.3.
func splitSCTs(list []byte) (scts [][]byte, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	malformed := fmt.Errorf("malformed list of timestamps %x", list)
	if len(list) < 2 || int(list[0])<<8|int(list[1]) != len(list)-2 {
		return nil, malformed
	}
	for list = list[2:]; len(list) > 0; {
		if len(list) < 2 {
			return nil, malformed
		}
		n := 2 + int(list[0])<<8 | int(list[1])
		if n > len(list) {
			return nil, malformed
		}
		scts = append(scts, list[2:n])
		list = list[n:]
	}
	return scts, nil
}

// notingSigner records the use of a key.
type notingSigner struct {
	crypto.Signer
	note func()
}

func (s *notingSigner) Sign(rand io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	s.note()
	return s.Signer.Sign(rand, digest, opts)
}

// loadChain reads the certificates of a PEM file.
func loadChain(name string) (chain [][]byte, err error) {
	data, err := os.ReadFile(name)
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		chain = append(chain, block.Bytes)
	}
	return chain, err
}
