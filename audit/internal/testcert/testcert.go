// Package testcert makes certificates and chains for tests, sound ones and broken ones. Its
// functions panic if they can't make a certificate, because its callers are tests.
package testcert

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ocsp"
)

// A Template describes a certificate to make. Its zero value stands for a certificate for an ECDSA
// key on P-256, for localhost, 127.0.0.1 and ::1, valid from an hour ago for 90 days.
type Template struct {
	Name       string // common name; "localhost", or "Test CA" of a CA
	Names      []string
	Addresses  []net.IP // if Names and Addresses are nil: localhost, 127.0.0.1, ::1
	NotBefore  time.Time
	NotAfter   time.Time
	Key        crypto.Signer // Key("ECDSA secp256r1", Name) if nil
	CA         bool
	Hash       crypto.Hash // of the signature: SHA-256 if 0, or SHA-1
	OCSP       []string    // responders
	Issuers    []string    // URLs of the issuer's certificate
	MustStaple bool
	SCTs       int // embedded, with signatures that don't verify
	Padding    int // bytes of an extension that means nothing

	// Edit changes the certificate before it is signed.
	Edit func(*x509.Certificate)
}

// A Cert is a certificate and its key.
type Cert struct {
	*x509.Certificate
	Key crypto.Signer
}

// Malformed returns c with a negative serial number and a malformed extension, signed by the issuer.
// OpenSSL takes such a certificate, and crypto/x509 refuses it.
func (c *Cert) Malformed(issuer *Cert) *Cert {
	type tbs struct {
		Version                                   int `asn1:"optional,explicit,default:0,tag:0"`
		Serial                                    *big.Int
		Algorithm, Issuer, Validity, Subject, Key asn1.RawValue
		Extensions                                []pkix.Extension `asn1:"optional,explicit,tag:3"`
	}
	var whole struct {
		TBS       tbs
		Algorithm asn1.RawValue
		Signature asn1.BitString
	}
	must(asn1.Unmarshal(c.Raw, &whole))
	whole.TBS.Serial = big.NewInt(-5)
	whole.TBS.Extensions = append(whole.TBS.Extensions, pkix.Extension{
		Id: asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 1}, Value: []byte{0x30, 5, 0x30}, // authorityInfoAccess
	})
	digest := sha256.Sum256(must(asn1.Marshal(whole.TBS)))
	signature := must(issuer.Key.Sign(rand.Reader, digest[:], crypto.SHA256))
	whole.Signature = asn1.BitString{Bytes: signature, BitLength: 8 * len(signature)}
	certificate := *c.Certificate
	certificate.Raw = must(asn1.Marshal(whole))
	return &Cert{Certificate: &certificate, Key: c.Key}
}

// Root makes a self-signed certificate.
func Root(t Template) *Cert { return issue(nil, t) }

// Issue makes a certificate that c signs.
func (c *Cert) Issue(t Template) *Cert { return issue(c, t) }

func issue(issuer *Cert, t Template) *Cert {
	c := t.certificate()
	key := t.Key
	if key == nil {
		key = Key("ECDSA secp256r1", c.Subject.CommonName)
	}
	parent, signer := c, key
	if issuer != nil {
		parent, signer = issuer.Certificate, issuer.Key
	}
	if t.Hash == crypto.SHA1 {
		c.SignatureAlgorithm = x509.ECDSAWithSHA1
		if _, ok := signer.(*rsa.PrivateKey); ok {
			c.SignatureAlgorithm = x509.SHA1WithRSA
		}
	}
	if t.Edit != nil {
		t.Edit(c)
	}
	der := must(x509.CreateCertificate(rand.Reader, c, parent, key.Public(), signer))
	return &Cert{Certificate: must(x509.ParseCertificate(der)), Key: key}
}

func (t Template) certificate() *x509.Certificate {
	name := t.Name
	switch {
	case name == "" && t.CA:
		name = "Test CA"
	case name == "":
		name = "localhost"
	}
	c := &x509.Certificate{
		SerialNumber: must(rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    t.NotBefore,
		NotAfter:     t.NotAfter,
		DNSNames:     t.Names,
		IPAddresses:  t.Addresses,
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		OCSPServer:   t.OCSP,

		IssuingCertificateURL: t.Issuers,
		BasicConstraintsValid: true,
	}
	if c.NotBefore.IsZero() {
		c.NotBefore = time.Now().Add(-time.Hour)
	}
	if c.NotAfter.IsZero() {
		c.NotAfter = c.NotBefore.Add(90 * 24 * time.Hour)
		if t.CA {
			c.NotAfter = c.NotBefore.Add(10 * 365 * 24 * time.Hour)
		}
	}
	if t.CA {
		c.IsCA, c.ExtKeyUsage = true, nil
		c.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature
	} else if t.Names == nil && t.Addresses == nil {
		c.DNSNames = []string{"localhost"}
		c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1).To4(), net.IPv6loopback}
	}
	c.ExtraExtensions = t.extensions()
	return c
}

