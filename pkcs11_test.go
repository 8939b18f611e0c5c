//go:build cgo && unix

package ossl_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// The tests of keys in a token. ci/pkcs11 makes the token, and runs each test in a process of its own: OpenSSL reads its
// configuration once, a provider stays, and a login holds.
const (
	envToken    = "OSSL_TEST_PKCS11"          // the token's URI
	envPIN      = "OSSL_TEST_PKCS11_PIN"      // its PIN
	envProvider = "OSSL_TEST_PKCS11_PROVIDER" // pkcs11-provider's module
	envGateSO   = "OSSL_TEST_PKCS11_GATE_SO"  // testdata/pkcs11/gate.c, built
	envActive   = "OSSL_TEST_PKCS11_ACTIVE"   // not empty: openssl.cnf activates the provider
)

// softToken is a token that can be told how to behave.
type softToken struct {
	t    *testing.T
	uri  string
	dir  string // of gate.c's files
	pin  string
	opts []ossl.KeyOption
	// asked counts how often the PIN was asked for.
	asked atomic.Int32
}

// newToken configures OpenSSL, which must not be loaded yet, for the token, as docs/KEYS.md says. settings go into
// pkcs11-provider's section.
func newToken(t *testing.T, settings ...string) *softToken {
	t.Helper()
	for _, name := range []string{envToken, envPIN, envProvider, envGateSO} {
		if os.Getenv(name) == "" {
			t.Skipf("%s names nothing: softhsm2 and OpenSSL's pkcs11 provider not found (ci/pkcs11 finds them)", name)
		}
	}
	k := &softToken{t: t, uri: os.Getenv(envToken), pin: os.Getenv(envPIN), dir: t.TempDir()}
	k.tell("")
	t.Setenv("OSSL_TEST_PKCS11_GATE", k.dir)
	conf := "openssl_conf = main\n[main]\nproviders = list\n[list]\ndefault = default_provider\npkcs11 = pkcs11_provider\n" +
		"[default_provider]\nactivate = 1\n[pkcs11_provider]\nmodule = " + os.Getenv(envProvider) +
		"\npkcs11-module-path = " + os.Getenv(envGateSO) + "\npkcs11-module-cache-keys = false\n" + strings.Join(settings, "\n") + "\n"
	if os.Getenv(envActive) != "" {
		conf += "activate = 1\n"
	}
	file := filepath.Join(k.dir, "openssl.cnf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OPENSSL_CONF", file)
	k.opts = []ossl.KeyOption{ossl.WithProvider("pkcs11"), ossl.WithPassphrase(func(uri string) ([]byte, error) {
		k.asked.Add(1)
		if strings.Contains(uri, k.pin) {
			t.Errorf("%s", uri)
		}
		return []byte(k.pin), nil
	})}
	return k
}

// tell says what becomes of signatures.
func (k *softToken) tell(what string) {
	if err := os.WriteFile(filepath.Join(k.dir, "gate"), []byte(what), 0o600); err != nil {
		k.t.Fatal(err)
	}
}

// close holds up all signatures until open is called.
func (k *softToken) close() (open func()) {
	f, err := os.Open(filepath.Join(k.dir, "gate"))
	if err == nil {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		k.t.Fatal(err)
	}
	return func() { f.Close() }
}

// count returns how many things of a kind there were.
func (k *softToken) count(what string) int {
	info, err := os.Stat(filepath.Join(k.dir, what))
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	if err != nil {
		k.t.Fatal(err)
	}
	return int(info.Size())
}

func (k *softToken) await(what string, n int) {
	k.t.Helper()
	for deadline := time.Now().Add(time.Minute); k.count(what) < n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			k.t.Fatalf("%s: %d of %d", what, k.count(what), n)
		}
	}
}

func (k *softToken) key(label string, opts ...ossl.KeyOption) *ossl.Key {
	k.t.Helper()
	key, err := ossl.LoadKey(k.uri+";object="+label+";type=private", append(k.opts, opts...)...)
	if err != nil {
		k.t.Fatal(err)
	}
	return key
}

// cert returns a certificate for a key in the token.
func (k *softToken) cert(label, name string, opts ...ossl.KeyOption) tls.Certificate {
	k.t.Helper()
	return tlstest.New(tlstest.Options{Key: k.key(label, opts...), Names: []string{name}})
}

var tokenKeys = []string{"rsa", "ec"}

