package httptls_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"net/http"
	"sync"
	"testing"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
)

// A memoryCache is an autocert.Cache.
type memoryCache struct{ entries sync.Map }

func (c *memoryCache) Get(_ context.Context, key string) ([]byte, error) {
	if data, ok := c.entries.Load(key); ok {
		return data.([]byte), nil
	}
	return nil, autocert.ErrCacheMiss
}

func (c *memoryCache) Put(_ context.Context, key string, data []byte) error {
	c.entries.Store(key, data)
	return nil
}

func (c *memoryCache) Delete(_ context.Context, key string) error {
	c.entries.Delete(key)
	return nil
}

// entry is a certificate as autocert caches it.
func entry(t *testing.T, cert *tls.Certificate) []byte {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	_ = pem.Encode(&b, &pem.Block{Type: "PRIVATE KEY", Bytes: key})
	_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]})
	return b.Bytes()
}

var acmeIdentifier = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 31} // RFC 8737, section 3

// autocert's GetCertificate sees the fields that it uses: the name, the protocols of a tls-alpn-01
// challenge, the client's suites.
func TestAutocert(t *testing.T) {
	const name = "example.org"
	for _, stack := range stacks {
		t.Run(stack.name, func(t *testing.T) {
			ec, rsa := leaf(ecKey(), name), leaf(rsaKey(), name)
			challenge := certify(authority(), ecKey(), &x509.Certificate{
				Subject: pkix.Name{CommonName: "ACME challenge"}, DNSNames: []string{name},
				ExtraExtensions: []pkix.Extension{{Id: acmeIdentifier, Critical: true, Value: []byte{4, 0}}},
			})
			cache := &memoryCache{}
			_ = cache.Put(t.Context(), name, entry(t, ec))
			_ = cache.Put(t.Context(), name+"+rsa", entry(t, rsa))
			_ = cache.Put(t.Context(), name+"+token", entry(t, challenge))
			manager := &autocert.Manager{Prompt: autocert.AcceptTOS, Cache: cache, HostPolicy: autocert.HostWhitelist(name),
				Client: &acme.Client{DirectoryURL: "http://127.0.0.1:1/"}}
			config := manager.TLSConfig()
			config.SessionTicketsDisabled = true
			s := stack.start(t, &http.Server{TLSConfig: config, Handler: http.HandlerFunc(hello)})

			dial := func(edit func(*tls.Config)) (*tls.Conn, error) {
				config := clientConfig()
				config.ServerName = name
				edit(config)
				return tls.Dial("tcp", s.addr, config)
			}
			check := func(what string, want *tls.Certificate, proto string, edit func(*tls.Config)) {
				t.Helper()
				conn, err := dial(edit)
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				defer conn.Close()
				state := conn.ConnectionState()
				if !bytes.Equal(state.PeerCertificates[0].Raw, want.Certificate[0]) || state.NegotiatedProtocol != proto {
					t.Errorf("%s: %v, %q", what, state.PeerCertificates[0].Subject, state.NegotiatedProtocol)
				}
			}
			check("ECDSA", ec, "h2", func(c *tls.Config) { c.NextProtos = []string{"h2", "http/1.1"} })
			check("RSA", rsa, "", func(c *tls.Config) {
				c.MaxVersion = tls.VersionTLS12
				c.CipherSuites = []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}
			})
			check("challenge", challenge, acme.ALPNProto, func(c *tls.Config) {
				c.NextProtos = []string{acme.ALPNProto}
				c.InsecureSkipVerify = true // as the CA does: the certificate holds a proof, and is not signed
			})
			if conn, err := dial(func(c *tls.Config) { c.ServerName = "other.example" }); err == nil {
				_ = conn.Close()
				t.Error("a name that is not served got a certificate")
			}
			config = clientConfig()
			config.ServerName = name
			if got := fetch(t, stack.client(t, &http.Transport{TLSClientConfig: config}, true), s.url("/")); got != "hello" {
				t.Errorf("%q", got)
			}
		})
	}
}
