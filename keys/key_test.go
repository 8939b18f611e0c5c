//go:build cgo || ossl_nocgo

package keys_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/gate"
	"github.com/ossl-go/ossl/internal/heldkey"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/keys"
)

// checkSignature signs with a key and verifies the signature.
func checkSignature(t *testing.T, key crypto.Signer) {
	t.Helper()
	opts := crypto.SignerOpts(crypto.SHA256)
	if _, ok := key.Public().(ed25519.PublicKey); ok {
		opts = crypto.Hash(0)
	}
	signAndVerify(t, key, opts)
}

// signAndVerify signs a digest of the size that opts ask for, and verifies the signature.
func signAndVerify(t *testing.T, key crypto.Signer, opts crypto.SignerOpts) {
	t.Helper()
	h := opts.HashFunc()
	digest := make([]byte, 32)
	if h != 0 {
		digest = make([]byte, h.Size())
	}
	_, _ = rand.Read(digest)
	sig, err := key.Sign(rand.Reader, digest, opts)
	if err != nil {
		t.Fatal(err)
	}
	switch public := key.Public().(type) {
	case *rsa.PublicKey:
		if pss, ok := opts.(*rsa.PSSOptions); ok {
			err = rsa.VerifyPSS(public, h, digest, sig, pss)
		} else {
			err = rsa.VerifyPKCS1v15(public, h, digest, sig)
		}
	case *ecdsa.PublicKey:
		if !ecdsa.VerifyASN1(public, digest, sig) {
			err = fmt.Errorf("not verified")
		}
	case ed25519.PublicKey:
		err = ed25519.VerifyWithOptions(public, digest, sig, &ed25519.Options{})
	}
	if err != nil {
		t.Errorf("%T: %v", key.Public(), err)
	}
}

// TestKeySign: Sign honours the contract of crypto.Signer, and refuses the options that crypto/rsa,
// crypto/ecdsa and crypto/ed25519 refuse.
func TestKeySign(t *testing.T) {
	kinds := []tlstest.KeyKind{tlstest.RSA2048, tlstest.P256, tlstest.P384, tlstest.P521, tlstest.Ed25519}
	hashes := []crypto.Hash{crypto.SHA1, crypto.SHA224, crypto.SHA256, crypto.SHA384, crypto.SHA512}
	for _, kind := range kinds {
		key := ossltest.LoadedPair(t, kind, tlstest.ServerName).PrivateKey.(*keys.Key)
		sign := func(name string, opts crypto.SignerOpts) {
			t.Run(fmt.Sprintf("%s/%s", kind, name), func(t *testing.T) { signAndVerify(t, key, opts) })
		}
		refuse := func(name string, digest []byte, opts crypto.SignerOpts) {
			t.Run(fmt.Sprintf("%s/refused/%s", kind, name), func(t *testing.T) {
				if sig, err := key.Sign(rand.Reader, digest, opts); err == nil || sig != nil {
					t.Errorf("%x, %v", sig, err)
				}
			})
		}
		refuse("no options", make([]byte, 32), nil)
		if kind == tlstest.Ed25519 {
			sign("message", crypto.Hash(0))
			sign("options", &ed25519.Options{})
			refuse("prehashed", make([]byte, 64), crypto.SHA512)
			refuse("prehashed by options", make([]byte, 64), &ed25519.Options{Hash: crypto.SHA512})
			refuse("context", make([]byte, 64), &ed25519.Options{Context: "x"})
			continue
		}
		for _, h := range hashes {
			sign(h.String(), h)
		}
		sign("no hash", crypto.Hash(0))
		refuse("short digest", make([]byte, 31), crypto.SHA256)
		refuse("MD5", make([]byte, 16), crypto.MD5)
		refuse("SHA-512/256", make([]byte, 32), crypto.SHA512_256)
		refuse("SHA-3", make([]byte, 32), crypto.SHA3_256)
		if kind != tlstest.RSA2048 {
			continue
		}
		for _, h := range hashes {
			for _, salt := range []int{rsa.PSSSaltLengthAuto, rsa.PSSSaltLengthEqualsHash, 1, 20, 48} {
				sign(fmt.Sprintf("PSS/%v/%d", h, salt), &rsa.PSSOptions{SaltLength: salt, Hash: h})
			}
		}
		refuse("PSS without hash", make([]byte, 32), &rsa.PSSOptions{})
		refuse("PSS with too much salt", make([]byte, 32), &rsa.PSSOptions{SaltLength: 500, Hash: crypto.SHA256})
		refuse("PSS with negative salt", make([]byte, 32), &rsa.PSSOptions{SaltLength: -2, Hash: crypto.SHA256})
		refuse("raw, too long", make([]byte, 250), crypto.Hash(0))
	}
}