// Without the provider there is an error that says so; an openssl.cnf that activates it is enough.
func TestPKCS11Provider(t *testing.T) {
	k := newToken(t)
	key, err := ossl.LoadKey(k.uri+";object=ec?pin-value="+k.pin, k.opts[1])
	if os.Getenv(envActive) != "" {
		if err != nil || key.Provider() != "pkcs11" {
			t.Fatal(key, err)
		}
		return
	}
	var e *ossl.KeyError
	if !errors.As(err, &e) || !strings.Contains(e.Reason, "pkcs11") || strings.Contains(fmt.Sprintf("%v%#v", err, e), k.pin) {
		t.Fatal(err)
	}
	t.Log(err)
	if key, err = ossl.LoadKey(k.uri+";object=ec?pin-value="+k.pin, k.opts...); err != nil {
		t.Fatal(err)
	}
	if key.Provider() != "pkcs11" || strings.Contains(key.String(), k.pin) {
		t.Errorf("%v of %s", key, key.Provider())
	}
	if k.asked.Load() != 0 {
		t.Error("asked for a PIN that the URI has")
	}
	// The default provider's algorithms are the ones in use for all else.
	checkSignature(t, loaded(t, tlstest.P256, tlstest.ServerName).PrivateKey.(*ossl.Key))
}

// Keys in a token sign as crypto.Signer says.
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
	if k.asked.Load() != 1 || k.count("logins") != 1 {
		t.Errorf("asked %d times, logged in %d times", k.asked.Load(), k.count("logins"))
	}
	const noKey = "there is no private key, or the PIN is wrong"
	var e *ossl.KeyError
	if _, err := ossl.LoadKey(k.uri, k.opts...); !errors.As(err, &e) || !strings.Contains(e.Reason, "name one") {
		t.Errorf("all keys of the token: %v", err)
	}
	if _, err := ossl.LoadKey(k.uri+";object=none", k.opts...); !errors.As(err, &e) || e.Reason != noKey {
		t.Errorf("none: %v", err)
	}
	if _, err := ossl.LoadKey("pkcs11:token=none;object=ec", k.opts...); !errors.As(err, &e) {
		t.Errorf("no such token: %v", err)
	} else {
		t.Log(err)
	}
	if _, err := ossl.LoadKey(k.uri+";object=ec;type=public", k.opts...); !errors.As(err, &e) || e.Reason != noKey {
		t.Errorf("public key: %v", err)
	}
}

// A token may have many certificates; what is sent is the key's chain.
func TestPKCS11Pair(t *testing.T) {
	k := newToken(t)
	for _, label := range tokenKeys {
		pair, err := ossl.LoadX509KeyPair(k.uri+";type=cert", k.uri+";type=private;object="+label, k.opts...)
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
	var e *ossl.KeyError
	_, err := ossl.LoadX509KeyPair(k.uri+";type=cert;object=rsa", k.uri+";type=private;object=ec", k.opts...)
	if !errors.As(err, &e) {
		t.Errorf("another's certificate: %v", err)
	}
}

// codesOf is what OpenSSL said of an error: its text is libssl's alone, and what the token said is behind it.
func codesOf(err error) string {
	var e *ossl.LibraryError
	if !errors.As(err, &e) {
		return ""
	}
	return fmt.Sprintf(" %#x", e.Codes)
}

// Keys in a token sign handshakes of servers and clients under load, with crypto/tls as the peer.
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
					before := k.count("signing")
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
					if n := k.count("signing") - before; n != signatures {
						t.Errorf("the token made %d signatures, not %d", n, signatures)
					}
				})
			}
		}
	}
}

// Keys are loaded from the token, and sign, while others of it do.
func TestPKCS11Parallel(t *testing.T) {
	k := newToken(t)
	for _, label := range tokenKeys {
		server := tlstest.PlainServer(tls.VersionTLS13)
		server.Certificates = []tls.Certificate{k.cert(label, tlstest.ServerName)}
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				key, err := ossl.LoadKey(k.uri+";object="+label+";type=private", k.opts...)
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
				if clientErr, serverErr := ossltest.Exchange("std", "ossl", tlstest.PlainClient(tls.VersionTLS13),
					server); clientErr != nil || serverErr != nil {
					t.Errorf("client: %v; server: %v%s", clientErr, serverErr, codesOf(serverErr))
				}
			})
		}
		all.Wait()
	}
	if n := k.count("copies"); n != 0 {
		t.Errorf("the token has copied %d keys, which it was not to do", n)
	}
}

// Who is asked for the PIN may load a key meanwhile.
func TestPKCS11NestedLoad(t *testing.T) {
	k := newToken(t)
	asked := 0
	key, err := ossl.LoadKey(k.uri+";object=ec;type=private", k.opts[0], ossl.WithPassphrase(func(string) ([]byte, error) {
		asked++
		_, err := ossl.LoadKey("pkcs11:token=another;object=ec;type=private", k.opts[0])
		var e *ossl.KeyError
		if !errors.As(err, &e) {
			t.Error(err)
		}
		return []byte(k.pin), nil
	}))
	if err != nil || asked != 1 {
		t.Fatal(err, asked)
	}
	signAndVerify(t, key, crypto.SHA256)
}