func (t Template) extensions() []pkix.Extension {
	var all []pkix.Extension
	if t.MustStaple { // RFC 7633: a sequence of TLS extension numbers
		all = append(all, pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 24}, Value: must(asn1.Marshal([]int{5}))})
	}
	if t.SCTs > 0 {
		list := SCTs(t.SCTs)
		all = append(all, pkix.Extension{
			Id:    asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 11129, 2, 4, 2},
			Value: must(asn1.Marshal(list)),
		})
	}
	if t.Padding > 0 {
		pad := make([]byte, t.Padding)
		must(rand.Read(pad))
		all = append(all, pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 32473, 1}, Value: must(asn1.Marshal(pad))})
	}
	return all
}

// SCTs returns a SignedCertificateTimestampList (RFC 6962, section 3.3) of n timestamps, whose
// signatures don't verify.
func SCTs(n int) []byte {
	var list []byte
	for range n {
		sct := make([]byte, 47+2+70) // version, log, time, no extensions, algorithm, signature
		must(rand.Read(sct[1:]))
		sct[41], sct[42] = 0, 0
		sct[43], sct[44], sct[45], sct[46] = 4, 3, 0, 72
		list = append(list, byte(len(sct)>>8), byte(len(sct)))
		list = append(list, sct...)
	}
	return append([]byte{byte(len(list) >> 8), byte(len(list))}, list...)
}

var keys struct {
	sync.Mutex
	made map[string]crypto.Signer
}

// Key returns a key of a kind that audit.ChainFacts.Key names, such as "ECDSA secp256r1", "RSA 2048"
// or "Ed25519". Calls with the same arguments return the same key.
func Key(kind, name string) crypto.Signer {
	keys.Lock()
	defer keys.Unlock()
	id := kind + "\x00" + name
	if keys.made[id] == nil {
		if keys.made == nil {
			keys.made = map[string]crypto.Signer{}
		}
		keys.made[id] = makeKey(kind)
	}
	return keys.made[id]
}

func makeKey(kind string) crypto.Signer {
	curves := map[string]elliptic.Curve{
		"ECDSA secp224r1": elliptic.P224(), "ECDSA secp256r1": elliptic.P256(),
		"ECDSA secp384r1": elliptic.P384(), "ECDSA secp521r1": elliptic.P521(),
	}
	if curve := curves[kind]; curve != nil {
		return must(ecdsa.GenerateKey(curve, rand.Reader))
	}
	if kind == "Ed25519" {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return must(key, err)
	}
	var bits int
	if _, err := fmt.Sscanf(kind, "RSA %d", &bits); err != nil {
		panic("testcert: unknown kind of key " + kind)
	}
	return must(rsa.GenerateKey(rand.Reader, bits))
}

// Staple makes the OCSP response of a leaf, signed by its issuer. The status is ocsp.Good,
// ocsp.Revoked or ocsp.Unknown.
func (c *Cert) Staple(leaf *Cert, status int, from, until time.Time) []byte {
	return must(ocsp.CreateResponse(c.Certificate, c.Certificate, ocsp.Response{
		Status: status, SerialNumber: leaf.SerialNumber, ThisUpdate: from, NextUpdate: until,
		RevokedAt: from, IssuerHash: crypto.SHA1,
	}, c.Key))
}

// DelegatedStaple is like Staple, but a responder signs the response, whose certificate is in it.
func (c *Cert) DelegatedStaple(leaf, responder *Cert, status int, from, until time.Time) []byte {
	return must(ocsp.CreateResponse(c.Certificate, responder.Certificate, ocsp.Response{
		Status: status, SerialNumber: leaf.SerialNumber, ThisUpdate: from, NextUpdate: until,
		RevokedAt: from, IssuerHash: crypto.SHA1, Certificate: responder.Certificate,
	}, responder.Key))
}

// TLS returns a server's certificate. The server sends c and then the chain.
func (c *Cert) TLS(chain ...*Cert) tls.Certificate {
	all := tls.Certificate{PrivateKey: c.Key, Certificate: [][]byte{c.Raw}}
	for _, link := range chain {
		all.Certificate = append(all.Certificate, link.Raw)
	}
	return all
}

// PEM returns c and then the chain in PEM.
func (c *Cert) PEM(chain ...*Cert) []byte {
	var all []byte
	for _, link := range append([]*Cert{c}, chain...) {
		all = append(all, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: link.Raw})...)
	}
	return all
}

// KeyPEM returns c's key in PEM, as PKCS #8.
func (c *Cert) KeyPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: must(x509.MarshalPKCS8PrivateKey(c.Key))})
}

// Hash returns the SHA-256 of c in hexadecimal.
func (c *Cert) Hash() string { return fmt.Sprintf("%x", sha256.Sum256(c.Raw)) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(fmt.Sprintf("testcert: %v", err))
	}
	return v
}