// TestKeySignsRequests: a key signs certificate requests too.
func TestKeySignsRequests(t *testing.T) {
	for _, kind := range tlstest.KeyKinds {
		key := ossltest.LoadedPair(t, kind, tlstest.ServerName).PrivateKey.(*keys.Key)
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "x"}}, key)
		if err != nil {
			t.Fatal(err)
		}
		request, err := x509.ParseCertificateRequest(der)
		if err == nil {
			err = request.CheckSignature()
		}
		if err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestKeyHandshakes: a key serves both sides of every pairing, however its certificate is chosen.
// crypto/tls uses it as a crypto.Signer.
func TestKeyHandshakes(t *testing.T) {
	kinds := []tlstest.KeyKind{tlstest.RSA2048, tlstest.P256, tlstest.P384, tlstest.Ed25519}
	if ossltest.AtLeast("3.5") {
		kinds = append(kinds, tlstest.MLDSAKinds...)
	}
	for _, kind := range kinds {
		clientCert, serverCert := ossltest.LoadedPair(t, kind, tlstest.ClientName), ossltest.LoadedPair(t, kind, tlstest.ServerName)
		bounded := ossltest.LoadedPair(t, kind, tlstest.ServerName, keys.WithMaxSigners(1))
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			if version == tls.VersionTLS12 && slices.Contains(tlstest.MLDSAKinds, kind) {
				continue
			}
			for _, stacks := range [][2]string{{"ossl", "std"}, {"std", "ossl"}, {"ossl", "ossl"}} {
				for _, chosen := range []string{"Certificates", "several", "callback", "GetConfigForClient", "bounded"} {
					t.Run(fmt.Sprintf("%s/%s/%s-%s/%s", kind, tls.VersionName(version), stacks[0], stacks[1], chosen), func(t *testing.T) {
						client, server := tlstest.PlainClient(version), tlstest.PlainServer(version)
						server.ClientAuth = tls.RequireAndVerifyClientCert
						client.Certificates, server.Certificates = []tls.Certificate{clientCert}, []tls.Certificate{serverCert}
						other := tlstest.New(tlstest.Options{Names: []string{tlstest.OtherName}})
						switch chosen {
						case "several":
							client.Certificates = append(client.Certificates, other)
							server.Certificates = append(server.Certificates, other)
						case "callback":
							client.Certificates, server.Certificates = nil, nil
							client.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &clientCert, nil }
							server.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &serverCert, nil }
						case "GetConfigForClient":
							inner := server.Clone()
							server.Certificates = []tls.Certificate{other}
							server.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return inner, nil }
						case "bounded":
							server.Certificates[0] = bounded
						}
						clientErr, serverErr := ossltest.Exchange(stacks[0], stacks[1], client, server)
						if clientErr != nil || serverErr != nil {
							t.Fatalf("client: %v; server: %v", clientErr, serverErr)
						}
					})
				}
			}
		}
	}
}

// TestKeyExchange: in a key exchange by RSA the key decrypts, which a crypto.Signer can't do.
func TestKeyExchange(t *testing.T) {
	server, client := tlstest.PlainServer(tls.VersionTLS12), tlstest.PlainClient(tls.VersionTLS12)
	server.Certificates = []tls.Certificate{ossltest.LoadedPair(t, tlstest.RSA2048, tlstest.ServerName)}
	server.CipherSuites = []uint16{tls.TLS_RSA_WITH_AES_128_GCM_SHA256}
	client.CipherSuites = server.CipherSuites
	if clientErr, serverErr := ossltest.Exchange("std", "ossl", client, server); clientErr != nil || serverErr != nil {
		t.Errorf("client: %v; server: %v", clientErr, serverErr)
	}
}

