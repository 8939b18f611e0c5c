package main

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/ossl-go/ossl"
)

const (
	initialWrite    = "hello" // sent by -shim-writes-first
	defaultReadSize = 512     // small, so that records are returned in parts
	drainTimeout    = 10 * time.Second
)

// run makes the test's connections, one after the other. Later ones may resume the session of an
// earlier one.
func run(t *test) error {
	store, err := newStore()
	if err != nil {
		return err
	}
	for i := range t.initial.resumeCount + 1 {
		s := &t.initial
		if i > 0 {
			s = &t.resume
		}
		if err := store.next(s, i > 0); err != nil {
			return err
		}
		if err := connect(s, store, i > 0); err != nil {
			return err
		}
	}
	return nil
}

// connect makes one connection.
func connect(s *settings, store *store, resumes bool) (err error) {
	seen := &seen{store: store, resumes: resumes}
	if s.expectPeerSignature != 0 && (!resumes || s.expectSessionMiss) { // in a resumption the peer signs nothing
		seen.peer = &witness{server: s.server}
	}
	ctx, err := newContext(s, seen)
	if err != nil {
		return err
	}
	conn, err := dial(s)
	if err != nil {
		return err
	}
	// The runner may still write; if the connection were reset, it might not read the alert that we
	// sent.
	defer drain(conn)

	var transport net.Conn = conn
	if s.async {
		transport = byteConn{conn}
	}
	if seen.peer != nil {
		transport = seen.peer.watch(transport)
	}
	var c *ossl.Conn
	if s.server {
		c = ctx.Server(transport)
	} else {
		c = ctx.Client(transport, "")
	}
	if !s.implicitHandshake {
		if err := c.Handshake(); err != nil {
			return err
		}
		if err := check(s, c, seen); err != nil {
			return err
		}
	}
	if s.handshakeTwice || s.noOpExtraHandshake {
		if err := c.Handshake(); err != nil {
			return err
		}
	}
	if err := exchange(s, c); err != nil {
		return err
	}
	if s.implicitHandshake {
		if err := check(s, c, seen); err != nil {
			return err
		}
	}
	return checkTicket(s, c, store)
}

// dial connects to the runner and sends this shim's ID.
func dial(s *settings) (*net.TCPConn, error) {
	host := "127.0.0.1"
	if s.ipv6 {
		host = "::1"
	}
	conn, err := net.Dial("tcp", net.JoinHostPort(host, strconv.Itoa(s.port)))
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(binary.LittleEndian.AppendUint64(nil, s.shimID)); err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}

// drain closes our direction and waits until the runner has closed its direction.
func drain(conn *net.TCPConn) {
	_ = conn.CloseWrite()
	_ = conn.SetDeadline(time.Now().Add(drainTimeout))
	_, _ = io.Copy(io.Discard, conn)
	_ = conn.Close()
}

// exchange does the flags' operations on the open connection, and closes it.
func exchange(s *settings, c *ossl.Conn) error {
	if s.exportKeyingMaterial > 0 {
		material, err := export(s, c)
		if err != nil {
			return err
		}
		if _, err := c.Write(material); err != nil {
			return err
		}
	}
	if s.tlsUnique {
		unique := c.ConnectionState().TLSUnique
		if len(unique) != 12 {
			return fmt.Errorf("tls-unique has %d bytes", len(unique))
		}
		if _, err := c.Write(unique); err != nil {
			return err
		}
	}
	if s.writeDifferentRecordSizes {
		for _, n := range []int{0, 1, 255, 256, 257, 16383, 16384, 16385, 32767, 32768, 32769} {
			data := make([]byte, n)
			for i := range data {
				data[i] = 0x42
			}
			if _, err := c.Write(data); err != nil {
				return err
			}
		}
		return shutDown(s, c)
	}
	if s.shimWritesFirst {
		if _, err := io.WriteString(c, initialWrite); err != nil {
			return err
		}
	}
	if !s.shimShutsDown {
		if err := echo(s, c); err != nil {
			return err
		}
	}
	return shutDown(s, c)
}

// echo echoes the received bytes with all bits flipped, until the end.
func echo(s *settings, c *ossl.Conn) error {
	size := defaultReadSize
	if s.readSize > 0 {
		size = s.readSize
	}
	buf := make([]byte, size)
	for {
		n, err := c.Read(buf)
		for i := range buf[:n] {
			buf[i] ^= 0xff
		}
		if s.useExporterBetweenReads && n > 0 {
			if _, err := c.ExportKeyingMaterial("some label", []byte{}, 32); err != nil {
				return err
			}
		}
		if n > 0 {
			if _, err := c.Write(buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case err == nil:
		case err == io.EOF:
			return nil
		case errors.Is(err, io.ErrUnexpectedEOF) && established(c) && !s.checkCloseNotify:
			return nil // only some tests end regularly
		default:
			return err
		}
	}
}

func established(c *ossl.Conn) bool { return c.ConnectionState().HandshakeComplete }

// shutDown exchanges close_notify in the tests that check it.
func shutDown(s *settings, c *ossl.Conn) error {
	if !s.checkCloseNotify {
		return nil
	}
	if err := c.CloseWrite(); err != nil {
		return err
	}
	if !s.shimShutsDown {
		return nil // the runner's was read
	}
	switch n, err := c.Read(make([]byte, 1)); {
	case n > 0:
		return errors.New("bogoshim: application data after our close_notify")
	case err != io.EOF:
		return err
	}
	return nil
}

func export(s *settings, c *ossl.Conn) ([]byte, error) {
	var context []byte
	if s.useExportContext {
		context = append([]byte{}, s.exportContext...)
	}
	return c.ExportKeyingMaterial(s.exportLabel, context, s.exportKeyingMaterial)
}

// hasExtendedMasterSecret reports whether RFC 7627's extension is in use. Without it ossl exports
// nothing in TLS 1.2.
func hasExtendedMasterSecret(c *ossl.Conn) bool {
	_, err := c.ExportKeyingMaterial("some label", nil, 32)
	return err == nil || c.ConnectionState().Version >= tls.VersionTLS13
}

// byteConn implements -async for a blocking interface: each byte is read and written alone.
type byteConn struct{ net.Conn }

func (c byteConn) Read(b []byte) (int, error) { return c.Conn.Read(b[:min(1, len(b))]) }

func (c byteConn) Write(b []byte) (n int, err error) {
	for ; n < len(b) && err == nil; n++ {
		_, err = c.Conn.Write(b[n : n+1])
	}
	return n, err
}
