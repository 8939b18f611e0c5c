package client

import (
	"errors"
	"io"
	"net"
	"os"
	"time"

	"github.com/ossl-go/ossl/audit/internal/hello"
)

// Types of records.
const (
	recordChange      = 20
	recordAlert       = 21
	recordHandshake   = 22
	recordApplication = 23
)

const (
	headerSize    = 5
	maxPlaintext  = 1 << 14
	maxCiphertext = maxPlaintext + 2048 // in TLS 1.2; TLS 1.3 has less
	// maxQuiet bounds the bytes of a handshake, and those between two records of application data.
	maxQuiet    = hello.MaxReply
	maxSessions = 16 // tickets beyond these aren't kept
)

// An opener decrypts records. open returns the type and the data of a record; the data may be in
// record's memory.
type opener interface {
	open(header [headerSize]byte, record []byte) (typ byte, data []byte, err error)
}

// A sealer encrypts records. seal returns a record with its header; data has at most maxPlaintext
// bytes.
type sealer interface {
	seal(typ byte, data []byte) ([]byte, error)
}

func newConn(conn net.Conn) *Conn { return &Conn{conn: conn, budget: maxQuiet} }

// fill reads from the connection until buf has at least n bytes.
func (c *Conn) fill(n int) error {
	for len(c.buf) < n {
		if cap(c.buf)-len(c.buf) < 4096 {
			c.buf = append(make([]byte, 0, 2*len(c.buf)+16384), c.buf...)
		}
		m, err := c.conn.Read(c.buf[len(c.buf):cap(c.buf)])
		if m > 0 {
			c.lastRead = time.Now()
			if c.State.Times.FirstByte.IsZero() {
				c.State.Times.FirstByte = c.lastRead
			}
		}
		c.buf = c.buf[:len(c.buf)+m]
		if err != nil && len(c.buf) < n {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
	}
	return nil
}

// readRecord reads and opens a record. It returns an alert as an *AlertError, and a close_notify as
// io.EOF.
func (c *Conn) readRecord() (typ byte, data []byte, err error) {
	if c.eof != nil {
		return 0, nil, c.eof
	}
	typ, data, err = c.nextRecord()
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		c.eof = err
	}
	return typ, data, err
}

func (c *Conn) nextRecord() (typ byte, data []byte, err error) {
	if err := c.fill(headerSize); err != nil {
		return 0, nil, err
	}
	header := [headerSize]byte(c.buf)
	n := int(header[3])<<8 | int(header[4])
	switch {
	case header[0] < recordChange || header[0] > recordApplication || header[1] != 3:
		return 0, nil, protocolError("the server sent bytes that aren't TLS: %x", header)
	case n > maxCiphertext:
		return 0, nil, protocolError("the server sent a record of %d bytes", n)
	}
	if c.budget -= headerSize + n; c.budget < 0 {
		return 0, nil, protocolError("the server sent more than %d bytes without data", maxQuiet)
	}
	if err := c.fill(headerSize + n); err != nil {
		return 0, nil, err
	}
	record := c.buf[headerSize : headerSize+n : headerSize+n]
	c.buf = c.buf[headerSize+n:]
	c.read += headerSize + n
	typ, data = header[0], record
	if c.in != nil && !(typ == recordChange && c.State.Version >= hello.TLS13) {
		if typ, data, err = c.in.open(header, record); err != nil {
			return 0, nil, err
		}
	}
	switch {
	case len(data) > maxPlaintext:
		return 0, nil, protocolError("the server sent a record with %d bytes of data", len(data))
	case typ == recordAlert && len(data) != 2:
		return 0, nil, protocolError("the server sent an alert of %d bytes", len(data))
	case typ == recordAlert && data[1] == 0:
		return 0, nil, io.EOF
	case typ == recordAlert && c.State.Version < hello.TLS13 && data[0] == 1 && data[1] != alertNoRenegotiation:
		return c.nextRecord() // a warning, unrecognized_name for example; the budget bounds them
	case typ == recordAlert:
		return 0, nil, &AlertError{hello.Alert{Level: data[0], Code: data[1]}}
	case len(data) == 0 && typ != recordApplication:
		return 0, nil, protocolError("the server sent an empty record of type %d", typ)
	case typ == recordApplication && len(data) > 0:
		c.budget = maxQuiet
	}
	return typ, data, nil
}

// readMessage reads a handshake message: its type, and the message with its header. Between TLS 1.3
// messages it skips ChangeCipherSpec; in TLS 1.2 one is an error, see readChange.
func (c *Conn) readMessage() (typ byte, message []byte, err error) {
	for {
		if typ, message, err = c.takeMessage(); message != nil || err != nil {
			return typ, message, err
		}
		record, data, err := c.readRecord()
		switch {
		case err == io.EOF:
			return 0, nil, io.ErrUnexpectedEOF
		case err != nil:
			return 0, nil, err
		case record == recordHandshake:
			c.messages = append(c.messages, data...)
		case record == recordChange && c.State.Version >= hello.TLS13 && len(c.messages) == 0 && len(data) == 1 && data[0] == 1:
		default:
			return 0, nil, protocolError("the server sent a record of type %d in its handshake", record)
		}
	}
}

