package hosttest

import (
	"context"
	"fmt"
	"log"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"

	"github.com/ossl-go/ossl/libp2ptls"
)

// Two hosts on OpenSSL.
func Example() {
	security := libp2p.Security(libp2ptls.ID, libp2ptls.New)
	alice, err := libp2p.New(security, libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"))
	if err != nil {
		log.Fatal(err)
	}
	defer alice.Close()
	bob, err := libp2p.New(security, libp2p.NoListenAddrs)
	if err != nil {
		log.Fatal(err)
	}
	defer bob.Close()
	if err := bob.Connect(context.Background(), *host.InfoFromHost(alice)); err != nil {
		log.Fatal(err)
	}
	conn := bob.Network().ConnsToPeer(alice.ID())[0]
	fmt.Println(conn.ConnState().Security, conn.ConnState().StreamMultiplexer)
	// Output: /tls/1.0.0 /yamux/1.0.0
}
