package terminator

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/keys"
	"github.com/ossl-go/ossl/policy"
)

// signsWith returns the IANA names of the signature schemes that a key can sign with, or nil.
func signsWith(public any) []string {
	switch key := public.(type) {
	case *rsa.PublicKey:
		return []string{"rsa_pss_rsae_sha256", "rsa_pss_rsae_sha384", "rsa_pss_rsae_sha512",
			"rsa_pkcs1_sha256", "rsa_pkcs1_sha384", "rsa_pkcs1_sha512"}
	case *ecdsa.PublicKey:
		switch key.Curve.Params().Name {
		case "P-256":
			return []string{"ecdsa_secp256r1_sha256"}
		case "P-384":
			return []string{"ecdsa_secp384r1_sha384"}
		case "P-521":
			return []string{"ecdsa_secp521r1_sha512"}
		}
	case ed25519.PublicKey:
		return []string{"ed25519"}
	}
	return nil
}

// A policyPlan is the part of a plan that is about the policy.
type policyPlan struct {
	name           string // in the Config
	*policy.Policy        // nil for the library's defaults
}

// lacks returns which of the signature schemes the policy doesn't have.
func (p policyPlan) lacks(schemes []string) (lacks []string) {
	if p.Policy == nil {
		return nil
	}
	signatures := p.At(time.Now()).Signatures
	for _, scheme := range schemes {
		if !slices.ContainsFunc(signatures, func(v policy.Value) bool { return v.Name == scheme }) {
			lacks = append(lacks, scheme)
		}
	}
	return lacks
}

// explainPairs completes an error about the certificates in the files of pairs, if the policy doesn't have
// the signatures of one's key.
func (p policyPlan) explainPairs(err error, pairs []Pair) error {
	if !errors.As(err, new(*ossl.ConfigError)) {
		return err
	}
	for _, pair := range pairs {
		text, _ := os.ReadFile(pair.Cert) // a URI is no file
		blocks, _ := keys.DecodePEM(text)
		i := slices.IndexFunc(blocks, func(b *pem.Block) bool { return b.Type == "CERTIFICATE" })
		if i < 0 {
			continue
		}
		leaf, parseErr := x509.ParseCertificate(blocks[i].Bytes)
		if parseErr != nil {
			continue
		}
		if schemes := signsWith(leaf.PublicKey); len(schemes) > 0 && len(p.lacks(schemes)) == len(schemes) {
			return fmt.Errorf("the policy %s has no %s: take another kind of key, or --policy none: %w",
				p.name, strings.Join(schemes, ", "), err)
		}
	}
	return err
}

// clientHint describes which clients' certificates the policy forbids, for the log of failed
// handshakes, or is "".
func (p policyPlan) clientHint() string {
	lacks := p.lacks([]string{"ecdsa_secp256r1_sha256", "ecdsa_secp384r1_sha384", "ecdsa_secp521r1_sha512", "ed25519",
		"rsa_pss_rsae_sha256", "rsa_pss_pss_sha256"})
	if len(lacks) == 0 {
		return ""
	}
	return fmt.Sprintf("%s takes no client certificates with keys that sign by %s; --policy none takes those that this OpenSSL can",
		p.name, strings.Join(lacks, ", "))
}
