//go:build cgo || ossl_nocgo

package libssl_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

func load(t testing.TB) *libssl.Library {
	t.Helper()
	lib, err := libssl.Load("")
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

// opaqueKey is a key that only implements crypto.Signer, like one in an HSM. instead, if set, signs
// in its place.
type opaqueKey struct {
	key     crypto.Signer
	signed  atomic.Int32
	instead func(digest []byte, opts crypto.SignerOpts) ([]byte, error)
}

func (k *opaqueKey) Public() crypto.PublicKey { return k.key.Public() }

func (k *opaqueKey) Sign(rand io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	k.signed.Add(1)
	if k.instead != nil {
		return k.instead(digest, opts)
	}
	return k.key.Sign(rand, digest, opts)
}

// A witness remembers why signing failed.
type witness struct{ err error }

func (w *witness) alert(c *libssl.Conn) (alert uint8, ok bool) { _, alert, ok = c.AlertOut(); return }

// endpoint is one side of a connection that uses libssl directly.
type endpoint struct {
	conn   *libssl.Conn
	wire   net.Conn
	cred   *libssl.Credential // for NeedCert and NeedHello
	chosen func()             // called after these, if set
	told   *witness
	unread []byte
	out    []byte
	facts  libssl.Facts // once the handshake is done
}

func (e *endpoint) flush(s libssl.Step) error {
	for _, b := range [][]byte{e.out[:s.Produced], e.conn.Spill()} {
		if len(b) > 0 {
			if _, err := e.wire.Write(b); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *endpoint) fill() error {
	var b [1 << 14]byte
	n, err := e.wire.Read(b[:])
	e.unread = append(e.unread, b[:n]...)
	if n > 0 {
		return nil
	}
	return err
}

var errFatal = errors.New("fatal step")

func (e *endpoint) handshake() error {
	for {
		s := e.conn.Handshake(e.unread, e.out, &e.facts)
		e.unread = e.unread[s.Consumed:]
		if err := e.flush(s); err != nil {
			return err
		}
		switch s.Status {
		case libssl.Done:
			return nil
		case libssl.WantRead:
			if err := e.fill(); err != nil {
				return err
			}
		case libssl.WantWrite:
		case libssl.NeedVerify:
			e.conn.SetVerdict(libssl.VerdictOK)
		case libssl.NeedSign:
			request := e.conn.SignRequest()
			sig, err := request.Sign(context.Background())
			if err != nil {
				e.told.err = err
			}
			e.conn.SetSignature(sig)
		case libssl.NeedCert, libssl.NeedHello:
			if err := e.conn.UseCredential(e.cred); err != nil {
				return err
			}
			e.cred = nil
			if e.chosen != nil {
				e.chosen()
			}
		default:
			return fmt.Errorf("%w: status %d: %v", errFatal, s.Status, &libssl.Error{Op: "handshake", Codes: e.conn.Errors()})
		}
	}
}

// read reads until there is a byte of data, which shows that the peer accepts the handshake too.
func (e *endpoint) read() (byte, error) {
	var b [1]byte
	for {
		s := e.conn.Read(e.unread, b[:])
		e.unread = e.unread[s.Consumed:]
		if err := e.flush(s); err != nil {
			return 0, err
		}
		switch {
		case s.N == 1:
			return b[0], nil
		case s.Status == libssl.WantRead:
			if err := e.fill(); err != nil {
				return 0, err
			}
		default:
			return 0, errFatal
		}
	}
}

func (e *endpoint) write(b byte) error { return e.flush(e.conn.Write([]byte{b}, e.out, 0, 0)) }

// A setup is one handshake between libssl with a credential and crypto/tls.
type setup struct {
	server  bool // libssl's side
	version uint16
	cred    *libssl.Credential
	witness *witness
	start   bool // by Context.Start, where Go can't be asked to sign
	hello   bool // the server chooses the credential at the ClientHello
	chosen  func()
}

// run makes the handshake and sends a byte each way. It returns libssl's connection, which the
// caller frees, and both sides' errors.
func (s setup) run(t testing.TB) (conn *libssl.Conn, err, peerErr error) {
	t.Helper()
	cfg := &libssl.ContextConfig{MinVersion: s.version, MaxVersion: s.version, SecurityLevel: -1, WantCert: true,
		SignatureSchemes: []tls.SignatureScheme{
			tls.ECDSAWithP256AndSHA256, tls.ECDSAWithP384AndSHA384, tls.ECDSAWithP521AndSHA512, tls.Ed25519,
			tls.PSSWithSHA256, tls.PSSWithSHA384, tls.PSSWithSHA512,
			tls.PKCS1WithSHA256, tls.PKCS1WithSHA384, tls.PKCS1WithSHA512,
		}}
	if s.server {
		cfg.WantCert = false
		cfg.WantHello = s.hello
		if !s.hello {
			cfg.Credential = s.cred
		}
	}
	ctx, err := libssl.NewContext(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if s.witness == nil {
		s.witness = new(witness)
	}
	ours, theirs := tlstest.Buffered()
	defer ours.Close()
	defer theirs.Close()
	limit := time.Now().Add(time.Minute)
	ours.SetDeadline(limit)
	theirs.SetDeadline(limit)

	done := make(chan error, 1)
	go func() {
		config := &tls.Config{MinVersion: s.version, MaxVersion: s.version, RootCAs: tlstest.CA().Pool(),
			ServerName: tlstest.ServerName,
			ClientCAs:  tlstest.CA().Pool(), ClientAuth: tls.RequireAndVerifyClientCert, SessionTicketsDisabled: true,
			Certificates: []tls.Certificate{tlstest.New(tlstest.Options{})}}
		peer := tls.Client(theirs, config)
		if !s.server {
			peer = tls.Server(theirs, config)
		}
		done <- func() error {
			defer theirs.Close()
			if err := peer.Handshake(); err != nil {
				return err
			}
			if _, err := peer.Write([]byte{1}); err != nil {
				return err
			}
			_, err := io.ReadFull(peer, make([]byte, 1))
			return err
		}()
	}()

	e := &endpoint{wire: ours, cred: s.cred, chosen: s.chosen, told: s.witness, out: make([]byte, 1<<15)}
	var step libssl.Step
	if e.conn, step, err = ctx.Start(s.server, !s.start, tlstest.ServerName, nil, nil, e.out); err != nil {
		t.Fatal(err)
	}
	if err := e.flush(step); err != nil {
		t.Fatal(err)
	}
	s.cred, cfg.Credential = nil, nil
	if s.server && !s.hello {
		e.cred = nil
	}
	if s.chosen != nil {
		s.chosen()
	}
	err = func() error {
		defer ours.Close()
		if err := e.handshake(); err != nil {
			return err
		}
		if _, err := e.read(); err != nil {
			return err
		}
		return e.write(2)
	}()
	// The peer sees our close; otherwise its own deadline stops it.
	return e.conn, err, <-done
}

func credential(t testing.TB, kind tlstest.KeyKind, schemes ...tls.SignatureScheme) (*libssl.Credential, *opaqueKey) {
	t.Helper()
	cert := tlstest.New(tlstest.Options{Kind: kind})
	key := &opaqueKey{key: cert.PrivateKey.(crypto.Signer)}
	cred, err := libssl.NewSignerCredential(cert.Certificate, key, schemes, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return cred, key
}

func roleName(server bool) string {
	if server {
		return "server"
	}
	return "client"
}

func TestSigner(t *testing.T) {
	lib := load(t)
	for _, c := range []struct {
		kind    tlstest.KeyKind
		scheme  tls.SignatureScheme // 0: all
		version uint16              // 0: both
	}{
		{tlstest.RSA2048, 0, 0},
		{tlstest.RSA2048, tls.PSSWithSHA256, 0},
		{tlstest.RSA2048, tls.PSSWithSHA384, 0},
		{tlstest.RSA2048, tls.PSSWithSHA512, 0},
		{tlstest.RSA2048, tls.PKCS1WithSHA256, tls.VersionTLS12},
		{tlstest.RSA2048, tls.PKCS1WithSHA384, tls.VersionTLS12},
		{tlstest.RSA2048, tls.PKCS1WithSHA512, tls.VersionTLS12},
		{tlstest.P256, 0, 0},
		{tlstest.P384, 0, 0},
		{tlstest.P521, 0, 0},
		{tlstest.P256, tls.ECDSAWithP384AndSHA384, tls.VersionTLS12},
		{tlstest.Ed25519, 0, 0},
	} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			for _, server := range []bool{true, false} {
				if c.version != 0 && c.version != version {
					continue
				}
				name := fmt.Sprintf("%s/%s/%s/%s", c.kind, libssl.SignatureName(c.scheme), tls.VersionName(version), roleName(server))
				t.Run(name, func(t *testing.T) {
					if c.kind == tlstest.Ed25519 && lib.Number < libssl.Version3_0 {
						t.Skipf("%s: Ed25519 signers need 3.0: TestSignerRefused", lib.Version())
					}
					var schemes []tls.SignatureScheme
					if c.scheme != 0 {
						schemes = []tls.SignatureScheme{c.scheme}
					}
					cred, key := credential(t, c.kind, schemes...)
					if !cred.AsksGo() {
						t.Error("AsksGo is false")
					}
					w := new(witness)
					conn, err, peerErr := setup{server: server, version: version, cred: cred, witness: w}.run(t)
					defer conn.Free(false, nil)
					if err != nil || peerErr != nil || w.err != nil {
						t.Fatalf("libssl: %v; crypto/tls: %v; signer: %v", err, peerErr, w.err)
					}
					if n := key.signed.Load(); n != 1 {
						t.Errorf("the signer was called %d times", n)
					}
				})
			}
		}
	}
}

// A message signer gets the message itself if libssl passes it, as in crypto/tls.
type messageSigner struct {
	opaqueKey
	messages atomic.Int32
}

func (k *messageSigner) SignMessage(rand io.Reader, msg []byte, opts crypto.SignerOpts) ([]byte, error) {
	k.messages.Add(1)
	return crypto.SignMessage(k.key, rand, msg, opts)
}

func TestMessageSigner(t *testing.T) {
	lib := load(t)
	cert := tlstest.New(tlstest.Options{})
	key := &messageSigner{opaqueKey: opaqueKey{key: cert.PrivateKey.(crypto.Signer)}}
	cred, err := libssl.NewSignerCredential(cert.Certificate, key, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	conn, err, peerErr := setup{server: true, version: tls.VersionTLS13, cred: cred}.run(t)
	defer conn.Free(false, nil)
	if err != nil || peerErr != nil {
		t.Fatalf("libssl: %v; crypto/tls: %v", err, peerErr)
	}
	want := int32(1)
	if lib.Number < libssl.Version3_0 { // libcrypto hashes before its engine is asked
		want = 0
	}
	if key.messages.Load() != want || key.signed.Load() != 1-want {
		t.Errorf("SignMessage was called %d times, Sign %d", key.messages.Load(), key.signed.Load())
	}
}

func TestSignerFails(t *testing.T) {
	load(t)
	cause := errors.New("the token was pulled out")
	for _, c := range []struct {
		name string
		sign func([]byte, crypto.SignerOpts) ([]byte, error)
		want string // text of the reported error; "" if only the peer notices
	}{
		{"error", func([]byte, crypto.SignerOpts) ([]byte, error) { return nil, cause }, cause.Error()},
		{"empty", func([]byte, crypto.SignerOpts) ([]byte, error) { return nil, nil }, "empty signature"},
		{"too long", func([]byte, crypto.SignerOpts) ([]byte, error) { return make([]byte, 5000), nil }, "5000 bytes"},
		{"garbage", func([]byte, crypto.SignerOpts) ([]byte, error) { return []byte("not a signature"), nil }, ""},
		{"changes its input", func(b []byte, _ crypto.SignerOpts) ([]byte, error) { clear(b); return nil, cause }, cause.Error()},
	} {
		for _, kind := range []tlstest.KeyKind{tlstest.RSA2048, tlstest.P256} {
			for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
				for _, server := range []bool{true, false} {
					t.Run(fmt.Sprintf("%s/%s/%s/%s", c.name, kind, tls.VersionName(version), roleName(server)), func(t *testing.T) {
						cred, key := credential(t, kind)
						key.instead = c.sign
						w := new(witness)
						conn, err, peerErr := setup{server: server, version: version, cred: cred, witness: w}.run(t)
						defer conn.Free(false, nil)
						if err == nil || peerErr == nil {
							t.Fatalf("libssl: %v; crypto/tls: %v", err, peerErr)
						}
						if c.want == "" {
							if _, alert, ok := conn.AlertIn(); w.err != nil || !ok {
								t.Errorf("told %v, alert read %d %v", w.err, alert, ok)
							}
							return
						}
						if w.err == nil || !strings.Contains(w.err.Error(), c.want) {
							t.Errorf("told %v, want %q", w.err, c.want)
						}
						if c.want == cause.Error() && !errors.Is(w.err, cause) {
							t.Errorf("%v doesn't wrap its cause", w.err)
						}
						if alert, ok := w.alert(conn); !ok || alert != 80 {
							t.Errorf("alert %d %v, want internal_error", alert, ok)
						}
						// crypto/tls's own alerts have a type that it doesn't export.
						var remote *net.OpError
						if !errors.As(peerErr, &remote) || remote.Err.Error() != tls.AlertError(80).Error() {
							t.Errorf("the peer got %v", peerErr)
						}
					})
				}
			}
		}
	}
}

func TestSignerRefused(t *testing.T) {
	lib := load(t)
	p256 := tlstest.New(tlstest.Options{})
	if _, err := libssl.NewSignerCredential(p256.Certificate, unknownKey{}, nil, nil, nil); err == nil {
		t.Error("a key of an unknown kind was accepted")
	}
	key := &opaqueKey{key: tlstest.Key(tlstest.P256, "leaf")}
	if _, err := libssl.NewSignerCredential([][]byte{{1, 2, 3}}, key, nil, nil, nil); err == nil {
		t.Error("a certificate that is none was accepted")
	}
	ed := tlstest.New(tlstest.Options{Kind: tlstest.Ed25519})
	_, err := libssl.NewSignerCredential(ed.Certificate, &opaqueKey{key: ed.PrivateKey.(crypto.Signer)}, nil, nil, nil)
	if old := lib.Number < libssl.Version3_0; old != (err != nil) || old && !strings.Contains(err.Error(), "Ed25519") {
		t.Errorf("%s, Ed25519: %v", lib.Version(), err)
	}
}

type unknownKey struct{}

func (unknownKey) Public() crypto.PublicKey { return unknownKey{} }
func (unknownKey) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return nil, errors.New("unused")
}

// A connection that can't ask Go doesn't, with any credential: the handshake fails and the process
// continues.
func TestSignerWithoutAsking(t *testing.T) {
	load(t)
	for _, kind := range []tlstest.KeyKind{tlstest.RSA2048, tlstest.P256} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			t.Run(fmt.Sprintf("%s/%s", kind, tls.VersionName(version)), func(t *testing.T) {
				cred, key := credential(t, kind)
				conn, err, peerErr := setup{server: true, version: version, cred: cred, start: true}.run(t)
				defer conn.Free(false, nil)
				if err == nil || peerErr == nil || key.signed.Load() != 0 {
					t.Errorf("libssl: %v; crypto/tls: %v; signer called %d times", err, peerErr, key.signed.Load())
				}
			})
		}
	}
}

