package libp2ptls_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log"
	"net"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/ossl-go/ossl/libp2ptls"
)

// newPeer makes a peer's transport, as a host does from its own key.
func newPeer() (*libp2ptls.Transport, peer.ID) {
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		log.Fatal(err)
	}
	transport, err := libp2ptls.New(libp2ptls.ID, key, nil)
	if err != nil {
		log.Fatal(err)
	}
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		log.Fatal(err)
	}
	return transport, id
}

// A host gets the transport by libp2p.New(libp2p.Security(libp2ptls.ID, libp2ptls.New)). Without a
// host, two peers secure any connection:
func ExampleTransport() {
	server, serverID := newPeer()
	client, clientID := newPeer()
	a, b := net.Pipe()
	go func() {
		conn, err := client.SecureOutbound(context.Background(), a, serverID)
		if err != nil {
			log.Fatal(err)
		}
		io.WriteString(conn, "hello")
		conn.Close()
	}()
	conn, err := server.SecureInbound(context.Background(), b, "")
	if err != nil {
		log.Fatal(err)
	}
	message, err := io.ReadAll(conn)
	fmt.Printf("%s %v %t\n", message, err, conn.RemotePeer() == clientID)
	// Output: hello <nil> true
}
