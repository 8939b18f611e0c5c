package libp2ptls

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"net"
	"reflect"
	"sync"
	"testing"
	"time"
	"unsafe"

	ci "github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/core/sec"
	tptu "github.com/libp2p/go-libp2p/p2p/net/upgrader"
	stdtls "github.com/libp2p/go-libp2p/p2p/security/tls"
)

// An IDTransport is the part of a transport that tests and benchmarks use. go-libp2p's and this
// package's implement it, so that everything runs with every pairing of them.
type IDTransport interface {
	ID() protocol.ID
	SecureInbound(ctx context.Context, insecure net.Conn, p peer.ID) (sec.SecureConn, error)
	SecureOutbound(ctx context.Context, insecure net.Conn, p peer.ID) (sec.SecureConn, error)
}

var (
	_ IDTransport = (*Transport)(nil)
	_ IDTransport = (*stdtls.Transport)(nil)
)

// A flavour makes transports of one implementation. The edits change the configuration that New
// makes.
type flavour struct {
	name string
	make func(key ci.PrivKey, muxers []tptu.StreamMuxer, edits ...func(*tls.Config)) (IDTransport, error)
}

var (
	stdFlavour     = flavour{"StdTLS", makeStd}
	opensslFlavour = flavour{"OpenSSL", makeOpenSSL}
)

func makeStd(key ci.PrivKey, muxers []tptu.StreamMuxer, edits ...func(*tls.Config)) (IDTransport, error) {
	t, err := stdtls.New(stdtls.ID, key, muxers)
	if err != nil {
		return nil, err
	}
	for _, edit := range edits {
		edit(configOf(t))
	}
	return t, nil
}

// configOf returns the configuration of go-libp2p's transport, which has no function for it.
func configOf(t *stdtls.Transport) *tls.Config {
	identity := reflect.ValueOf(t).Elem().FieldByName("identity").UnsafePointer()
	config, ok := reflect.TypeFor[stdtls.Identity]().FieldByName("config")
	if !ok || config.Type != reflect.TypeFor[tls.Config]() {
		panic("go-libp2p's Identity has no configuration any more")
	}
	return (*tls.Config)(unsafe.Add(identity, config.Offset))
}

func makeOpenSSL(key ci.PrivKey, muxers []tptu.StreamMuxer, edits ...func(*tls.Config)) (IDTransport, error) {
	if len(edits) == 0 {
		return New(ID, key, muxers)
	}
	identity, err := stdtls.NewIdentity(key)
	if err != nil {
		return nil, err
	}
	config, _ := identity.ConfigForPeer("")
	return newTransport(ID, key, muxers, config.Certificates, edits...)
}

// A pairing is named as in the pull request in go-libp2p-tls that first had these benchmarks.
type pairing struct{ server, client flavour }

func (p pairing) String() string { return p.server.name + "Server_" + p.client.name + "Client" }

var pairings = []pairing{
	{stdFlavour, stdFlavour},
	{stdFlavour, opensslFlavour},
	{opensslFlavour, stdFlavour},
	{opensslFlavour, opensslFlavour},
}

// inAllPairings runs a test in each of the four.
func inAllPairings(t *testing.T, run func(t *testing.T, p pairing)) {
	t.Helper()
	for _, p := range pairings {
		t.Run(p.String(), func(t *testing.T) { run(t, p) })
	}
}

// An identity is a peer's key and ID.
type identity struct {
	key ci.PrivKey
	id  peer.ID
}

func identityOf(key ci.PrivKey) identity {
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		panic(err)
	}
	return identity{key, id}
}

func newKey(kind int) ci.PrivKey {
	key, _, err := ci.GenerateKeyPairWithReader(kind, 2048, rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}

// Two peers, and a third that never takes part.
var (
	serverPeer = sync.OnceValue(func() identity { return identityOf(newKey(ci.Ed25519)) })
	clientPeer = sync.OnceValue(func() identity { return identityOf(newKey(ci.ECDSA)) })
	thirdPeer  = sync.OnceValue(func() identity { return identityOf(newKey(ci.Secp256k1)) })
)

func muxersOf(ids ...protocol.ID) []tptu.StreamMuxer {
	var muxers []tptu.StreamMuxer
	for _, id := range ids {
		muxers = append(muxers, tptu.StreamMuxer{ID: id})
	}
	return muxers
}

func (f flavour) transport(t testing.TB, who identity, muxers []tptu.StreamMuxer, edits ...func(*tls.Config)) IDTransport {
	t.Helper()
	tr, err := f.make(who.key, muxers, edits...)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// loopback returns both sides of a TCP connection.
func loopback(t testing.TB) (client, server net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if client, err = net.Dial("tcp", listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		server.Close()
	})
	return client, server
}

// A result is the result of one side's handshake.
type result struct {
	conn sec.SecureConn
	err  error
}

// A meeting is a handshake between two transports.
type meeting struct {
	server, client           IDTransport
	serverWants, clientWants peer.ID
	serverCtx, clientCtx     context.Context // nil for the background
}

// run returns once both sides have returned.
func (m meeting) run(t testing.TB, client, server net.Conn) (c, s result) {
	t.Helper()
	in := m.accept(server)
	c = m.dial(client)
	return c, await(t, in)
}

func (m meeting) dial(raw net.Conn) result {
	ctx := m.clientCtx
	if ctx == nil {
		ctx = context.Background()
	}
	conn, err := m.client.SecureOutbound(ctx, raw, m.clientWants)
	return result{conn, err}
}

// accept runs the server's side.
func (m meeting) accept(raw net.Conn) <-chan result {
	ctx := m.serverCtx
	if ctx == nil {
		ctx = context.Background()
	}
	in := make(chan result, 1)
	go func() {
		conn, err := m.server.SecureInbound(ctx, raw, m.serverWants)
		in <- result{conn, err}
	}()
	return in
}

// patience is the time after which a test counts as hung.
const patience = 2 * time.Minute

func await[T any](t testing.TB, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(patience):
		t.Fatal("hangs")
	}
	return v
}

// both returns the two connections of a meeting that must succeed.
func (m meeting) both(t testing.TB) (client, server sec.SecureConn) {
	t.Helper()
	a, b := loopback(t)
	c, s := m.run(t, a, b)
	if c.err != nil || s.err != nil {
		t.Fatalf("client: %v; server: %v", c.err, s.err)
	}
	t.Cleanup(func() {
		c.conn.Close()
		s.conn.Close()
	})
	return c.conn, s.conn
}

// connect returns a pairing's two connections.
func (p pairing) connect(t testing.TB) (client, server sec.SecureConn) {
	t.Helper()
	return p.meeting(t).both(t)
}

// meeting makes the client expect its server's ID, and the server accept any peer.
func (p pairing) meeting(t testing.TB, muxers ...protocol.ID) meeting {
	t.Helper()
	return meeting{
		server:      p.server.transport(t, serverPeer(), muxersOf(muxers...)),
		client:      p.client.transport(t, clientPeer(), muxersOf(muxers...)),
		clientWants: serverPeer().id,
	}
}