// A Context made before there was a provider, with 3.0 in the slim library context, takes a key in the token.
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

// A wrong PIN is tried once, and is in no error.
func TestPKCS11WrongPIN(t *testing.T) {
	k := newToken(t)
	const wrong = "wrong-secret"
	var e *ossl.KeyError
	refused := func(uri string, opts ...ossl.KeyOption) {
		t.Helper()
		_, err := ossl.LoadKey(uri, append(opts, ossl.WithProvider("pkcs11"))...)
		if !errors.As(err, &e) {
			t.Fatal(err)
		}
		t.Log(err)
		if text := fmt.Sprintf("%v %#v %#v", err, e, e.Err); strings.Contains(text, wrong) {
			t.Errorf("the PIN is in %s", text)
		}
	}
	refused(k.uri + ";object=ec")
	if k.count("logins") != 0 {
		t.Error("logged in without a PIN")
	}
	refused(k.uri+";object=ec", answer(wrong, nil))
	if n := k.count("logins"); n != 1 {
		t.Errorf("%d logins with one wrong PIN", n)
	}
	refused(k.uri + ";object=ec?pin-value=" + wrong + "2")
	refused(k.uri+";object=ec", answer(strings.Repeat(wrong, 100), nil))
	checkSignature(t, k.key("ec"))
}

// A token that fails makes handshakes fail and nothing else; when it is back they succeed.
func TestPKCS11Gone(t *testing.T) {
	k := newToken(t)
	for _, label := range tokenKeys {
		server := tlstest.PlainServer(tls.VersionTLS12)
		server.MaxVersion = tls.VersionTLS13
		server.Certificates = []tls.Certificate{k.cert(label, tlstest.ServerName)}
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			k.tell("r")
			clientErr, serverErr := ossltest.Exchange("std", "ossl", tlstest.PlainClient(version), server)
			var e *ossl.LibraryError
			if clientErr == nil || !errors.As(serverErr, &e) {
				t.Errorf("%s: removed: client: %v; server: %v", label, clientErr, serverErr)
			}
			t.Logf("%s, %s: client: %v; server: %v", label, tls.VersionName(version), clientErr, serverErr)
			if _, err := server.Certificates[0].PrivateKey.(*ossl.Key).Sign(nil, make([]byte, 32), crypto.SHA256); err == nil {
				t.Error("signed")
			} else {
				t.Log(err)
			}
			k.tell("")
			if clientErr, serverErr := ossltest.Exchange("std", "ossl", tlstest.PlainClient(version), server); clientErr != nil ||
				serverErr != nil {
				t.Errorf("%s: back again: client: %v; server: %v", label, clientErr, serverErr)
			}
		}
	}
}

// What a provider leaves in OpenSSL's error queue is no failure of a handshake that goes on.
func TestPKCS11StaleErrors(t *testing.T) {
	k := newToken(t)
	k.tell("e")
	for _, label := range tokenKeys {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			client, server := tlstest.PlainClient(version), tlstest.PlainServer(version)
			client.Certificates = []tls.Certificate{k.cert(label, tlstest.ClientName)}
			server.Certificates = []tls.Certificate{k.cert(label, tlstest.ServerName)}
			server.ClientAuth = tls.RequireAndVerifyClientCert
			if clientErr, serverErr := ossltest.Exchange("ossl", "ossl", client, server); clientErr != nil || serverErr != nil {
				t.Errorf("%s, %s: client: %v; server: %v", label, tls.VersionName(version), clientErr, serverErr)
			}
			// A real failure is one all the same.
			client.RootCAs = tlstest.OtherCA().Pool()
			if clientErr, serverErr := ossltest.Exchange("ossl", "ossl", client, server); clientErr == nil || serverErr == nil {
				t.Errorf("%s, %s: not verified: client: %v; server: %v", label, tls.VersionName(version), clientErr, serverErr)
			}
		}
	}
}

// A token that loses its sessions, and the login with them, makes handshakes fail, and nobody is asked at a terminal. The key is
// loaded again and put into the same Context.
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
			k.tell(tell)
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
		if clientErr, serverErr := ossltest.Exchange("std", "ossl", tlstest.PlainClient(version), server); clientErr != nil ||
			serverErr != nil {
			t.Errorf("loaded again: client: %v; server: %v", clientErr, serverErr)
		}
	}
}

