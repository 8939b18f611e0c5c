package zoo

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"sync"

	"github.com/ossl-go/ossl/audit/internal/testcert"
)

// pki has the certificates of the servers that aren't about certificates. All are for localhost.
var pki = struct {
	ecdsa, rsa2048, rsa4096 func() *identity
}{identityOf("ECDSA secp256r1"), identityOf("RSA 2048"), identityOf("RSA 4096")}

// An identity is a leaf, its chain and the root.
type identity struct{ leaf, inter, root *testcert.Cert }

func identityOf(kind string) func() *identity {
	return sync.OnceValue(func() *identity {
		root := testcert.Root(testcert.Template{CA: true, Name: "Zoo Root"})
		inter := root.Issue(testcert.Template{CA: true, Name: "Zoo Intermediate"})
		leaf := inter.Issue(testcert.Template{Key: testcert.Key(kind, "zoo leaf")})
		return &identity{leaf, inter, root}
	})
}

func (id *identity) tls() tls.Certificate { return id.leaf.TLS(id.inter) }

// use sets the roots of the audit, and returns the certificate.
func (r *Running) use(id *identity) tls.Certificate {
	if r.Roots == nil {
		r.Roots = x509.NewCertPool()
	}
	r.Roots.AddCert(id.root.Certificate)
	r.anchors = append(r.anchors, id.root)
	return id.tls()
}

// certificateServers returns one server for each of testcert's chains.
func certificateServers() []*Server {
	var all []*Server
	for _, c := range caseNames {
		expect := goVerdicts()
		for _, rule := range c.rules {
			expect = append(expect, Verdict{rule, c.about})
		}
		all = append(all, &Server{
			Name: "certificate-" + c.name, About: c.about, Expect: expect,
			start: func(r *Running) error {
				one := chainCases()[c.name]
				r.Roots = one.Roots()
				if c.name != "untrusted-root" {
					r.anchors = []*testcert.Cert{one.Root}
				}
				certificate := one.Leaf.TLS(one.Sent...)
				certificate.OCSPStaple = one.Staple
				return r.listen("127.0.0.1", goTLS(goConfig(certificate)))
			},
		})
	}
	return all
}

// chainCases are made when the first of them is started: their keys take a while.
var chainCases = sync.OnceValue(func() map[string]testcert.Case {
	all := map[string]testcert.Case{}
	for _, c := range testcert.Cases() {
		all[c.Name] = c
	}
	return all
})

// caseNames are the cases of package testcert that have servers. The rules are stated here once
// more, with those that aren't about certificates.
var caseNames = []struct {
	name, about string
	rules       []string
}{
	{"good", "a P-256 key and a chain of two", nil},
	{"good-ed25519", "an Ed25519 key, which no browser takes", []string{"key-not-in-policy", "client-refused"}},
	{"stapled", "a good OCSP response is stapled", nil},
	{"malformed", "the leaf has a negative serial number, and a malformed extension", []string{"certificate-malformed"}},
	{"expired", "the leaf has expired", []string{"certificate-expired"}},
	{"expired-intermediate", "the intermediate has expired", []string{"certificate-expired"}},
	{"not-yet-valid", "the leaf is valid from tomorrow on", []string{"certificate-not-yet-valid"}},
	{"expires-soon", "the leaf has five days left", []string{"certificate-expires-soon"}},
	{"long-lived", "the leaf is valid for 800 days", []string{"certificate-lifetime"}},
	{"wrong-name", "the leaf is for another name", []string{"certificate-name"}},
	{"missing-intermediate", "the leaf alone is sent", []string{"chain-incomplete"}},
	{"root-sent", "the root is sent too", []string{"chain-root"}},
	{"needless", "a certificate is sent that no path needs", []string{"chain-needless"}},
	{"twice", "the intermediate is sent twice", []string{"chain-needless"}},
	{"cross-signed", "a cross-signed root is sent that no path needs", []string{"chain-needless"}},
	{"wrong-order", "two intermediates are sent the wrong way round", []string{"chain-order"}},
	{"untrusted-root", "the root isn't trusted", []string{"certificate-untrusted"}},
	{"self-signed", "the leaf is self-signed", []string{"certificate-untrusted"}},
	{"rsa-1024", "the leaf has an RSA key of 1024 bits", []string{"key-weak", "key-slow"}},
	{"sha-1", "the leaf is signed with SHA-1", []string{"certificate-hash", "key-slow"}},
	{"20-kb", "the leaf has 20 KB, so the flight takes two round trips", []string{"chain-flight"}},
	{"staple-missing", "the leaf names an OCSP responder, and nothing is stapled", []string{"staple-missing"}},
	{"must-staple", "the leaf requires a stapled response, and none is sent", []string{"staple-missing"}},
	{"staple-expired", "the stapled response has expired", []string{"staple-invalid"}},
	{"staple-revoked", "the stapled response says that the leaf is revoked", []string{"staple-invalid"}},
}

// goTLS returns a function that answers a connection with crypto/tls: with an HTTP response to every
// request.
func goTLS(config *tls.Config) func(net.Conn) {
	return func(conn net.Conn) { answerHTTP(tls.Server(conn, config)) }
}
