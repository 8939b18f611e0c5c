package hosttest

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"hash"
	"io"
	mathrand "math/rand/v2"
	"sync"
	"testing"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	stdtls "github.com/libp2p/go-libp2p/p2p/security/tls"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"

	"github.com/ossl-go/ossl/libp2ptls"
)

var megabytes = flag.Int("mb", 32, "megabytes that each direction of a pair of hosts carries")

const (
	proto   = protocol.ID("/ossl/test/1.0.0")
	streams = 4
)

// A flavour is the option that selects a host's TLS.
type flavour struct {
	name     string
	security libp2p.Option
}

var (
	std     = flavour{"StdTLS", libp2p.Security(stdtls.ID, stdtls.New)}
	openssl = flavour{"OpenSSL", libp2p.Security(libp2ptls.ID, libp2ptls.New)}
)

var pairings = []struct{ server, client flavour }{{std, std}, {std, openssl}, {openssl, std}, {openssl, openssl}}

func newHost(t *testing.T, f flavour, more ...libp2p.Option) host.Host {
	t.Helper()
	options := append([]libp2p.Option{
		f.security,
		libp2p.Transport(tcp.NewTCPTransport),
		libp2p.Muxer(yamux.ID, yamux.DefaultTransport),
		libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"),
		libp2p.DisableRelay(),
		libp2p.ResourceManager(&network.NullResourceManager{}),
	}, more...)
	h, err := libp2p.New(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// serve makes a host answer each stream with a hash of the received bytes and as many bytes from
// its own seed.
func serve(t *testing.T, h host.Host) {
	h.SetStreamHandler(proto, func(s network.Stream) {
		defer s.Close()
		got := sha256.New()
		n, err := io.Copy(got, s)
		if err != nil {
			t.Errorf("server: after %d bytes: %v", n, err)
			s.Reset()
			return
		}
		if _, err := s.Write(got.Sum(nil)); err != nil {
			t.Errorf("server: %v", err)
			return
		}
		sent := sha256.New()
		if err := send(s, n, 2, sent); err != nil {
			t.Errorf("server: %v", err)
			return
		}
		if _, err := s.Write(sent.Sum(nil)); err != nil {
			t.Errorf("server: %v", err)
		}
	})
}

// send writes n random bytes and hashes them.
func send(to io.Writer, n int64, seed byte, sum hash.Hash) error {
	_, err := io.CopyN(io.MultiWriter(to, sum), mathrand.NewChaCha8([32]byte{seed}), n)
	return err
}

// transfer sends n bytes over a new stream and receives n.
func transfer(ctx context.Context, h host.Host, to peer.ID, n int64) error {
	s, err := h.NewStream(ctx, to, proto)
	if err != nil {
		return err
	}
	defer s.Close()
	sent := sha256.New()
	if err := send(s, n, 1, sent); err != nil {
		return fmt.Errorf("sending: %w", err)
	}
	if err := s.CloseWrite(); err != nil {
		return err
	}
	theirs := make([]byte, sha256.Size)
	if _, err := io.ReadFull(s, theirs); err != nil {
		return fmt.Errorf("reading the hash: %w", err)
	}
	if !bytes.Equal(theirs, sent.Sum(nil)) {
		return errors.New("what arrived is not what was sent")
	}
	got := sha256.New()
	if _, err := io.CopyN(got, s, n); err != nil {
		return fmt.Errorf("receiving: %w", err)
	}
	if _, err := io.ReadFull(s, theirs); err != nil {
		return fmt.Errorf("reading the hash: %w", err)
	}
	if !bytes.Equal(theirs, got.Sum(nil)) {
		return errors.New("what was received is not what was sent")
	}
	if n, err := s.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		return fmt.Errorf("at the end: %d, %v", n, err)
	}
	return nil
}

// TestHosts passes data both ways over several streams at once.
func TestHosts(t *testing.T) {
	for _, p := range pairings {
		t.Run(p.server.name+"Server_"+p.client.name+"Client", func(t *testing.T) {
			server, client := newHost(t, p.server), newHost(t, p.client)
			serve(t, server)
			if err := client.Connect(t.Context(), *host.InfoFromHost(server)); err != nil {
				t.Fatal(err)
			}
			for _, c := range client.Network().ConnsToPeer(server.ID()) {
				state := c.ConnState()
				if state.Security != stdtls.ID || state.StreamMultiplexer != yamux.ID || !state.UsedEarlyMuxerNegotiation {
					t.Errorf("%+v", state)
				}
				if c.RemotePeer() != server.ID() || !c.RemotePublicKey().Equals(server.Peerstore().PubKey(server.ID())) {
					t.Errorf("connected to %s, not %s", c.RemotePeer(), server.ID())
				}
			}
			var all sync.WaitGroup
			for range streams {
				all.Go(func() {
					if err := transfer(t.Context(), client, server.ID(), int64(*megabytes)<<20/streams); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			t.Logf("%d MB each way", *megabytes)
		})
	}
}

// TestManyStreams opens streams from both sides of one connection.
func TestManyStreams(t *testing.T) {
	for _, p := range pairings {
		t.Run(p.server.name+"Server_"+p.client.name+"Client", func(t *testing.T) {
			a, b := newHost(t, p.server), newHost(t, p.client)
			serve(t, a)
			serve(t, b)
			if err := b.Connect(t.Context(), *host.InfoFromHost(a)); err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			for i := range 100 {
				from, to := a, b
				if i%2 == 0 {
					from, to = b, a
				}
				all.Go(func() {
					if err := transfer(t.Context(), from, to.ID(), int64(1000*i)); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			if n := len(b.Network().ConnsToPeer(a.ID())); n != 1 {
				t.Errorf("%d connections", n)
			}
		})
	}
}

// TestWrongPeer dials an address with the ID of another peer.
func TestWrongPeer(t *testing.T) {
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other, err := peer.IDFromPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pairings {
		t.Run(p.server.name+"Server_"+p.client.name+"Client", func(t *testing.T) {
			server, client := newHost(t, p.server), newHost(t, p.client)
			client.Peerstore().AddAddrs(other, server.Addrs(), peerstore.PermanentAddrTTL)
			_, err := client.Network().DialPeer(t.Context(), other)
			var mismatch sec.ErrPeerIDMismatch
			if !errors.As(err, &mismatch) || mismatch.Expected != other || mismatch.Actual != server.ID() {
				t.Errorf("%v", err)
			}
		})
	}
}
