package audit

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ocsp"
)

// maxSkew is the difference between clocks that verifyStaple allows.
const maxSkew = 5 * time.Minute

// maxStaple bounds the bytes of a response that is parsed. A responder's certificate is within, and
// its key is used before it is known whether the issuer signed it.
const maxStaple = 16 << 10

// verifyStaple verifies a stapled OCSP response as a client would. The issuer is nil if the server
// didn't send it; it may be a trust anchor then.
func verifyStaple(facts *ChainFacts, leaf, issuer *x509.Certificate, in chainInput) {
	if issuer == nil {
		issuer = anchor(leaf, in)
	}
	response, err := parseStaple(in.staple, leaf, issuer, in.now)
	if response != nil {
		facts.SCTs += stapledSCTs(response)
		facts.StapleFrom, facts.StapleUntil = jsonTime(response.ThisUpdate), jsonTime(response.NextUpdate)
	}
	if err != nil {
		facts.StapleError = strings.TrimPrefix(err.Error(), "ocsp: ")
	}
}

// anchor returns the trust anchor that issued the leaf, or nil.
func anchor(leaf *x509.Certificate, in chainInput) *x509.Certificate {
	chains, err := leaf.Verify(x509.VerifyOptions{Roots: in.roots, CurrentTime: leaf.NotAfter.Add(-time.Second)})
	if err != nil || len(chains[0]) < 2 {
		return nil
	}
	return chains[0][1]
}

// jsonTime returns a time of ASN.1 that JSON can have: there an offset of a day, or a year after 9999,
// is an error. It returns nil for others and for no time.
func jsonTime(t time.Time) *time.Time {
	if t = t.UTC(); t.IsZero() || t.Year() < 0 || t.Year() > 9999 {
		return nil
	}
	return &t
}

// inJSON returns a time of ASN.1 as JSON can have it: the nearest one, if there is none.
func inJSON(t time.Time) time.Time {
	switch t = t.UTC(); {
	case t.Year() < 0:
		return time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	case t.Year() > 9999:
		return time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	}
	return t
}

func parseStaple(der []byte, leaf, issuer *x509.Certificate, now time.Time) (*ocsp.Response, error) {
	if len(der) > maxStaple {
		return nil, fmt.Errorf("it has %d bytes", len(der))
	}
	if issuer == nil {
		return nil, errors.New("its signature can't be verified without the leaf's issuer")
	}
	response, err := ocsp.ParseResponseForCert(der, leaf, issuer)
	if err != nil {
		return nil, err
	}
	if !isFor(response, leaf, issuer) {
		return response, errors.New("it is for another issuer's certificate with the same serial number")
	}
	// ParseResponseForCert verified that the issuer signed the responder's certificate, if there is one.
	if responder := response.Certificate; responder != nil && !responder.Equal(issuer) {
		switch {
		case !slices.Contains(responder.ExtKeyUsage, x509.ExtKeyUsageOCSPSigning):
			return response, errors.New("its signer's certificate isn't for OCSP")
		case now.After(responder.NotAfter) || now.Before(responder.NotBefore.Add(-maxSkew)):
			return response, errors.New("its signer's certificate isn't valid now")
		}
	}
	switch {
	case response.Status == ocsp.Revoked:
		return response, fmt.Errorf("it says that the certificate was revoked on %s", response.RevokedAt.Format(time.DateOnly))
	case response.Status != ocsp.Good:
		return response, errors.New("it says that the certificate's status is unknown")
	case now.Before(response.ThisUpdate.Add(-maxSkew)):
		return response, fmt.Errorf("it is valid only from %s on", response.ThisUpdate.Format(time.RFC3339))
	case !response.NextUpdate.IsZero() && now.After(response.NextUpdate):
		return response, fmt.Errorf("it expired at %s", response.NextUpdate.Format(time.RFC3339))
	}
	return response, nil
}

// isFor reports whether a response is for the leaf of that issuer. ParseResponseForCert looks at the serial number alone,
// and a responder may work for several authorities.
func isFor(response *ocsp.Response, leaf, issuer *x509.Certificate) bool {
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
		return false
	}
	der, err := ocsp.CreateRequest(leaf, issuer, &ocsp.RequestOptions{Hash: response.IssuerHash})
	if err != nil {
		return false
	}
	want, err := ocsp.ParseRequest(der)
	if err != nil {
		return false
	}
	for _, single := range data.Responses {
		id := &single.CertID
		if id.Serial.Cmp(leaf.SerialNumber) == 0 &&
			(!bytes.Equal(id.NameHash, want.IssuerNameHash) || !bytes.Equal(id.KeyHash, want.IssuerKeyHash)) {
			return false
		}
	}
	return true
}

// stapledSCTs counts the timestamps in an OCSP response (RFC 6962, section 3.3).
func stapledSCTs(response *ocsp.Response) int {
	for _, e := range response.Extensions {
		if e.Id.String() == "1.3.6.1.4.1.11129.2.4.5" {
			return countSCTs(octets(e.Value))
		}
	}
	return 0
}
