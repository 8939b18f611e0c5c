package tlstest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Names in the good certificates.
const (
	ServerName = "server.test"
	ClientName = "client.test"
	// OtherName is only in the certificates that are made for it.
	OtherName = "other.test"
)

// A KeyKind names a kind of private key.
type KeyKind string

const (
	P256    KeyKind = "P256"
	P384    KeyKind = "P384"
	P521    KeyKind = "P521"
	RSA2048 KeyKind = "RSA2048"
	RSA1024 KeyKind = "RSA1024"
	Ed25519 KeyKind = "Ed25519"
	MLDSA44 KeyKind = "ML-DSA-44"
	MLDSA65 KeyKind = "ML-DSA-65"
	MLDSA87 KeyKind = "ML-DSA-87"
)

// KeyKinds are the kinds of key of the good certificates.
var KeyKinds = []KeyKind{P256, RSA2048, Ed25519}

var keys struct {
	sync.Mutex
	made map[string]crypto.Signer
}

// Key returns the process's private key of the kind with the given name; the same arguments always
// give the same key.
func Key(kind KeyKind, name string) crypto.Signer {
	keys.Lock()
	defer keys.Unlock()
	id := string(kind) + "/" + name
	if k := keys.made[id]; k != nil {
		return k
	}
	k := newKey(kind)
	if keys.made == nil {
		keys.made = make(map[string]crypto.Signer)
	}
	keys.made[id] = k
	return k
}

func newKey(kind KeyKind) crypto.Signer {
	switch kind {
	case P256:
		return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	case P384:
		return must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))
	case P521:
		return must(ecdsa.GenerateKey(elliptic.P521(), rand.Reader))
	case RSA2048:
		return must(rsa.GenerateKey(rand.Reader, 2048))
	case RSA1024:
		return smallRSAKey()
	case Ed25519:
		_, k, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			panic(err)
		}
		return k
	}
	if k := newMLDSAKey(kind); k != nil {
		return k
	}
	panic("tlstest: no such kind of key: " + string(kind))
}

// smallRSAKey makes an RSA-1024 key without crypto/rsa, which may refuse so small a key in the
// future.
func smallRSAKey() *rsa.PrivateKey {
	e := big.NewInt(65537)
	one := big.NewInt(1)
	for {
		p, q := must(rand.Prime(rand.Reader, 512)), must(rand.Prime(rand.Reader, 512))
		n := new(big.Int).Mul(p, q)
		phi := new(big.Int).Mul(new(big.Int).Sub(p, one), new(big.Int).Sub(q, one))
		d := new(big.Int).ModInverse(e, phi)
		if d == nil || n.BitLen() != 1024 {
			continue
		}
		k := &rsa.PrivateKey{PublicKey: rsa.PublicKey{N: n, E: 65537}, D: d, Primes: []*big.Int{p, q}}
		k.Precompute()
		return k
	}
}

// An Authority signs certificates.
type Authority struct {
	Cert *x509.Certificate
	Key  crypto.Signer
}

// Pool returns a pool with only the authority in it.
func (a *Authority) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.Cert)
	return p
}

var authorities struct {
	root, other, intermediate             *Authority
	rootOnce, otherOnce, intermediateOnce sync.Once
}

// CA is the authority that tests trust.
func CA() *Authority {
	authorities.rootOnce.Do(func() { authorities.root = NewAuthority("tlstest root", nil, nil) })
	return authorities.root
}

// OtherCA is an authority that no configuration trusts.
func OtherCA() *Authority {
	authorities.otherOnce.Do(func() { authorities.other = NewAuthority("tlstest other root", nil, nil) })
	return authorities.other
}

// Intermediate is an authority signed by CA.
func Intermediate() *Authority {
	authorities.intermediateOnce.Do(func() {
		authorities.intermediate = NewAuthority("tlstest intermediate", CA(), nil)
	})
	return authorities.intermediate
}

// NewAuthority makes an authority signed by parent or, if that is nil, by itself. The edit
// function, if any, changes the template last.
func NewAuthority(name string, parent *Authority, edit func(*x509.Certificate)) *Authority {
	return NewAuthorityOf(P256, name, parent, edit)
}

