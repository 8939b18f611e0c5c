package terminator

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
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

// policyLacks returns those of some signature schemes that the policy doesn't have.
func (c *Config) policyLacks(schemes []string) (lacks []string) {
	if c.Policy == "" {
		return nil
	}
	p, err := policy.Get(c.Policy)
	if err != nil {
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

// explainKey completes the error about a certificate if the policy doesn't have its key's signatures.
func (c *Config) explainKey(err error, public any) error {
	schemes := signsWith(public)
	lacks := c.policyLacks(schemes)
	if !errors.As(err, new(*ossl.ConfigError)) || len(lacks) == 0 || len(lacks) < len(schemes) {
		return err
	}
	return fmt.Errorf("the policy %s has no %s: take another kind of key, or --policy none: %w",
		c.Policy, strings.Join(schemes, ", "), err)
}

// explainPairs is explainKey for the certificates in the files of pairs.
func (c *Config) explainPairs(err error, pairs []Pair) error {
	for _, p := range pairs {
		text, readErr := os.ReadFile(p.Cert) // a URI is no file
		if readErr != nil {
			continue
		}
		blocks, _ := keys.DecodePEM(text)
		for _, block := range blocks {
			if block.Type != "CERTIFICATE" {
				continue
			}
			if leaf, parseErr := x509.ParseCertificate(block.Bytes); parseErr == nil {
				if explained := c.explainKey(err, leaf.PublicKey); explained != err {
					return explained
				}
			}
			break
		}
	}
	return err
}

// clientHint says which clients' certificates the policy forbids, for the log of failed handshakes, or
// is "".
func (c *Config) clientHint() string {
	if !slices.ContainsFunc(c.Sites, func(s Site) bool { return len(s.ClientCA) > 0 }) {
		return ""
	}
	lacks := c.policyLacks([]string{"ecdsa_secp256r1_sha256", "ecdsa_secp384r1_sha384", "ecdsa_secp521r1_sha512", "ed25519",
		"rsa_pss_rsae_sha256", "rsa_pss_pss_sha256"})
	if len(lacks) == 0 {
		return ""
	}
	return fmt.Sprintf("%s takes no client certificates with keys that sign by %s; --policy none takes those that this OpenSSL can",
		c.Policy, strings.Join(lacks, ", "))
}
