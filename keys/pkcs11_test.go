//go:build (cgo || ossl_nocgo) && unix

package keys_test

import (
	"bytes"
	"crypto"
	"crypto/rsa"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/keys"
)

// The tests of keys in a token. ci/pkcs11 makes the token, and runs each test in a process of its
// own: OpenSSL reads its configuration once, a provider stays, and a login holds.

// A token is a [tlstest.Token] with the options to load its keys.
type token struct {
	*tlstest.Token
	t     *testing.T
	opts  []keys.Option
	asked atomic.Int32 // how often the PIN was asked for
}

func newToken(t *testing.T) *token {
	t.Helper()
	k := &token{Token: tlstest.NewToken(t), t: t}
	k.opts = []keys.Option{keys.WithProvider("pkcs11"), keys.WithPassphrase(func(uri string) ([]byte, error) {
		k.asked.Add(1)
		if strings.Contains(uri, k.PIN) {
			t.Errorf("%s", uri)
		}
		return []byte(k.PIN), nil
	})}
	return k
}

func (k *token) key(label string, opts ...keys.Option) *keys.Key {
	k.t.Helper()
	key, err := keys.Load(k.URI+";object="+label+";type=private", append(k.opts, opts...)...)
	if err != nil {
		k.t.Fatal(err)
	}
	return key
}

// cert returns a certificate for a key in the token.
func (k *token) cert(label, name string, opts ...keys.Option) tls.Certificate {
	k.t.Helper()
	return tlstest.New(tlstest.Options{Key: k.key(label, opts...), Names: []string{name}})
}

var tokenKeys = []string{"rsa", "ec"}

// TestPKCS11Provider: without the provider there is an error that names it. An openssl.cnf that
// activates the provider is enough.
func TestPKCS11Provider(t *testing.T) {
	k := newToken(t)
	key, err := keys.Load(k.URI+";object=ec?pin-value="+k.PIN, k.opts[1])
	if k.Active {
		if err != nil || key.Provider() != "pkcs11" {
			t.Fatal(key, err)
		}
		return
	}
	var e *keys.Error
	if !errors.As(err, &e) || !strings.Contains(e.Reason, "pkcs11") || strings.Contains(fmt.Sprintf("%v%#v", err, e), k.PIN) {
		t.Fatal(err)
	}
	t.Log(err)
	if key, err = keys.Load(k.URI+";object=ec?pin-value="+k.PIN, k.opts...); err != nil {
		t.Fatal(err)
	}
	if key.Provider() != "pkcs11" || strings.Contains(key.String(), k.PIN) {
		t.Errorf("%v of %s", key, key.Provider())
	}
	if k.asked.Load() != 0 {
		t.Error("asked for a PIN that the URI has")
	}
	// All other keys use the algorithms of the default provider.
	checkSignature(t, ossltest.LoadedPair(t, tlstest.P256, tlstest.ServerName).PrivateKey.(*keys.Key))
}

// TestPKCS11Sign: keys in a token honour the contract of crypto.Signer.
func TestPKCS11Sign(t *testing.T) {
	k := newToken(t)
	key := k.key("rsa")
	for _, h := range []crypto.Hash{crypto.SHA256, crypto.SHA384, crypto.SHA512} {
		signAndVerify(t, key, h)
		for _, salt := range []int{rsa.PSSSaltLengthAuto, rsa.PSSSaltLengthEqualsHash, 20} {
			signAndVerify(t, key, &rsa.PSSOptions{Hash: h, SaltLength: salt})
		}
	}
	for _, label := range []string{"ec", "ec384"} {
		for _, h := range []crypto.Hash{crypto.SHA256, crypto.SHA384, crypto.SHA512} {
			signAndVerify(t, k.key(label), h)
		}
	}
	checkSignature(t, k.key("ed"))
	if k.asked.Load() != 1 || k.Count("logins") != 1 {
		t.Errorf("asked %d times, logged in %d times", k.asked.Load(), k.Count("logins"))
	}
	const noKey = "there is no private key, or the PIN is wrong"
	var e *keys.Error
	if _, err := keys.Load(k.URI, k.opts...); !errors.As(err, &e) || !strings.Contains(e.Reason, "name one") {
		t.Errorf("all keys of the token: %v", err)
	}
	if _, err := keys.Load(k.URI+";object=none", k.opts...); !errors.As(err, &e) || e.Reason != noKey {
		t.Errorf("none: %v", err)
	}
	if _, err := keys.Load("pkcs11:token=none;object=ec", k.opts...); !errors.As(err, &e) {
		t.Errorf("no such token: %v", err)
	} else {
		t.Log(err)
	}
	if _, err := keys.Load(k.URI+";object=ec;type=public", k.opts...); !errors.As(err, &e) || e.Reason != noKey {
		t.Errorf("public key: %v", err)
	}
}