// Handshakes that wait for the token hold a bounded number of threads; others go on; Close and cancellation work meanwhile.
func TestPKCS11Slow(t *testing.T) {
	const handshakes = 400
	k := newToken(t)
	slow := tlstest.PlainServer(tls.VersionTLS13)
	slow.Certificates = []tls.Certificate{k.cert("ec", tlstest.ServerName)}
	ctx, err := ossl.NewContext(slow)
	if err != nil {
		t.Fatal(err)
	}
	fast := tlstest.PlainServer(tls.VersionTLS13)
	fast.Certificates = []tls.Certificate{tlstest.ServerCert(tlstest.P256)}
	before := tlstest.Threads(t)
	open := k.close()
	opened := false
	defer func() {
		if !opened {
			open()
		}
	}()

	var all sync.WaitGroup
	var succeeded, cancelled, closed atomic.Int32
	servers := make([]*ossl.Conn, handshakes)
	toCancel, cancel := context.WithCancel(t.Context())
	for i := range servers {
		a, b := tlstest.Buffered()
		servers[i] = ctx.Server(b)
		under := t.Context()
		if i%10 == 1 {
			under = toCancel
		}
		all.Go(func() {
			switch err := servers[i].HandshakeContext(under); {
			case err == nil:
				succeeded.Add(1)
			case errors.Is(err, context.Canceled):
				cancelled.Add(1)
			case errors.Is(err, net.ErrClosed):
				closed.Add(1)
			default:
				t.Error(err)
			}
		})
		all.Go(func() {
			client := tls.Client(a, tlstest.PlainClient(tls.VersionTLS13))
			_ = client.Handshake()
			runtime.KeepAlive(client)
		})
	}
	k.await("signing", ossl.DefaultMaxSigners)
	if n := tlstest.Threads(t) - before; n > ossl.DefaultMaxSigners+100 {
		t.Errorf("%d more threads for %d handshakes that wait", n, handshakes)
	}
	if n := k.count("signing"); n > ossl.DefaultMaxSigners {
		t.Errorf("%d signatures are under way", n)
	}
	if clientErr, serverErr := ossltest.Exchange("std", "ossl", tlstest.PlainClient(tls.VersionTLS13), fast); clientErr != nil ||
		serverErr != nil {
		t.Errorf("another Context: client: %v; server: %v", clientErr, serverErr)
	}
	for i := 0; i < handshakes; i += 10 {
		servers[i].Close()
	}
	cancel()
	opened = true
	open()
	all.Wait()
	t.Logf("%d succeeded, %d cancelled, %d closed", succeeded.Load(), cancelled.Load(), closed.Load())
	if succeeded.Load() != handshakes*8/10 || cancelled.Load() != handshakes/10 || closed.Load() != handshakes/10 {
		t.Error("not as expected")
	}
	for i, s := range servers {
		s.Close()
		if !s.Freed() {
			t.Errorf("connection %d keeps its C memory", i)
		}
	}
}

// With WithMaxSigners no handshake meets a token whose sessions are used up; without, some do, and fail.
func TestPKCS11FewSessions(t *testing.T) {
	t.Setenv("OSSL_TEST_PKCS11_SESSIONS", "4")
	k := newToken(t)
	run := func(n int, opts ...ossl.KeyOption) (failures int32) {
		server := tlstest.PlainServer(tls.VersionTLS13)
		server.Certificates = []tls.Certificate{k.cert("ec", tlstest.ServerName, opts...)}
		var all sync.WaitGroup
		var failed atomic.Int32
		started := k.count("signing")
		open := k.close()
		for range n {
			all.Go(func() {
				if _, err := ossltest.Exchange("std", "ossl", tlstest.PlainClient(tls.VersionTLS13), server); err != nil {
					failed.Add(1)
				}
			})
		}
		k.await("signing", started+2)
		if len(opts) == 0 {
			for deadline := time.Now().Add(time.Minute); failed.Load() == 0 && time.Now().Before(deadline); {
				time.Sleep(time.Millisecond)
			}
		}
		open()
		all.Wait()
		return failed.Load()
	}
	if n := run(64, ossl.WithMaxSigners(2)); n != 0 {
		t.Errorf("%d handshakes failed", n)
	}
	if n := run(64); n == 0 {
		t.Error("no handshake failed without a bound: the test shows nothing")
	}
	if n := run(64, ossl.WithMaxSigners(2)); n != 0 {
		t.Errorf("%d handshakes failed, after others did", n)
	}
}

// A token that can't sign by RSA-PSS is good for TLS 1.2, where the certificate says so.
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
	if clientErr, serverErr := ossltest.Exchange("std", "ossl", tlstest.PlainClient(tls.VersionTLS12),
		limited); clientErr != nil || serverErr != nil {
		t.Errorf("TLS 1.2, what it can: client: %v; server: %v", clientErr, serverErr)
	}
	if _, err := cert.PrivateKey.(*ossl.Key).Sign(nil, make([]byte, 32), &rsa.PSSOptions{Hash: crypto.SHA256}); err == nil {
		t.Error("signed by RSA-PSS")
	}
	signAndVerify(t, cert.PrivateKey.(*ossl.Key), crypto.SHA256)
}
