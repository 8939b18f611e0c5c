// Command spiffe runs an HTTP server and a client over OpenSSL whose identities are SPIFFE IDs, with
// the configurations that go-spiffe makes. A workload has its identity and its trust bundle from
// the Workload API (workloadapi.NewX509Source); here the program makes both. docs/HTTP.md is the
// guide.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/spiffe/go-spiffe/v2/bundle/x509bundle"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"github.com/spiffe/go-spiffe/v2/spiffetls/tlsconfig"
	"github.com/spiffe/go-spiffe/v2/svid/x509svid"

	"github.com/ossl-go/ossl/httptls"
)

var domain = spiffeid.RequireTrustDomainFromString("example.org")

func main() {
	authority, key := certify(nil, nil, "")
	issue := func(path string) *x509svid.SVID {
		id := spiffeid.RequireFromPath(domain, path)
		cert, own := certify(authority, key, id.String())
		return &x509svid.SVID{ID: id, Certificates: []*x509.Certificate{cert}, PrivateKey: own}
	}
	server, client, stranger := issue("/server"), issue("/client"), issue("/stranger")
	bundle := x509bundle.FromX509Authorities(domain, []*x509.Certificate{authority})

	config := tlsconfig.MTLSServerConfig(server, bundle, tlsconfig.AuthorizeID(client.ID))
	config.SessionTicketsDisabled = true // a resumed session would skip go-spiffe's check
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	log.SetOutput(io.Discard) // the server's log of the stranger
	go (&httptls.Server{Server: &http.Server{TLSConfig: config, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "hello ", r.TLS.PeerCertificates[0].URIs[0])
		},
	)}}).ServeTLS(listener, "", "")

	for _, svid := range []*x509svid.SVID{client, stranger} {
		config := tlsconfig.MTLSClientConfig(svid, bundle, tlsconfig.AuthorizeID(server.ID))
		c := must(httptls.NewClient(&http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}))
		if resp, err := c.Get("https://" + listener.Addr().String()); err != nil {
			fmt.Println(svid.ID, "is refused")
		} else {
			fmt.Println(string(must(io.ReadAll(resp.Body))), "by", resp.Proto)
		}
	}
}

// certify makes a certificate for a SPIFFE ID, or an authority if id is "".
func certify(parent *x509.Certificate, signer *ecdsa.PrivateKey, id string) (*x509.Certificate, *ecdsa.PrivateKey) {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true}
	if id == "" {
		parent, signer, id, template.IsCA, template.KeyUsage = template, key, domain.IDString(), true, x509.KeyUsageCertSign
	} else {
		template.KeyUsage = x509.KeyUsageDigitalSignature
	}
	template.URIs = []*url.URL{must(url.Parse(id))}
	return must(x509.ParseCertificate(must(x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)))), key
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
