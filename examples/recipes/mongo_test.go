package recipes_test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/ossl-go/ossl/examples/recipes"
	"github.com/ossl-go/ossl/internal/recipetest"
)

func TestMongo(t *testing.T) {
	recipetest.Recipe{
		Client: "mongo-driver", Server: "a stand-in, crypto/tls",
		Start: func(t *testing.T, site *recipetest.Site) {
			serveConns(t, tls.NewListener(site.Listener, site.Config), serveMongo)
		},
		Use: func(ctx context.Context, config *tls.Config, addr string) error {
			client, err := recipes.Mongo("mongodb://"+addr+"/?directConnection=true", recipes.Dialer(config))
			if err != nil {
				return err
			}
			return errors.Join(client.Ping(ctx, nil), client.Disconnect(ctx))
		},
	}.Run(t)
}

// serveMongo answers any command as a server that is alone does: the driver sends hello and ping.
// A message is a header of length, ID, ID of the request and opcode, and a body; opcode 2004 is a
// command of the oldest kind, 2013 is today's.
func serveMongo(conn net.Conn) {
	const opReply, opQuery, opMsg = 1, 2004, 2013
	body, err := bson.Marshal(bson.D{
		{Key: "ok", Value: 1}, {Key: "isWritablePrimary", Value: true}, {Key: "ismaster", Value: true},
		{Key: "minWireVersion", Value: int32(0)}, {Key: "maxWireVersion", Value: int32(21)},
		{Key: "maxBsonObjectSize", Value: int32(1 << 24)}, {Key: "maxMessageSizeBytes", Value: int32(48_000_000)},
		{Key: "maxWriteBatchSize", Value: int32(100_000)},
	})
	if err != nil {
		panic(err)
	}
	for {
		header := make([]byte, 16)
		if _, err := io.ReadFull(conn, header); err != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, conn, int64(binary.LittleEndian.Uint32(header))-16); err != nil {
			return
		}
		opcode, prefix := uint32(opMsg), make([]byte, 5) // flags, and the kind of the section
		if binary.LittleEndian.Uint32(header[12:]) == opQuery {
			opcode, prefix = opReply, make([]byte, 20)
			prefix[16] = 1 // one document
		}
		reply := binary.LittleEndian.AppendUint32(nil, uint32(16+len(prefix)+len(body)))
		reply = append(reply, 1, 0, 0, 0)
		reply = append(reply, header[4:8]...)
		reply = binary.LittleEndian.AppendUint32(reply, opcode)
		if _, err := conn.Write(append(append(reply, prefix...), body...)); err != nil {
			return
		}
	}
}