// TestKeySignatureAlgorithms: the SupportedSignatureAlgorithms of a certificate hold. They make a
// token usable that can't sign by RSA-PSS.
func TestKeySignatureAlgorithms(t *testing.T) {
	cert := ossltest.LoadedPair(t, tlstest.RSA2048, tlstest.ServerName)
	cert.SupportedSignatureAlgorithms = []tls.SignatureScheme{tls.PKCS1WithSHA256}
	server := &tls.Config{Certificates: []tls.Certificate{cert}}
	if clientErr, serverErr := ossltest.Exchange("std", "ossl", tlstest.PlainClient(tls.VersionTLS12), server); clientErr != nil ||
		serverErr != nil {
		t.Errorf("TLS 1.2: client: %v; server: %v", clientErr, serverErr)
	}
	// TLS 1.3 has no other signatures with RSA: RFC 8446, section 4.2.3.
	if clientErr, serverErr := ossltest.Exchange("std", "ossl", tlstest.PlainClient(tls.VersionTLS13), server); clientErr == nil ||
		serverErr == nil {
		t.Errorf("TLS 1.3: client: %v; server: %v", clientErr, serverErr)
	}
	cert.SupportedSignatureAlgorithms = []tls.SignatureScheme{tls.PSSWithSHA256}
	server = &tls.Config{Certificates: []tls.Certificate{cert}}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		if clientErr, serverErr := ossltest.Exchange("std", "ossl", tlstest.PlainClient(version), server); clientErr != nil ||
			serverErr != nil {
			t.Errorf("%s: client: %v; server: %v", tls.VersionName(version), clientErr, serverErr)
		}
	}
}

// A countedKey counts the signatures of the Key in it.
type countedKey struct {
	*keys.Key
	signed atomic.Int32
}

func (k *countedKey) Sign(rand io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	k.signed.Add(1)
	return k.Key.Sign(rand, digest, opts)
}

// TestKeyInAnotherSigner: if a user's crypto.Signer embeds a Key, handshakes call its Sign.
func TestKeyInAnotherSigner(t *testing.T) {
	cert := ossltest.LoadedPair(t, tlstest.P256, tlstest.ServerName)
	signer := &countedKey{Key: cert.PrivateKey.(*keys.Key)}
	cert.PrivateKey = signer
	server := tlstest.PlainServer(tls.VersionTLS13)
	server.Certificates = []tls.Certificate{cert}
	clientErr, serverErr := ossltest.Exchange("std", "ossl", tlstest.PlainClient(tls.VersionTLS13), server)
	if clientErr != nil || serverErr != nil {
		t.Fatalf("client: %v; server: %v", clientErr, serverErr)
	}
	if n := signer.signed.Load(); n != 1 {
		t.Errorf("signed %d times", n)
	}
}

// TestKeyFormats: all formats of a key show its URI and nothing else.
func TestKeyFormats(t *testing.T) {
	file := write(t, "key.pem", keyPEM(t, tlstest.Key(tlstest.P256, "leaf")))
	key, err := keys.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if got := fmt.Sprintf(format, key); got != "key "+file {
			t.Errorf("%s gives %q", format, got)
		}
	}
}

// TestKeyLifetime: Contexts and credentials keep libssl's key alive, and the Key is collected.
// ci/asan reports leaks.
func TestKeyLifetime(t *testing.T) {
	config := &tls.Config{Certificates: []tls.Certificate{ossltest.LoadedPair(t, tlstest.P256, tlstest.ServerName)}}
	ctx, err := ossl.NewContext(config)
	if err != nil {
		t.Fatal(err)
	}
	freed := make(chan struct{})
	runtime.AddCleanup(config.Certificates[0].PrivateKey.(*keys.Key), func(int) { close(freed) }, 0)
	config.Certificates[0].PrivateKey = nil
	collect := func() { // several times, since cleanups make garbage
		for range 3 {
			runtime.GC()
		}
	}
	collect()
	a, b := tlstest.Buffered()
	server := ctx.Server(b)
	done := make(chan error)
	go func() { done <- server.Handshake() }()
	client := tls.Client(a, tlstest.PlainClient(tls.VersionTLS13))
	if err := client.Handshake(); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	client.Close()
	server.Close()
	runtime.KeepAlive(ctx)
	ctx, server = nil, nil
	deadline := time.After(tlstest.Patience)
	for {
		collect()
		select {
		case <-freed:
			return
		case <-deadline:
			t.Fatal("the key is still there")
		case <-time.After(time.Millisecond):
		}
	}
}

