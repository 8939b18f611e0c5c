package testcert

import (
	"crypto"
	"crypto/x509"
	"time"

	"golang.org/x/crypto/ocsp"
)

// A Case is a chain that a server may send, and the rules of package audit that it breaks under the
// policy fast-and-safe, among those on certificates. Its leaf is for localhost, 127.0.0.1 and ::1
// except in the case "wrong-name".
type Case struct {
	Name   string // "expired"
	Leaf   *Cert
	Sent   []*Cert // after the leaf
	Root   *Cert   // trusted, except in the case "untrusted-root"
	Staple []byte
	Rules  []string
}

// Roots returns the trust anchors for which the case has its Rules.
func (c *Case) Roots() *x509.CertPool {
	pool := x509.NewCertPool()
	if c.Name != "untrusted-root" {
		pool.AddCert(c.Root.Certificate)
	}
	return pool
}

const day = 24 * time.Hour

// Cases makes the cases. They share their CAs.
func Cases() []Case {
	now := time.Now()
	root := Root(Template{CA: true, Name: "Test Root"})
	inter := root.Issue(Template{CA: true, Name: "Test Intermediate"})
	other := Root(Template{CA: true, Name: "Another Root"})
	good := inter.Issue(Template{SCTs: 2})
	responder := []string{"http://127.0.0.1:1/ocsp"}
	stapled := inter.Issue(Template{OCSP: responder})
	rsaRoot := Root(Template{CA: true, Name: "Test RSA Root", Key: Key("RSA 2048", "Test RSA Root")})
	rsaInter := rsaRoot.Issue(Template{CA: true, Name: "Test RSA Intermediate", Key: Key("RSA 2048", "Test RSA Intermediate")})
	self := Root(Template{})
	expiredInter := root.Issue(Template{CA: true, Name: "Expired Intermediate",
		NotBefore: now.Add(-90 * day), NotAfter: now.Add(-day)})
	noCA := inter.Issue(Template{Name: "no-ca.example", Names: []string{"no-ca.example"}})
	second := inter.Issue(Template{CA: true, Name: "Second Intermediate"})
	cross := other.Issue(Template{CA: true, Name: "Test Root", Key: root.Key,
		Edit: func(c *x509.Certificate) { c.SubjectKeyId = root.SubjectKeyId }})
	return []Case{
		{"good", good, []*Cert{inter}, root, nil, nil},
		{"good-ed25519", inter.Issue(Template{Key: Key("Ed25519", "localhost")}), []*Cert{inter}, root, nil,
			[]string{"key-not-in-policy"}},
		{"stapled", stapled, []*Cert{inter}, root, inter.Staple(stapled, ocsp.Good, now.Add(-time.Hour), now.Add(3*day)), nil},
		{"malformed", good.Malformed(inter), []*Cert{inter}, root, nil, []string{"certificate-malformed"}},
		{"expired", inter.Issue(Template{NotBefore: now.Add(-30 * day), NotAfter: now.Add(-day)}), []*Cert{inter}, root, nil,
			[]string{"certificate-expired"}},
		{"expired-intermediate", expiredInter.Issue(Template{}), []*Cert{expiredInter}, root, nil, []string{"certificate-expired"}},
		{"not-yet-valid", inter.Issue(Template{NotBefore: now.Add(day), NotAfter: now.Add(30 * day)}), []*Cert{inter}, root, nil,
			[]string{"certificate-not-yet-valid"}},
		{"expires-soon", inter.Issue(Template{NotBefore: now.Add(-80 * day), NotAfter: now.Add(5 * day)}), []*Cert{inter}, root, nil,
			[]string{"certificate-expires-soon"}},
		{"long-lived", inter.Issue(Template{NotAfter: now.Add(800 * day)}), []*Cert{inter}, root, nil,
			[]string{"certificate-lifetime"}},
		{"wrong-name", inter.Issue(Template{Name: "other.example", Names: []string{"other.example"}}), []*Cert{inter}, root, nil,
			[]string{"certificate-name"}},
		{"missing-intermediate", good, nil, root, nil, []string{"chain-incomplete"}},
		{"root-sent", good, []*Cert{inter, root}, root, nil, []string{"chain-root"}},
		{"needless", good, []*Cert{inter, other.Issue(Template{CA: true, Name: "Unrelated Intermediate"})}, root, nil,
			[]string{"chain-needless"}},
		{"twice", good, []*Cert{inter, inter}, root, nil, []string{"chain-needless"}},
		{"cross-signed", good, []*Cert{inter, cross}, root, nil, []string{"chain-needless"}},
		{"wrong-order", second.Issue(Template{}), []*Cert{inter, second}, root, nil, []string{"chain-order"}},
		{"untrusted-root", good, []*Cert{inter}, root, nil, []string{"certificate-untrusted"}},
		{"self-signed", self, nil, root, nil, []string{"certificate-untrusted"}},
		{"no-ca", noCA.Issue(Template{}), []*Cert{noCA, inter}, root, nil, []string{"certificate-untrusted"}},
		{"rsa-1024", rsaInter.Issue(Template{Key: Key("RSA 1024", "localhost")}), []*Cert{rsaInter}, rsaRoot, nil,
			[]string{"key-weak"}},
		{"sha-1", rsaInter.Issue(Template{Key: Key("RSA 2048", "localhost"), Hash: crypto.SHA1}), []*Cert{rsaInter}, rsaRoot, nil,
			[]string{"certificate-hash"}},
		{"20-kb", inter.Issue(Template{Padding: 20 << 10}), []*Cert{inter}, root, nil, nil},
		{"staple-missing", stapled, []*Cert{inter}, root, nil, []string{"staple-missing"}},
		{"must-staple", inter.Issue(Template{OCSP: responder, MustStaple: true}), []*Cert{inter}, root, nil,
			[]string{"staple-missing"}},
		{"staple-expired", stapled, []*Cert{inter}, root, inter.Staple(stapled, ocsp.Good, now.Add(-9*day), now.Add(-2*day)),
			[]string{"staple-invalid"}},
		{"staple-revoked", stapled, []*Cert{inter}, root, inter.Staple(stapled, ocsp.Revoked, now.Add(-time.Hour), now.Add(day)),
			[]string{"staple-invalid"}},
		{"staple-of-another", stapled, []*Cert{inter}, root, inter.Staple(good, ocsp.Good, now.Add(-time.Hour), now.Add(day)),
			[]string{"staple-invalid"}},
		{"staple-forged", stapled, []*Cert{inter}, root, other.Staple(stapled, ocsp.Good, now.Add(-time.Hour), now.Add(day)),
			[]string{"staple-invalid"}},
	}
}
