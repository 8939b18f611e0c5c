package libp2ptls

import (
	ci "github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/sec"

	"github.com/ossl-go/ossl"
)

// A conn is a connection whose two peers are authenticated.
type conn struct {
	*ossl.Conn

	localPeer peer.ID
	remote    *certifiedPeer
	state     network.ConnectionState
}

var _ sec.SecureConn = (*conn)(nil)

func (c *conn) LocalPeer() peer.ID { return c.localPeer }

func (c *conn) RemotePeer() peer.ID { return c.remote.id }

func (c *conn) RemotePublicKey() ci.PubKey { return c.remote.key }

func (c *conn) ConnState() network.ConnectionState { return c.state }