// TestMaxSigners checks that handshakes wait in Go for their turn with a key. There, Close and
// cancellation can interrupt them, and they don't keep others from their turn.
func TestMaxSigners(t *testing.T) {
	cert := ossltest.LoadedPair(t, tlstest.P256, tlstest.ServerName, keys.WithMaxSigners(1))
	release := ossltest.OccupyKey(cert.PrivateKey)
	server := tlstest.PlainServer(tls.VersionTLS13)
	server.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if hello.ServerName == tlstest.OtherName {
			other := tlstest.New(tlstest.Options{Names: []string{tlstest.OtherName}})
			return &other, nil
		}
		return &cert, nil
	}
	ctx, err := ossl.NewContext(server)
	if err != nil {
		t.Fatal(err)
	}
	single := tlstest.PlainServer(tls.VersionTLS12)
	single.Certificates = []tls.Certificate{cert}
	fixed, err := ossl.NewContext(single)
	if err != nil {
		t.Fatal(err)
	}
	start := func(ctx *ossl.Context, name string) (server *ossl.Conn, serverErr, clientErr chan error) {
		a, b := tlstest.Buffered()
		serverErr, clientErr = make(chan error, 1), make(chan error, 1)
		server = ctx.Server(b)
		client := tlstest.PlainClient(tls.VersionTLS13)
		client.MinVersion, client.ServerName = tls.VersionTLS12, name
		go func() { serverErr <- server.Handshake() }()
		go func() {
			c := tls.Client(a, client)
			clientErr <- c.Handshake()
			t.Cleanup(func() { c.Close() })
		}()
		return server, serverErr, clientErr
	}
	stays, staysErr, staysClient := start(ctx, tlstest.ServerName)
	_, fixedErr, fixedClient := start(fixed, tlstest.ServerName)
	// More than may sign with the keys of tokens at once: waiting handshakes must not keep others
	// from their turn.
	var closes []*ossl.Conn
	var closesErr []chan error
	for range keys.DefaultMaxSigners + 10 {
		c, errs, _ := start(ctx, tlstest.ServerName)
		closes, closesErr = append(closes, c), append(closesErr, errs)
	}
	_, otherErr, otherClient := start(ctx, tlstest.OtherName)
	for _, errs := range []chan error{otherErr, otherClient} {
		if err := <-errs; err != nil {
			t.Errorf("with another key: %v", err)
		}
	}
	for i, c := range closes {
		c.Close()
		if err := <-closesErr[i]; err == nil {
			t.Error("a handshake succeeded though its key was occupied")
		}
	}
	select {
	case err := <-staysErr:
		t.Errorf("did not wait: %v", err)
	case err := <-fixedErr:
		t.Errorf("with one certificate: did not wait: %v", err)
	default:
	}
	release()
	for _, errs := range []chan error{staysErr, staysClient, fixedErr, fixedClient} {
		if err := <-errs; err != nil {
			t.Errorf("after its turn: %v", err)
		}
	}
	stays.Close()
	if gate.Tokens.Used(heldkey.In(cert.PrivateKey).Share) != 0 {
		t.Error("still occupied")
	}
	checkSignature(t, cert.PrivateKey.(*keys.Key))
}

// TestKeySignContext: a caller that waits for its turn to sign may give up.
func TestKeySignContext(t *testing.T) {
	key := ossltest.LoadedPair(t, tlstest.P256, tlstest.ServerName, keys.WithMaxSigners(1)).PrivateKey.(*keys.Key)
	release := ossltest.OccupyKey(key)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := key.SignContext(ctx, nil, make([]byte, 32), crypto.SHA256)
		done <- err
	}()
	tlstest.WaitUntil(t, func() bool { return gate.Tokens.Waiting() == 1 })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	release()
	if _, err := key.SignContext(t.Context(), nil, make([]byte, 32), crypto.SHA256); err != nil {
		t.Error(err)
	}
}
