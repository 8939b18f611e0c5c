//go:build cgo || ossl_nocgo

package ossl_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"reflect"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestChannelBinding compares the bindings of both roles with what crypto/tls's peer has.
func TestChannelBinding(t *testing.T) {
	cert := tlstest.ServerCert(tlstest.P256)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, isClient := range []bool{true, false} {
			client, server := tlstest.ClientConfig(tlstest.Only(version)), tlstest.ServerConfig(tlstest.Certificates(cert))
			tlstest.AskClient(tls.RequireAndVerifyClientCert)(server) // its certificate must not be taken for the server's
			tlstest.SendCertificate(tlstest.ClientCert(tlstest.P384))(client)
			a, b := tlstest.Buffered()
			conn, peer := ossltest.NewContext(t, client).Client(a, ""), tls.Server(b, server)
			if !isClient {
				conn, peer = ossltest.NewContext(t, server).Server(b), tls.Client(a, client)
			}
			for _, kind := range []string{"tls-exporter", "tls-server-end-point", "tls-unique"} {
				if binding, err := conn.ChannelBinding(kind); err == nil {
					t.Errorf("%s before the handshake: %x", kind, binding)
				}
			}
			done := make(chan error, 1)
			go func() { done <- peer.Handshake() }()
			if err := conn.Handshake(); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			state := peer.ConnectionState()
			exported, err := state.ExportKeyingMaterial("EXPORTER-Channel-Binding", []byte{}, 32)
			if err != nil {
				t.Fatal(err)
			}
			endPoint := sum(crypto.SHA256, cert.Certificate[0])
			if _, known := reflect.TypeFor[tls.ConnectionState]().FieldByName("LocalCertificate"); !isClient && !known {
				endPoint = nil
			}
			for kind, want := range map[string][]byte{
				"tls-exporter": exported, "tls-server-end-point": endPoint, "tls-unique": state.TLSUnique, "tls-other": nil, "": nil,
			} {
				if got, err := conn.ChannelBinding(kind); !bytes.Equal(got, want) || (err != nil) != (want == nil) {
					t.Errorf("%s, client %v: %s is %x, %v, want %x", tls.VersionName(version), isClient, kind, got, err, want)
				}
			}
		}
	}
}

func sum(hash crypto.Hash, b []byte) []byte {
	h := hash.New()
	h.Write(b)
	return h.Sum(nil)
}

// TestServerEndPoint checks the hash function for each kind of signature: RFC 5929, section 4.1.
func TestServerEndPoint(t *testing.T) {
	ecKey, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	rsaKey, _ := rsa.GenerateKey(rand.Reader, 2048)
	_, edKey, _ := ed25519.GenerateKey(rand.Reader)
	for algorithm, want := range map[x509.SignatureAlgorithm]struct {
		key  crypto.Signer
		hash crypto.Hash
	}{
		x509.ECDSAWithSHA256: {ecKey, crypto.SHA256}, x509.ECDSAWithSHA384: {ecKey, crypto.SHA384},
		x509.ECDSAWithSHA512: {ecKey, crypto.SHA512}, x509.SHA256WithRSA: {rsaKey, crypto.SHA256},
		x509.SHA384WithRSA: {rsaKey, crypto.SHA384}, x509.SHA512WithRSA: {rsaKey, crypto.SHA512},
		x509.SHA256WithRSAPSS: {rsaKey, crypto.SHA256}, x509.SHA384WithRSAPSS: {rsaKey, crypto.SHA384},
		x509.SHA512WithRSAPSS: {rsaKey, crypto.SHA512}, x509.PureEd25519: {edKey, 0},
	} {
		template := &x509.Certificate{SerialNumber: big.NewInt(1), SignatureAlgorithm: algorithm}
		der, err := x509.CreateCertificate(rand.Reader, template, template, want.key.Public(), want.key)
		if err != nil {
			t.Fatal(err)
		}
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		binding, err := ossl.ServerEndPoint(cert)
		if (err == nil) != (want.hash != 0) || err == nil && !bytes.Equal(binding, sum(want.hash, der)) {
			t.Errorf("%v: %x, %v", algorithm, binding, err)
		}
	}
	for _, old := range []x509.SignatureAlgorithm{x509.MD5WithRSA, x509.SHA1WithRSA, x509.ECDSAWithSHA1} {
		binding, err := ossl.ServerEndPoint(&x509.Certificate{Raw: []byte("x"), SignatureAlgorithm: old})
		if err != nil || !bytes.Equal(binding, sum(crypto.SHA256, []byte("x"))) {
			t.Errorf("%v: %x, %v", old, binding, err)
		}
	}
}