// TestPKCS11Pair: of the many certificates of a token, only the chain of the key is sent.
func TestPKCS11Pair(t *testing.T) {
	k := newToken(t)
	for _, label := range tokenKeys {
		pair, err := keys.LoadX509KeyPair(k.URI+";type=cert", k.URI+";type=private;object="+label, k.opts...)
		if err != nil {
			t.Fatal(err)
		}
		if len(pair.Certificate) != 2 || pair.Leaf.Subject.CommonName != label || !bytes.Equal(pair.Certificate[0], pair.Leaf.Raw) {
			t.Errorf("%s: %d certificates, the leaf is %s's", label, len(pair.Certificate), pair.Leaf.Subject.CommonName)
		}
		if _, err := ossl.NewContext(&tls.Config{Certificates: []tls.Certificate{pair}}); err != nil {
			t.Error(err)
		}
	}
	var e *keys.Error
	_, err := keys.LoadX509KeyPair(k.URI+";type=cert;object=rsa", k.URI+";type=private;object=ec", k.opts...)
	if !errors.As(err, &e) {
		t.Errorf("another's certificate: %v", err)
	}
}

// codesOf returns OpenSSL's codes of an error. Its text has only the first one, which is libssl's;
// the token's codes are behind it.
func codesOf(err error) string {
	var e *ossl.LibraryError
	if !errors.As(err, &e) {
		return ""
	}
	return fmt.Sprintf(" %#x", e.Codes)
}

// TestPKCS11Load: keys in a token sign handshakes of servers and clients under load, with
// crypto/tls as the peer.
func TestPKCS11Load(t *testing.T) {
	const connections, each = 64, 3
	k := newToken(t)
	for _, label := range tokenKeys {
		serverCert, clientCert := k.cert(label, tlstest.ServerName), k.cert(label, tlstest.ClientName)
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			for _, stacks := range [][2]string{{"std", "ossl"}, {"ossl", "std"}, {"ossl", "ossl"}} {
				t.Run(fmt.Sprintf("%s/%s/%s-%s", label, tls.VersionName(version), stacks[0], stacks[1]), func(t *testing.T) {
					client, server := tlstest.PlainClient(version), tlstest.PlainServer(version)
					server.Certificates = []tls.Certificate{tlstest.ServerCert(tlstest.P256)}
					if stacks[1] == "ossl" {
						server.Certificates = []tls.Certificate{serverCert}
					}
					signatures := each * connections
					if stacks[0] == "ossl" {
						server.ClientAuth = tls.RequireAndVerifyClientCert
						client.Certificates = []tls.Certificate{clientCert}
						if stacks[1] == "ossl" {
							signatures *= 2
						}
					}
					before := k.Count("signing")
					var all sync.WaitGroup
					var failures atomic.Int32
					for range connections {
						all.Go(func() {
							for range each {
								if clientErr, serverErr := ossltest.Exchange(stacks[0], stacks[1], client, server); clientErr != nil || serverErr != nil {
									failures.Add(1)
									t.Errorf("client: %v%s; server: %v%s", clientErr, codesOf(clientErr), serverErr, codesOf(serverErr))
								}
							}
						})
					}
					all.Wait()
					if n := k.Count("signing") - before; n != signatures {
						t.Errorf("the token made %d signatures, not %d", n, signatures)
					}
				})
			}
		}
	}
}

