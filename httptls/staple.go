package httptls

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"golang.org/x/crypto/ocsp"
)

const (
	maxStaple     = 16 << 10        // the size of a response that is parsed
	maxStapleSkew = 5 * time.Minute // the difference between clocks that is allowed
)

// CheckStaple verifies the OCSP response (RFC 6960) that a server has stapled. It is for a client's
// VerifyConnection, or [ossl.WithVerification]: crypto/tls and ossl don't look at the response. If
// there is one, it must be signed for the server's certificate by its issuer or for that one, be valid
// now, with a nextUpdate, and say that the certificate is good. If there is none, the certificate must
// not demand one (RFC 7633). Intermediate certificates have no responses: see [ossl.WithCRLs].
//
// A resumed connection has the response of the first one. When that has expired, the handshake fails
// once, which removes the session. The alert is bad_certificate, as for all of VerifyConnection's
// refusals.
func CheckStaple(state tls.ConnectionState) error {
	if len(state.VerifiedChains) == 0 {
		return errors.New("httptls: CheckStaple needs a verified chain")
	}
	var err error
	for _, chain := range state.VerifiedChains {
		if err = checkStaple(state.OCSPResponse, chain, time.Now()); err == nil {
			return nil
		}
	}
	return &tls.CertificateVerificationError{UnverifiedCertificates: state.PeerCertificates,
		Err: fmt.Errorf("httptls: the server's OCSP response: %w", err)}
}

func checkStaple(der []byte, chain []*x509.Certificate, now time.Time) error {
	leaf := chain[0]
	switch {
	case len(der) == 0 && demandsStaple(leaf):
		return errors.New("it is missing, and the certificate demands one")
	case len(der) == 0:
		return nil
	case len(chain) < 2:
		return errors.New("the certificate is trusted as it is, and has no issuer")
	case len(der) > maxStaple:
		return fmt.Errorf("it has %d bytes", len(der))
	}
	issuer := chain[1]
	response, err := ocsp.ParseResponseForCert(der, leaf, issuer)
	if err != nil {
		return err
	}
	if err := checkCertID(response, leaf, issuer); err != nil {
		return err
	}
	// ParseResponseForCert has verified that the issuer signed the responder's certificate, if there is one.
	if responder := response.Certificate; responder != nil && !responder.Equal(issuer) {
		switch {
		case !slices.Contains(responder.ExtKeyUsage, x509.ExtKeyUsageOCSPSigning):
			return errors.New("its signer's certificate isn't for OCSP")
		case now.After(responder.NotAfter) || now.Before(responder.NotBefore.Add(-maxStapleSkew)):
			return errors.New("its signer's certificate isn't valid now")
		}
	}
	switch {
	case response.Status == ocsp.Revoked:
		return fmt.Errorf("the certificate was revoked on %s, for reason %d", response.RevokedAt.Format(time.DateOnly),
			response.RevocationReason)
	case response.Status != ocsp.Good:
		return errors.New("the certificate's status is unknown")
	case now.Before(response.ThisUpdate.Add(-maxStapleSkew)):
		return fmt.Errorf("it is valid only from %s on", response.ThisUpdate.Format(time.RFC3339))
	case response.NextUpdate.IsZero():
		return errors.New("it has no nextUpdate")
	case now.After(response.NextUpdate):
		return fmt.Errorf("it expired at %s", response.NextUpdate.Format(time.RFC3339))
	}
	return nil
}

// checkCertID returns an error unless a response is for the leaf of that issuer. ParseResponseForCert looks at the
// serial number alone, and a responder may work for several authorities.
func checkCertID(response *ocsp.Response, leaf, issuer *x509.Certificate) error {
	var data struct { // RFC 6960, section 4.2.1
		Version   int `asn1:"optional,default:0,explicit,tag:0"`
		Responder asn1.RawValue
		Produced  time.Time `asn1:"generalized"`
		Responses []struct {
			CertID struct {
				Hash              pkix.AlgorithmIdentifier
				NameHash, KeyHash []byte
				Serial            *big.Int
			}
		}
	}
	if _, err := asn1.Unmarshal(response.TBSResponseData, &data); err != nil {
		return err
	}
	der, err := ocsp.CreateRequest(leaf, issuer, &ocsp.RequestOptions{Hash: response.IssuerHash})
	if err != nil {
		return err
	}
	want, err := ocsp.ParseRequest(der)
	if err != nil {
		return err
	}
	for _, single := range data.Responses {
		id := &single.CertID
		if id.Serial.Cmp(leaf.SerialNumber) == 0 &&
			(!bytes.Equal(id.NameHash, want.IssuerNameHash) || !bytes.Equal(id.KeyHash, want.IssuerKeyHash)) {
			return errors.New("it is for another issuer's certificate with the same serial number")
		}
	}
	return nil
}

// demandsStaple reports whether a certificate has the TLS feature status_request (RFC 7633). One
// whose features are malformed has it.
func demandsStaple(leaf *x509.Certificate) bool {
	const statusRequest = 5
	for _, e := range leaf.Extensions {
		if e.Id.Equal(asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 24}) {
			var features []int
			_, err := asn1.Unmarshal(e.Value, &features)
			return err != nil || slices.Contains(features, statusRequest)
		}
	}
	return false
}