// A signer may use connections itself, with or without signers.
func TestSignerUsesConnection(t *testing.T) {
	load(t)
	inner, innerKey := credential(t, tlstest.P256)
	outer, outerKey := credential(t, tlstest.RSA2048)
	outerKey.instead = func(digest []byte, opts crypto.SignerOpts) ([]byte, error) {
		if conn, err, peerErr := (setup{server: true, version: tls.VersionTLS13, cred: inner}).run(t); err != nil || peerErr != nil {
			return nil, fmt.Errorf("inner: libssl: %v; crypto/tls: %v", err, peerErr)
		} else {
			conn.Free(true, make([]byte, 256))
		}
		// A connection that can't ask must not ask in the name of the outer one.
		if conn, err, _ := (setup{server: true, version: tls.VersionTLS13, cred: inner, start: true}).run(t); err == nil {
			return nil, errors.New("a connection that can't ask had Go sign")
		} else {
			conn.Free(false, nil)
		}
		return outerKey.key.Sign(rand.Reader, digest, opts)
	}
	w := new(witness)
	conn, err, peerErr := setup{server: true, version: tls.VersionTLS13, cred: outer, witness: w}.run(t)
	defer conn.Free(false, nil)
	if err != nil || peerErr != nil {
		t.Fatalf("libssl: %v; crypto/tls: %v; signer: %v", err, peerErr, w.err)
	}
	if innerKey.signed.Load() != 1 {
		t.Errorf("the inner signer was called %d times", innerKey.signed.Load())
	}
}