// NewAuthorityOf is NewAuthority with a kind of key.
func NewAuthorityOf(kind KeyKind, name string, parent *Authority, edit func(*x509.Certificate)) *Authority {
	key := Key(kind, "authority "+name)
	c := New(Options{Names: []string{name}, Key: key, Issuer: parent, SelfSigned: parent == nil, Edit: func(t *x509.Certificate) {
		t.DNSNames = nil
		t.NotBefore, t.NotAfter = t.NotBefore.AddDate(-10, 0, 0), t.NotAfter.AddDate(10, 0, 0)
		t.IsCA = true
		t.BasicConstraintsValid = true
		t.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
		t.ExtKeyUsage = nil
		if edit != nil {
			edit(t)
		}
	}})
	return &Authority{Cert: c.Leaf, Key: key}
}

// Options describe a certificate for New. The zero value makes a good P-256 certificate for both
// client and server, signed by CA, for the name ServerName.
type Options struct {
	Kind       KeyKind       // kind of key; P256 if empty
	Key        crypto.Signer // the key itself, instead of Kind
	Names      []string      // DNS names or IP addresses; the first is the subject too
	Usage      []x509.ExtKeyUsage
	NotBefore  time.Time
	NotAfter   time.Time
	Issuer     *Authority
	SelfSigned bool
	Chain      []*x509.Certificate     // certificates to send after the leaf
	Edit       func(*x509.Certificate) // changes the template last
	Corrupt    bool                    // spoil the signature
}

var serial atomic.Int64

// New makes a certificate with its private key, ready for a tls.Config.
func New(o Options) tls.Certificate {
	if o.Kind == "" {
		o.Kind = P256
	}
	if o.Names == nil {
		o.Names = []string{ServerName}
	}
	if o.Key == nil {
		o.Key = Key(o.Kind, "leaf")
	}
	if o.Usage == nil {
		o.Usage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}
	now := time.Now()
	if o.NotBefore.IsZero() {
		o.NotBefore = now.Add(-time.Hour)
	}
	if o.NotAfter.IsZero() {
		o.NotAfter = now.Add(24 * time.Hour)
	}
	n := serial.Add(1)
	t := &x509.Certificate{
		SerialNumber:          big.NewInt(n),
		NotBefore:             o.NotBefore,
		NotAfter:              o.NotAfter,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage:           o.Usage,
		BasicConstraintsValid: true,
	}
	if len(o.Names) > 0 {
		t.Subject = pkix.Name{CommonName: o.Names[0], Organization: []string{"tlstest"}}
	}
	for _, name := range o.Names {
		if ip := net.ParseIP(name); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, name)
		}
	}
	if o.Edit != nil {
		o.Edit(t)
	}
	parent, signer := t, o.Key
	if !o.SelfSigned {
		if o.Issuer == nil {
			o.Issuer = CA()
		}
		parent, signer = o.Issuer.Cert, o.Issuer.Key
	}
	der := must(x509.CreateCertificate(rand.Reader, t, parent, o.Key.Public(), signer))
	if o.Corrupt {
		der[len(der)-5] ^= 1
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		panic(fmt.Sprintf("tlstest: the certificate made for %v: %v", o.Names, err))
	}
	c := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: o.Key, Leaf: leaf}
	for _, x := range o.Chain {
		c.Certificate = append(c.Certificate, x.Raw)
	}
	return c
}

var goodCerts struct {
	sync.Mutex
	made map[string]tls.Certificate
}

func good(kind KeyKind, name string, usage x509.ExtKeyUsage) tls.Certificate {
	goodCerts.Lock()
	defer goodCerts.Unlock()
	id := string(kind) + "/" + name
	if c, ok := goodCerts.made[id]; ok {
		return c
	}
	c := New(Options{Kind: kind, Names: []string{name}, Usage: []x509.ExtKeyUsage{usage}})
	if goodCerts.made == nil {
		goodCerts.made = make(map[string]tls.Certificate)
	}
	goodCerts.made[id] = c
	return c
}

// ServerCert returns the good server certificate of a kind.
func ServerCert(kind KeyKind) tls.Certificate {
	return good(kind, ServerName, x509.ExtKeyUsageServerAuth)
}

// ClientCert returns the good client certificate of a kind.
func ClientCert(kind KeyKind) tls.Certificate {
	return good(kind, ClientName, x509.ExtKeyUsageClientAuth)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