// TestPKCS11Parallel: keys of a token are loaded, and sign, while other keys of it do.
func TestPKCS11Parallel(t *testing.T) {
	k := newToken(t)
	for _, label := range tokenKeys {
		server := tlstest.PlainServer(tls.VersionTLS13)
		server.Certificates = []tls.Certificate{k.cert(label, tlstest.ServerName)}
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				key, err := keys.Load(k.URI+";object="+label+";type=private", k.opts...)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := key.Sign(nil, make([]byte, 32), crypto.SHA256); err != nil {
					t.Error(err)
				}
			})
		}
		for range 64 {
			all.Go(func() {
				clientErr, serverErr := ossltest.Exchange("std", "ossl", tlstest.PlainClient(tls.VersionTLS13), server)
				if clientErr != nil || serverErr != nil {
					t.Errorf("client: %v; server: %v%s", clientErr, serverErr, codesOf(serverErr))
				}
			})
		}
		all.Wait()
	}
	if n := k.Count("copies"); n != 0 {
		t.Errorf("the token has copied %d keys, which it was not to do", n)
	}
}

// TestPKCS11NestedLoad: the function that is asked for the PIN may load a key.
func TestPKCS11NestedLoad(t *testing.T) {
	k := newToken(t)
	asked := 0
	key, err := keys.Load(k.URI+";object=ec;type=private", k.opts[0], keys.WithPassphrase(func(string) ([]byte, error) {
		asked++
		_, err := keys.Load("pkcs11:token=another;object=ec;type=private", k.opts[0])
		var e *keys.Error
		if !errors.As(err, &e) {
			t.Error(err)
		}
		return []byte(k.PIN), nil
	}))
	if err != nil || asked != 1 {
		t.Fatal(err, asked)
	}
	signAndVerify(t, key, crypto.SHA256)
}

// TestPKCS11ContextBefore: a Context that was made before the provider was loaded (with 3.0, in the
// slim library context) can use a key in the token.
func TestPKCS11ContextBefore(t *testing.T) {
	k := newToken(t)
	var cert, clientCert tls.Certificate
	server, client := tlstest.PlainServer(tls.VersionTLS12), tlstest.PlainClient(tls.VersionTLS12)
	server.MaxVersion, client.MaxVersion = tls.VersionTLS13, tls.VersionTLS13
	server.ClientAuth = tls.RequireAndVerifyClientCert
	server.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &cert, nil }
	client.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &clientCert, nil }
	serverCtx, err := ossl.NewContext(server)
	if err != nil {
		t.Fatal(err)
	}
	clientCtx, err := ossl.NewContext(client)
	if err != nil {
		t.Fatal(err)
	}
	for _, label := range []string{"rsa", "ec", "ed"} {
		cert, clientCert = k.cert(label, tlstest.ServerName), k.cert(label, tlstest.ClientName)
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			a, b := tlstest.Buffered()
			done := make(chan error, 1)
			go func() { done <- serverCtx.Server(b).Handshake() }()
			std := tlstest.PlainClient(version)
			std.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
			peer := tls.Client(a, std)
			if err, serverErr := peer.Handshake(), <-done; err != nil || serverErr != nil {
				t.Errorf("%s, %s: server: %v, its client: %v", label, tls.VersionName(version), serverErr, err)
			}
			a, b = tlstest.Buffered()
			stdServer := tlstest.PlainServer(version)
			stdServer.ClientAuth = tls.RequireAndVerifyClientCert
			stdServer.Certificates = []tls.Certificate{tlstest.ServerCert(tlstest.P256)}
			go func() { done <- tls.Server(b, stdServer).Handshake() }()
			if err, serverErr := clientCtx.Client(a, "").Handshake(), <-done; err != nil || serverErr != nil {
				t.Errorf("%s, %s: client: %v, its server: %v", label, tls.VersionName(version), err, serverErr)
			}
		}
	}
}