// Servers that choose at the ClientHello, many at once with one credential.
func TestSignerConcurrently(t *testing.T) {
	load(t)
	const workers, each = 8, 10
	for _, kind := range []tlstest.KeyKind{tlstest.RSA2048, tlstest.P256} {
		cred, key := credential(t, kind)
		var wg sync.WaitGroup
		for i := range workers {
			wg.Go(func() {
				for range each {
					version := uint16(tls.VersionTLS12 + i%2)
					conn, err, peerErr := setup{server: i%4 < 2, version: version, cred: cred}.run(t)
					conn.Free(err == nil, make([]byte, 256))
					if err != nil || peerErr != nil {
						t.Errorf("%s: libssl: %v; crypto/tls: %v", kind, err, peerErr)
					}
				}
			})
		}
		wg.Wait()
		if n := key.signed.Load(); n != workers*each {
			t.Errorf("%s: signed %d times", kind, n)
		}
	}
}

// The provider affects no other keys: ordinary keys of the same kinds still belong to libcrypto.
func TestSignerLeavesOtherKeysAlone(t *testing.T) {
	load(t)
	for _, kind := range []tlstest.KeyKind{tlstest.RSA2048, tlstest.P256} {
		_, key := credential(t, kind)
		cert := tlstest.New(tlstest.Options{Kind: kind})
		pkcs8, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
		if err != nil {
			t.Fatal(err)
		}
		cred, err := libssl.NewCredential(false, cert.Certificate, pkcs8, nil, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		conn, err, peerErr := setup{server: true, version: tls.VersionTLS13, cred: cred, start: true}.run(t)
		conn.Free(err == nil, make([]byte, 256))
		if err != nil || peerErr != nil || key.signed.Load() != 0 {
			t.Errorf("%s: libssl: %v; crypto/tls: %v; signer called %d times", kind, err, peerErr, key.signed.Load())
		}
	}
}

// waitFor collects garbage until ok, since a credential is freed by a cleanup.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 100 {
		runtime.GC()
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s: not after 100 collections", what)
}

