package recipes_test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/examples/recipes"
	"github.com/ossl-go/ossl/internal/recipetest"
)

func TestCassandra(t *testing.T) {
	recipetest.Recipe{
		Client: "gocql", Server: "a stand-in, crypto/tls",
		Start: func(t *testing.T, site *recipetest.Site) {
			serveConns(t, tls.NewListener(site.Listener, site.Config), serveCQL)
		},
		Use: func(ctx context.Context, config *tls.Config, addr string) error {
			cluster := recipes.Cassandra(addr, recipes.Dialer(config))
			cluster.NumConns = 1
			session, err := cluster.CreateSession()
			if err != nil {
				return err
			}
			defer session.Close()
			var version string
			return session.Query("SELECT release_version FROM greetings").WithContext(ctx).Scan(&version)
		},
	}.Run(t)
}

// serveCQL answers as a cluster of one node does, in version 4 of the protocol
// (native_protocol_v4.spec in Cassandra's repository). A frame is version, flags, stream, opcode and
// the length of the body.
func serveCQL(conn net.Conn) {
	const opReady, opOptions, opSupported, opQuery, opResult, opPrepare, opExecute = 2, 5, 6, 7, 8, 9, 10
	for {
		header := make([]byte, 9)
		if _, err := io.ReadFull(conn, header); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(header[5:]))
		if _, err := io.ReadFull(conn, body); err != nil {
			return
		}
		opcode, reply := byte(opReady), []byte(nil) // to STARTUP and REGISTER
		switch header[4] {
		case opOptions:
			opcode, reply = opSupported, []byte{0, 0} // an empty map
		case opQuery:
			opcode, reply = opResult, rowsFor(string(body))
		case opPrepare:
			opcode, reply = opResult, prepared()
		case opExecute:
			opcode, reply = opResult, rowsFor("SELECT release_version")
		}
		frame := append([]byte{0x84, 0, header[2], header[3], opcode}, binary.BigEndian.AppendUint32(nil, uint32(len(reply)))...)
		if _, err := conn.Write(append(frame, reply...)); err != nil {
			return
		}
	}
}

// prepared returns the result of a PREPARE: an ID, and no metadata of parameters and columns.
func prepared() (b []byte) {
	const kind, noMetadata = 4, 4
	b = binary.BigEndian.AppendUint32(b, kind)
	b = append(b, 0, 1, 'q')
	for _, n := range []uint32{0, 0, 0, noMetadata, 1} { // flags, columns and keys; flags, columns
		b = binary.BigEndian.AppendUint32(b, n)
	}
	return b
}

// rowsFor returns the result of a query: the node's own row, or none for the tables of its peers.
func rowsFor(query string) []byte {
	const rows, oneTable, text, uuid, inet = 2, 1, 0x0D, 0x0C, 0x10
	columns := []struct {
		name  string
		kind  uint16
		value string
	}{
		{"release_version", text, "4.1.0"}, {"data_center", text, "dc1"}, {"rack", text, "rack1"},
		{"host_id", uuid, "0123456789abcdef"}, {"schema_version", uuid, "0123456789abcdef"},
		{"rpc_address", inet, "\x7f\x00\x00\x01"}, {"broadcast_address", inet, "\x7f\x00\x00\x01"},
	}
	if strings.Contains(query, "SELECT schema_version") {
		columns = columns[4:5]
	} else if strings.Contains(query, "SELECT release_version") {
		columns = columns[:1]
	}
	b := binary.BigEndian.AppendUint32(nil, rows)
	b = binary.BigEndian.AppendUint32(b, oneTable)
	b = binary.BigEndian.AppendUint32(b, uint32(len(columns)))
	str := func(s string) { b = append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...) }
	str("system")
	str("local")
	for _, c := range columns {
		str(c.name)
		b = binary.BigEndian.AppendUint16(b, c.kind)
	}
	if strings.Contains(query, "peers") {
		return binary.BigEndian.AppendUint32(b, 0)
	}
	b = binary.BigEndian.AppendUint32(b, 1)
	for _, c := range columns {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(c.value))), c.value...)
	}
	return b
}
