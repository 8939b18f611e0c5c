// Command libp2p connects two libp2p hosts on OpenSSL. docs/LIBP2P.md is the guide.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"

	"github.com/ossl-go/ossl/libp2ptls"
)

func main() {
	security := libp2p.Security(libp2ptls.ID, libp2ptls.New)
	alice := must(libp2p.New(security, libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0")))
	defer alice.Close()
	bob := must(libp2p.New(security, libp2p.NoListenAddrs))
	defer bob.Close()
	alice.SetStreamHandler("/hello/1.0.0", func(stream network.Stream) {
		fmt.Fprint(stream, "hello")
		stream.Close()
	})

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := bob.Connect(ctx, *host.InfoFromHost(alice)); err != nil {
		log.Fatal(err)
	}
	stream := must(bob.NewStream(ctx, alice.ID(), "/hello/1.0.0"))
	text := must(io.ReadAll(stream))
	state := stream.Conn().ConnState()
	fmt.Printf("%s, %s, %s: %s\n", state.Security, state.StreamMultiplexer, state.Transport, text)
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