// takeMessage takes a message from those that were read. The message is nil if none is whole.
func (c *Conn) takeMessage() (typ byte, message []byte, err error) {
	if len(c.messages) < 4 {
		return 0, nil, nil
	}
	n := 4 + int(c.messages[1])<<16 + int(c.messages[2])<<8 + int(c.messages[3])
	if n > maxQuiet {
		return 0, nil, protocolError("the server sent a handshake message of %d bytes", n)
	}
	if len(c.messages) < n {
		return 0, nil, nil
	}
	message = c.messages[:n:n]
	c.messages = c.messages[n:]
	return message[0], message, nil
}

// readChange reads the TLS 1.2 ChangeCipherSpec.
func (c *Conn) readChange() error {
	if len(c.messages) != 0 {
		return protocolError("the server changed its keys within a message")
	}
	typ, data, err := c.readRecord()
	if err != nil {
		return err
	}
	if typ != recordChange || len(data) != 1 || data[0] != 1 {
		return protocolError("the server sent a record of type %d instead of ChangeCipherSpec", typ)
	}
	return nil
}

// records returns data as records of type typ, sealed if the client encrypts. version is the
// version in a plain record's header.
func (c *Conn) records(typ byte, version uint16, data []byte) ([]byte, error) {
	var out []byte
	for first := true; first || len(data) > 0; first = false {
		n := min(len(data), maxPlaintext)
		if c.out == nil {
			out = append(out, typ, byte(version>>8), byte(version), byte(n>>8), byte(n))
			out = append(out, data[:n]...)
		} else {
			record, err := c.out.seal(typ, data[:n])
			if err != nil {
				return nil, err
			}
			out = append(out, record...)
		}
		data = data[n:]
	}
	return out, nil
}

// send writes data as records of type typ.
func (c *Conn) send(typ byte, data []byte) error {
	out, err := c.records(typ, hello.TLS12, data)
	if err != nil {
		return err
	}
	_, err = c.conn.Write(out)
	return err
}

// Read reads application data. It handles the handshake messages that it finds on its way.
func (c *Conn) Read(b []byte) (int, error) {
	for len(c.data) == 0 {
		if err := c.readMore(); err != nil {
			return 0, err
		}
	}
	n := copy(b, c.data)
	c.data = c.data[n:]
	return n, nil
}

// readMore reads one record after the handshake.
func (c *Conn) readMore() error {
	typ, data, err := c.readRecord()
	if err != nil {
		return err
	}
	switch typ {
	case recordApplication:
		if len(c.messages) > 0 {
			err = protocolError("the server sent data within a handshake message")
			break
		}
		c.data = append(c.data, data...)
	case recordHandshake:
		c.messages = append(c.messages, data...)
		err = c.handleMessages()
	default:
		err = protocolError("the server sent a record of type %d after its handshake", typ)
	}
	if err != nil {
		c.eof = err
	}
	return err
}

// handleMessages handles the messages after the handshake that were read as a whole.
func (c *Conn) handleMessages() error {
	for {
		typ, message, err := c.takeMessage()
		if message == nil || err != nil {
			return err
		}
		if c.post == nil {
			return protocolError("the server sent a message of type %d after its handshake", typ)
		}
		if err := c.post(typ, message); err != nil {
			return err
		}
	}
}

// ReadSessions reads until the server has sent n sessions, the connection's deadline is over, or
// the server has sent data. It returns the sessions so far. The data are kept for Read.
func (c *Conn) ReadSessions(n int) ([]*Session, error) {
	for len(c.sessions) < n && len(c.data) == 0 {
		if err := c.readMore(); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) || err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
				break
			}
			return c.Sessions(), err
		}
	}
	return c.Sessions(), nil
}

// addSession keeps a session.
func (c *Conn) addSession(s *Session) {
	if len(c.sessions) < maxSessions {
		c.sessions = append(c.sessions, s)
	}
}

// Write writes application data.
func (c *Conn) Write(b []byte) (int, error) {
	if err := c.send(recordApplication, b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Close sends close_notify, if it can, and closes the connection.
func (c *Conn) Close() error {
	c.CloseWrite()
	return c.conn.Close()
}

// CloseWrite sends close_notify.
func (c *Conn) CloseWrite() error { return c.send(recordAlert, []byte{1, 0}) }

// NetConn returns the connection below, for its deadlines.
func (c *Conn) NetConn() net.Conn { return c.conn }
