package libp2ptls

import (
	"context"
	"crypto/tls"
	"errors"
	"net"

	ci "github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/p2p/canonicallog"
	tptu "github.com/libp2p/go-libp2p/p2p/net/upgrader"
	stdtls "github.com/libp2p/go-libp2p/p2p/security/tls"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/ossl-go/ossl"
)

// ID is the protocol's name in the negotiation of a security transport, the same as the ID of
// go-libp2p's transport, which is compatible.
const ID = stdtls.ID

// noMuxer is the ALPN protocol for connections whose stream multiplexer is negotiated after the
// handshake.
const noMuxer = "libp2p"

// A Transport secures connections for a peer. It never changes: its key, certificate and compiled
// configuration are made once, by [New], and shared by all its connections.
type Transport struct {
	id        protocol.ID
	localPeer peer.ID
	ctx       *ossl.Context
	peers     *peerCache
}

var _ sec.SecureTransport = (*Transport)(nil)

// New returns a transport for the peer with this key, with the signature that libp2p.Security
// needs. muxers are the stream multiplexers to negotiate in the handshake, the most preferred
// first. Without a usable OpenSSL the error wraps [ossl.ErrUnavailable].
func New(id protocol.ID, key ci.PrivKey, muxers []tptu.StreamMuxer) (*Transport, error) {
	identity, err := stdtls.NewIdentity(key)
	if err != nil {
		return nil, err
	}
	config, _ := identity.ConfigForPeer("") // for the certificate
	return newTransport(id, key, muxers, config.Certificates)
}

func newTransport(id protocol.ID, key ci.PrivKey, muxers []tptu.StreamMuxer, certs []tls.Certificate,
	edits ...func(*tls.Config)) (*Transport, error) {
	localPeer, err := peer.IDFromPrivateKey(key)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           certs,
		ClientAuth:             tls.RequireAnyClientCert,
		SessionTicketsDisabled: true,
		// There is no authority and no name to verify: the certificate is self-signed, and names
		// the peer that signed for it. Each connection has its own verification.
		InsecureSkipVerify: true,
	}
	for _, m := range muxers {
		config.NextProtos = append(config.NextProtos, string(m.ID))
	}
	config.NextProtos = append(config.NextProtos, noMuxer)
	for _, edit := range edits {
		edit(config)
	}
	ctx, err := ossl.NewContext(config, ossl.WithClientProtocolOrder())
	if err != nil {
		return nil, err
	}
	return &Transport{id: id, localPeer: localPeer, ctx: ctx, peers: newPeerCache(maxPeers)}, nil
}

// ID returns the protocol name given to New.
func (t *Transport) ID() protocol.ID { return t.id }

// SecureInbound runs the handshake as the server. If p is empty, any peer is accepted; else another
// peer is refused with [sec.ErrPeerIDMismatch]. If ctx is done first, ctx's error is returned.
// After an error insecure is closed.
func (t *Transport) SecureInbound(ctx context.Context, insecure net.Conn, p peer.ID) (sec.SecureConn, error) {
	v := &verification{transport: t, want: p}
	c, err := t.secure(ctx, t.ctx.Server(insecure, ossl.WithVerification(v.verify)), v)
	if err != nil {
		if addr, addrErr := manet.FromNetAddr(insecure.RemoteAddr()); addrErr == nil {
			canonicallog.LogPeerStatus(100, p, addr, "handshake_failure", "tls", "err", err.Error())
		}
		_ = insecure.Close()
		return nil, err
	}
	return c, nil
}

// SecureOutbound runs the handshake as the client. If p is empty, any peer is accepted; else
// another peer is refused with [sec.ErrPeerIDMismatch], before the client sends its own identity.
// If ctx is done first, ctx's error is returned. After an error insecure is closed.
//
// A TLS 1.3 client is done before the server has seen its certificate: if the server refuses it,
// the first Read returns the alert.
func (t *Transport) SecureOutbound(ctx context.Context, insecure net.Conn, p peer.ID) (sec.SecureConn, error) {
	v := &verification{transport: t, want: p}
	c, err := t.secure(ctx, t.ctx.Client(insecure, "", ossl.WithVerification(v.verify)), v)
	if err != nil {
		_ = insecure.Close()
		return nil, err
	}
	return c, nil
}

func (t *Transport) secure(ctx context.Context, tlsConn *ossl.Conn, v *verification) (c *conn, err error) {
	defer func() {
		if p := recover(); p != nil {
			c, err = nil, panicError("", p)
		}
	}()
	if err := tlsConn.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	if v.peer == nil {
		return nil, errors.New("libp2ptls: internal error: the handshake is done but the peer is not verified")
	}
	muxer := tlsConn.ConnectionState().NegotiatedProtocol
	if muxer == noMuxer {
		muxer = ""
	}
	return &conn{
		Conn:      tlsConn,
		localPeer: t.localPeer,
		remote:    v.peer,
		state: network.ConnectionState{
			StreamMultiplexer:         protocol.ID(muxer),
			UsedEarlyMuxerNegotiation: muxer != "",
		},
	}, nil
}