// TestPKCS11WrongPIN: a wrong PIN is tried once, and no error contains it.
func TestPKCS11WrongPIN(t *testing.T) {
	k := newToken(t)
	const wrong = "wrong-secret"
	var e *keys.Error
	refused := func(uri string, opts ...keys.Option) {
		t.Helper()
		_, err := keys.Load(uri, append(opts, keys.WithProvider("pkcs11"))...)
		if !errors.As(err, &e) {
			t.Fatal(err)
		}
		t.Log(err)
		if text := fmt.Sprintf("%v %#v %#v", err, e, e.Err); strings.Contains(text, wrong) {
			t.Errorf("the PIN is in %s", text)
		}
	}
	refused(k.URI + ";object=ec")
	if k.Count("logins") != 0 {
		t.Error("logged in without a PIN")
	}
	refused(k.URI+";object=ec", answer(wrong, nil))
	if n := k.Count("logins"); n != 1 {
		t.Errorf("%d logins with one wrong PIN", n)
	}
	refused(k.URI + ";object=ec?pin-value=" + wrong + "2")
	refused(k.URI+";object=ec", answer(strings.Repeat(wrong, 100), nil))
	checkSignature(t, k.key("ec"))
}

// TestPKCS11Gone: if a token fails, only handshakes fail. They succeed when it is back.
func TestPKCS11Gone(t *testing.T) {
	k := newToken(t)
	for _, label := range tokenKeys {
		server := tlstest.PlainServer(tls.VersionTLS12)
		server.MaxVersion = tls.VersionTLS13
		server.Certificates = []tls.Certificate{k.cert(label, tlstest.ServerName)}
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			k.Tell("r")
			clientErr, serverErr := ossltest.Exchange("std", "ossl", tlstest.PlainClient(version), server)
			var e *ossl.LibraryError
			if clientErr == nil || !errors.As(serverErr, &e) {
				t.Errorf("%s: removed: client: %v; server: %v", label, clientErr, serverErr)
			}
			t.Logf("%s, %s: client: %v; server: %v", label, tls.VersionName(version), clientErr, serverErr)
			if _, err := server.Certificates[0].PrivateKey.(*keys.Key).Sign(nil, make([]byte, 32), crypto.SHA256); err == nil {
				t.Error("signed")
			} else {
				t.Log(err)
			}
			k.Tell("")
			clientErr, serverErr = ossltest.Exchange("std", "ossl", tlstest.PlainClient(version), server)
			if clientErr != nil || serverErr != nil {
				t.Errorf("%s: back again: client: %v; server: %v", label, clientErr, serverErr)
			}
		}
	}
}

// TestPKCS11StaleErrors: errors that a provider leaves in OpenSSL's queue don't make a handshake
// fail.
func TestPKCS11StaleErrors(t *testing.T) {
	k := newToken(t)
	k.Tell("e")
	for _, label := range tokenKeys {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			client, server := tlstest.PlainClient(version), tlstest.PlainServer(version)
			client.Certificates = []tls.Certificate{k.cert(label, tlstest.ClientName)}
			server.Certificates = []tls.Certificate{k.cert(label, tlstest.ServerName)}
			server.ClientAuth = tls.RequireAndVerifyClientCert
			if clientErr, serverErr := ossltest.Exchange("ossl", "ossl", client, server); clientErr != nil || serverErr != nil {
				t.Errorf("%s, %s: client: %v; server: %v", label, tls.VersionName(version), clientErr, serverErr)
			}
			// A real failure still is one.
			client.RootCAs = tlstest.OtherCA().Pool()
			if clientErr, serverErr := ossltest.Exchange("ossl", "ossl", client, server); clientErr == nil || serverErr == nil {
				t.Errorf("%s, %s: not verified: client: %v; server: %v", label, tls.VersionName(version), clientErr, serverErr)
			}
		}
	}
}

// TestPKCS11SessionsLost checks that if a token loses its sessions, and the login with them,
// handshakes fail, without a prompt at a terminal. The key can be loaded again and put into the
// same Context.
func TestPKCS11SessionsLost(t *testing.T) {
	k := newToken(t)
	var cert atomic.Pointer[tls.Certificate]
	renew := func() {
		c := k.cert("ec", tlstest.ServerName)
		cert.Store(&c)
	}
	renew()
	server := tlstest.PlainServer(tls.VersionTLS12)
	server.MaxVersion = tls.VersionTLS13
	server.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return cert.Load(), nil }
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, tell := range []string{"c", ""} { // while it signs, and afterwards
			k.Tell(tell)
			clientErr, serverErr := ossltest.Exchange("std", "ossl", tlstest.PlainClient(version), server)
			if clientErr == nil || serverErr == nil {
				t.Errorf("client: %v; server: %v", clientErr, serverErr)
			}
			t.Logf("%s: client: %v; server: %v", tls.VersionName(version), clientErr, serverErr)
		}
		asked := k.asked.Load()
		renew()
		if k.asked.Load() != asked+1 {
			t.Errorf("asked %d times", k.asked.Load()-asked)
		}
		clientErr, serverErr := ossltest.Exchange("std", "ossl", tlstest.PlainClient(version), server)
		if clientErr != nil || serverErr != nil {
			t.Errorf("loaded again: client: %v; server: %v", clientErr, serverErr)
		}
	}
}

