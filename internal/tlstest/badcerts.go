package tlstest

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"sync"
	"time"
)

// A Role is the side of a connection that a certificate is for.
type Role string

const (
	ServerRole Role = "server"
	ClientRole Role = "client"
)

func (r Role) name() string {
	if r == ClientRole {
		return ClientName
	}
	return ServerName
}

func (r Role) usage() x509.ExtKeyUsage {
	if r == ClientRole {
		return x509.ExtKeyUsageClientAuth
	}
	return x509.ExtKeyUsageServerAuth
}

// A Specimen is a certificate that has a fault, or something unusual that is allowed.
type Specimen struct {
	Name string
	// Good is set if a peer that trusts CA and expects the role's name accepts the certificate.
	Good bool
	// ServerOnly is set if it is wrong for servers only: a client's name is not compared.
	ServerOnly bool
	// Unsendable is set if an implementation may refuse to load it, as it may refuse a key that
	// doesn't match.
	Unsendable bool

	make func(Role) tls.Certificate
}

var specimens struct {
	sync.Mutex
	made map[string]tls.Certificate
}

// Cert returns the specimen for a role: the same one each time.
func (s Specimen) Cert(r Role) tls.Certificate {
	specimens.Lock()
	defer specimens.Unlock()
	id := s.Name + "/" + string(r)
	c, ok := specimens.made[id]
	if !ok {
		if specimens.made == nil {
			specimens.made = make(map[string]tls.Certificate)
		}
		c = s.make(r)
		specimens.made[id] = c
	}
	return c
}

func from(o Options) func(Role) tls.Certificate {
	return func(r Role) tls.Certificate {
		o := o
		if o.Names == nil {
			o.Names = []string{r.name()}
		}
		if o.Usage == nil {
			o.Usage = []x509.ExtKeyUsage{r.usage()}
		}
		return New(o)
	}
}

// issued defers a certificate's issuer and chain until it is made.
func issued(o Options, issuer func() *Authority, send bool) func(Role) tls.Certificate {
	return func(r Role) tls.Certificate {
		o := o
		o.Issuer = issuer()
		if send {
			o.Chain = []*x509.Certificate{o.Issuer.Cert}
		}
		return from(o)(r)
	}
}

// Specimens returns the certificates that the tests offer on both sides.
func Specimens() []Specimen {
	return allSpecimens()
}

var allSpecimens = sync.OnceValue(makeSpecimens)

func makeSpecimens() []Specimen {
	now := time.Now()
	noCA := func() *Authority {
		c := ServerCert(P256)
		return &Authority{Cert: c.Leaf, Key: Key(P256, "leaf")}
	}
	pathLen := sync.OnceValue(func() *Authority {
		first := NewAuthority("tlstest zero-length path", CA(), func(t *x509.Certificate) { t.MaxPathLenZero = true })
		return first
	})
	tooDeep := sync.OnceValue(func() *Authority { return NewAuthority("tlstest below the zero-length path", pathLen(), nil) })
	constrained := sync.OnceValue(func() *Authority {
		return NewAuthority("tlstest constrained", CA(), func(t *x509.Certificate) {
			t.PermittedDNSDomainsCritical = true
			t.PermittedDNSDomains = []string{"permitted.test"}
		})
	})
	oldIntermediate := sync.OnceValue(func() *Authority {
		return NewAuthority("tlstest expired intermediate", CA(), func(t *x509.Certificate) {
			t.NotBefore, t.NotAfter = now.Add(-48*time.Hour), now.Add(-24*time.Hour)
		})
	})
	critical := func(t *x509.Certificate) {
		t.ExtraExtensions = append(t.ExtraExtensions,
			pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 99999, 1}, Critical: true, Value: []byte{5, 0}})
	}
	return []Specimen{
		{Name: "good", Good: true, make: from(Options{})},
		{Name: "expired", make: from(Options{NotBefore: now.Add(-48 * time.Hour), NotAfter: now.Add(-24 * time.Hour)})},
		{Name: "not yet valid", make: from(Options{NotBefore: now.Add(24 * time.Hour), NotAfter: now.Add(48 * time.Hour)})},
		{Name: "wrong name", ServerOnly: true, make: from(Options{Names: []string{OtherName}})},
		{Name: "no name", ServerOnly: true, make: from(Options{Names: []string{}})},
		{Name: "name in the subject only", ServerOnly: true, make: from(Options{Edit: func(t *x509.Certificate) { t.DNSNames = nil }})},
		{Name: "unknown CA", make: issued(Options{}, OtherCA, false)},
		{Name: "unknown CA sent along", make: issued(Options{}, OtherCA, true)},
		{Name: "self-signed", make: from(Options{SelfSigned: true})},
		{Name: "wrong usage", make: func(r Role) tls.Certificate {
			wrong := x509.ExtKeyUsageClientAuth
			if r == ClientRole {
				wrong = x509.ExtKeyUsageServerAuth
			}
			return from(Options{Usage: []x509.ExtKeyUsage{wrong}})(r)
		}},
		{Name: "any usage", Good: true, make: from(Options{Usage: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})},
		{Name: "chain", Good: true, make: issued(Options{}, Intermediate, true)},
		{Name: "chain with its root", Good: true, make: func(r Role) tls.Certificate {
			c := issued(Options{}, Intermediate, true)(r)
			c.Certificate = append(c.Certificate, CA().Cert.Raw)
			return c
		}},
		{Name: "chain with a stray certificate", Good: true, make: func(r Role) tls.Certificate {
			c := issued(Options{}, Intermediate, true)(r)
			c.Certificate = [][]byte{c.Certificate[0], OtherCA().Cert.Raw, c.Certificate[1]}
			return c
		}},
		{Name: "missing intermediate", make: issued(Options{}, Intermediate, false)},
		{Name: "expired intermediate", make: issued(Options{}, oldIntermediate, true)},
		{Name: "path too long", make: func(r Role) tls.Certificate {
			c := issued(Options{}, tooDeep, true)(r)
			c.Certificate = append(c.Certificate, pathLen().Cert.Raw)
			return c
		}},
		{Name: "name outside the issuer's constraints", make: issued(Options{}, constrained, true)},
		{Name: "issued by a leaf", make: issued(Options{}, noCA, true)},
		{Name: "corrupted signature", make: from(Options{Corrupt: true})},
		{Name: "unknown critical extension", make: from(Options{Edit: critical})},
		{Name: "garbage after the leaf", make: func(r Role) tls.Certificate {
			c := from(Options{})(r)
			c.Certificate = append(c.Certificate, []byte("no certificate at all"))
			return c
		}, Unsendable: true},
		{Name: "garbage for a leaf", make: func(r Role) tls.Certificate {
			c := from(Options{})(r)
			return tls.Certificate{Certificate: [][]byte{[]byte("no certificate at all")}, PrivateKey: c.PrivateKey}
		}, Unsendable: true},
		{Name: "key that doesn't match", make: func(r Role) tls.Certificate {
			c := from(Options{})(r)
			c.PrivateKey = Key(P256, "stranger")
			return c
		}, Unsendable: true},
		// Good for crypto/tls; OpenSSL's security level 2 refuses it.
		{Name: "RSA-1024", Good: true, make: from(Options{Kind: RSA1024}), Unsendable: true},
	}
}

// SpecimenNamed returns the specimen of that name.
func SpecimenNamed(name string) Specimen {
	for _, s := range Specimens() {
		if s.Name == name {
			return s
		}
	}
	panic("tlstest: no specimen named " + name)
}