// A connection keeps its signer alive by itself.
func TestSignerIsKept(t *testing.T) {
	load(t)
	for _, c := range []struct {
		name string
		setup
	}{
		{"the context's", setup{server: true}},
		{"chosen at the ClientHello", setup{server: true, hello: true}},
		{"a client's", setup{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.setup
			s.version, s.witness = tls.VersionTLS13, new(witness)
			s.chosen = func() { // collects all garbage
				freed := make(chan struct{})
				runtime.AddCleanup(new([64]byte), func(c chan struct{}) { close(c) }, freed)
				for {
					runtime.GC()
					select {
					case <-freed:
						return
					case <-time.After(10 * time.Millisecond):
					}
				}
			}
			s.cred, _ = credential(t, tlstest.P256)
			conn, err, peerErr := s.take().run(t)
			defer conn.Free(false, nil)
			if err != nil || peerErr != nil {
				t.Errorf("libssl: %v; crypto/tls: %v; signer: %v", err, peerErr, s.witness.err)
			}
		})
	}
}

// take returns s and drops its credential.
func (s *setup) take() setup {
	taken := *s
	s.cred = nil
	return taken
}

func TestSignerLeaks(t *testing.T) {
	load(t)
	if libssl.HeapInUse() == 0 {
		t.Skip("the C library, such as musl, can't tell what is in use on its heap")
	}
	var made, gone atomic.Int32
	fail := errors.New("broken")
	round := func() {
		for i := range 40 {
			cred, key := credential(t, []tlstest.KeyKind{tlstest.RSA2048, tlstest.P256}[i%2])
			made.Add(1)
			runtime.AddCleanup(key, func(int) { gone.Add(1) }, 0)
			if i%4 >= 2 {
				key.instead = func([]byte, crypto.SignerOpts) ([]byte, error) { return nil, fail }
			}
			conn, err, _ := setup{server: i%8 < 4, version: uint16(tls.VersionTLS12 + i%3%2), cred: cred}.run(t)
			conn.Free(err == nil, make([]byte, 256))
			if (err != nil) != (key.instead != nil) {
				t.Errorf("libssl: %v", err)
			}
		}
		waitFor(t, "signers let go", func() bool { return made.Load() == gone.Load() })
	}
	// A leaked key is a kilobyte, and leaks grow every round. The freed memory that the C library
	// keeps does not. Each thread has its own: two threads are enough.
	const leak = 40 * 512
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	round()
	var growth []int64
	for range 60 {
		before := libssl.HeapInUse()
		round()
		growth = append(growth, int64(libssl.HeapInUse())-int64(before))
		if growth[len(growth)-1] < leak {
			return
		}
	}
	t.Errorf("C heap grew by %d bytes in rounds of 40 handshakes", growth)
}

// The list of signature algorithms is the handshake's, not the key's: only TLS's combinations are
// requested.
func TestSignerOptions(t *testing.T) {
	load(t)
	cred, key := credential(t, tlstest.RSA2048, tls.PSSWithSHA384)
	var got crypto.SignerOpts
	key.instead = func(digest []byte, opts crypto.SignerOpts) ([]byte, error) {
		got = opts
		if len(digest) != crypto.SHA384.Size() || bytes.Equal(digest, make([]byte, len(digest))) {
			t.Errorf("digest of %d bytes", len(digest))
		}
		return key.key.Sign(rand.Reader, digest, opts)
	}
	conn, err, peerErr := setup{server: true, version: tls.VersionTLS13, cred: cred}.run(t)
	defer conn.Free(false, nil)
	if err != nil || peerErr != nil || got == nil || got.HashFunc() != crypto.SHA384 {
		t.Errorf("libssl: %v; crypto/tls: %v; options %+v", err, peerErr, got)
	}
}