// TestPKCS11FewSessions: with WithMaxSigners no handshake finds the sessions of the token used up.
// Without it, some do, and fail.
func TestPKCS11FewSessions(t *testing.T) {
	t.Setenv("OSSL_TEST_PKCS11_SESSIONS", "4")
	k := newToken(t)
	run := func(n int, opts ...keys.Option) (failures int32) {
		server := tlstest.PlainServer(tls.VersionTLS13)
		server.Certificates = []tls.Certificate{k.cert("ec", tlstest.ServerName, opts...)}
		var all sync.WaitGroup
		var failed atomic.Int32
		started := k.Count("signing")
		open := k.Close()
		for range n {
			all.Go(func() {
				if _, err := ossltest.Exchange("std", "ossl", tlstest.PlainClient(tls.VersionTLS13), server); err != nil {
					failed.Add(1)
				}
			})
		}
		k.Await("signing", started+2)
		if len(opts) == 0 {
			for deadline := time.Now().Add(time.Minute); failed.Load() == 0 && time.Now().Before(deadline); {
				time.Sleep(time.Millisecond)
			}
		}
		open()
		all.Wait()
		return failed.Load()
	}
	if n := run(64, keys.WithMaxSigners(2)); n != 0 {
		t.Errorf("%d handshakes failed", n)
	}
	if n := run(64); n == 0 {
		t.Error("no handshake failed without a bound: the test shows nothing")
	}
	if n := run(64, keys.WithMaxSigners(2)); n != 0 {
		t.Errorf("%d handshakes failed, after others did", n)
	}
}

// TestPKCS11NoPSS checks that a token that can't sign with RSA-PSS can be used for TLS 1.2, if the
// certificate's SupportedSignatureAlgorithms leave RSA-PSS out.
func TestPKCS11NoPSS(t *testing.T) {
	t.Setenv("OSSL_TEST_PKCS11_NO_PSS", "1")
	k := newToken(t)
	cert := k.cert("rsa", tlstest.ServerName)
	server := tlstest.PlainServer(tls.VersionTLS12)
	server.MaxVersion = tls.VersionTLS13
	server.Certificates = []tls.Certificate{cert}
	clientErr, serverErr := ossltest.Exchange("std", "ossl", tlstest.PlainClient(tls.VersionTLS13), server)
	if clientErr == nil || serverErr == nil {
		t.Error("TLS 1.3 without RSA-PSS")
	}
	t.Logf("TLS 1.3: client: %v; server: %v", clientErr, serverErr)
	clientErr, serverErr = ossltest.Exchange("std", "ossl", tlstest.PlainClient(tls.VersionTLS12), server)
	t.Logf("TLS 1.2, all algorithms: client: %v; server: %v", clientErr, serverErr)
	cert.SupportedSignatureAlgorithms = []tls.SignatureScheme{tls.PKCS1WithSHA256, tls.PKCS1WithSHA384}
	limited := tlstest.PlainServer(tls.VersionTLS12)
	limited.Certificates = []tls.Certificate{cert}
	clientErr, serverErr = ossltest.Exchange("std", "ossl", tlstest.PlainClient(tls.VersionTLS12), limited)
	if clientErr != nil || serverErr != nil {
		t.Errorf("TLS 1.2, what it can: client: %v; server: %v", clientErr, serverErr)
	}
	if _, err := cert.PrivateKey.(*keys.Key).Sign(nil, make([]byte, 32), &rsa.PSSOptions{Hash: crypto.SHA256}); err == nil {
		t.Error("signed by RSA-PSS")
	}
	signAndVerify(t, cert.PrivateKey.(*keys.Key), crypto.SHA256)
}
