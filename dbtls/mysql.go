package dbtls

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
)

// DialMySQL connects to a MySQL or MariaDB server with SSLRequest (MySQL's documentation, "Connection
// Phase"). The driver must not be configured for TLS.
//
// In this protocol, the client's request for TLS has the capabilities that the client is going to
// use, which only the driver knows. So DialMySQL returns after the server's greeting, and the
// driver's first Write, its answer to the greeting, makes the connection ask for TLS, run the
// handshake and send the answer. An error of the handshake is that Write's; until the handshake is
// complete, a Read beyond the greeting fails. The deadline of dialing applies to the handshake too,
// and Close stops it; ctx's cancellation has no effect on it.
//
// To the driver, the connection looks like one without TLS: the greeting doesn't offer any, and the
// packets of the connection phase are numbered as if none had been asked for.
func (d *Dialer) DialMySQL(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := d.bound(ctx)
	defer cancel()
	p, err := d.connect(ctx, network, addr, "MySQL")
	if err != nil {
		return nil, err
	}
	conn, err := p.run(ctx, func(ctx context.Context, p *prelude) (net.Conn, error) {
		p.step = "greeting"
		greeting, err := p.mysqlGreeting()
		if err != nil {
			return nil, err
		}
		deadline, _ := ctx.Deadline()
		return newMySQLConn(p, greeting, deadline), nil
	})
	if err != nil {
		p.raw.Close()
		return nil, err
	}
	return conn, nil
}

// Capabilities of MySQL's protocol.
const (
	mysqlProtocol41 = 1 << 9
	mysqlTLS        = 1 << 11
)

// mysqlHeader is the size of a packet's header: three bytes of the length, and the packet's number.
const mysqlHeader = 4

// maxGreeting bounds the length of a greeting. Servers send about 100 bytes.
const maxGreeting = 4096

// mysqlGreeting reads the greeting, and returns it without the TLS offer.
func (p *prelude) mysqlGreeting() ([]byte, error) {
	header, err := p.full(mysqlHeader)
	if err != nil {
		return nil, err
	}
	size := int(header[0]) | int(header[1])<<8 | int(header[2])<<16
	if size == 0 || size > maxGreeting {
		return nil, fmt.Errorf("the server's first packet has %d bytes", size)
	}
	body, err := p.full(size)
	if err != nil {
		return nil, err
	}
	if header[3] != 0 {
		return nil, fmt.Errorf("the server's first packet has number %d", header[3])
	}
	if err := hideTLS(body); err != nil {
		return nil, err
	}
	return append(header, body...), nil
}

var errNotMySQL = errors.New("the server's greeting is not MySQL's")

// hideTLS takes the TLS offer out of a greeting of version 10: after the version come the server's
// version with a zero byte, 4 bytes of the connection's number, 8 bytes of a nonce, a zero byte,
// and the lower capabilities.
func hideTLS(greeting []byte) error {
	if greeting[0] == mysqlError {
		return mysqlErrorOf(greeting)
	}
	version := bytes.IndexByte(greeting[1:], 0)
	if greeting[0] != 10 || version < 0 {
		return errNotMySQL
	}
	rest := greeting[1+version+1:]
	if len(rest) < 4+8+1+2 {
		return errNotMySQL
	}
	lower := rest[4+8+1:]
	capabilities := binary.LittleEndian.Uint16(lower)
	switch {
	case capabilities&mysqlProtocol41 == 0:
		return errors.New("the server is older than MySQL 4.1")
	case capabilities&mysqlTLS == 0:
		return ErrNoTLS
	}
	binary.LittleEndian.PutUint16(lower, capabilities&^mysqlTLS)
	return nil
}

// First bytes of the server's packets that end the connection phase.
const (
	mysqlOK    = 0x00
	mysqlError = 0xff
)

// mysqlErrorOf returns the error in an error packet, with which servers answer that have too many
// connections, or have blocked the client.
func mysqlErrorOf(packet []byte) error {
	if len(packet) < 3 {
		return errNotMySQL
	}
	return fmt.Errorf("the server answered with error %d: %s", binary.LittleEndian.Uint16(packet[1:]), quote(packet[3:]))
}
