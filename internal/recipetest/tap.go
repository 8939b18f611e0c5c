package recipetest

import (
	"encoding/binary"
	"net"
	"sync"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// A tap reads which handshakes a server has completed with a ServerHello, and which sessions it has
// resumed. That is in the clear, so the server can be any program.
type tap struct {
	mu   sync.Mutex
	seen counts
}

func (t *tap) hellos() counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen.minus(counts{})
}

// A tappedListener is a server's.
type tappedListener struct {
	net.Listener
	tap *tap
}

func (l *tappedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &tappedConn{Conn: conn, tap: l.tap}, nil
}

// A tappedConn is the server's end of a connection.
type tappedConn struct {
	net.Conn
	tap *tap

	mu     sync.Mutex
	done   bool
	flight []byte // the beginning of the server's data
}

func (c *tappedConn) Write(b []byte) (int, error) {
	c.look(b)
	return c.Conn.Write(b)
}

// CloseWrite closes the server's sending direction.
func (c *tappedConn) CloseWrite() error { return c.Conn.(*net.TCPConn).CloseWrite() }

func (c *tappedConn) look(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done {
		return
	}
	c.flight = append(c.flight, b...)
	version, resumed, ok := judge(c.flight)
	if c.done = ok || len(c.flight) > 1<<16; !c.done {
		return
	}
	c.flight = nil
	if ok {
		c.tap.mu.Lock()
		defer c.tap.mu.Unlock()
		c.tap.seen.add(version, resumed, 1)
	}
}

// judge reads the first records of a server. ok is false if it needs more of them.
//
// A TLS 1.3 server that resumes reports this in its ServerHello: RFC 8446, section 4.2.11. With TLS
// 1.2 it sends no Certificate before its ChangeCipherSpec: RFC 5246, section 7.3.
func judge(flight []byte) (version uint16, resumed, ok bool) {
	records, _ := tlstest.SplitRecords(flight)
	for i, r := range records {
		switch r.Type {
		case tlstest.TypeHandshake:
			if version, resumed, ok = judgeMessages(tlstest.Messages(records[:i+1])); ok {
				return version, resumed, true
			}
		case tlstest.TypeChangeCipherSpec: // it also follows a HelloRetryRequest
			if version != 0 {
				return version, true, true
			}
		}
	}
	return 0, false, false
}

// judgeMessages reads a server's messages. If ok is false, the version is a TLS 1.2 ServerHello's,
// or 0.
func judgeMessages(messages [][]byte) (version uint16, resumed, ok bool) {
	const extPreSharedKey = 41
	for _, m := range messages {
		switch m[0] {
		case tlstest.MsgServerHello:
			extensions, retry, good := serverHello(m[4:])
			if !good || retry {
				continue
			}
			if v := extensions[tlstest.ExtSupportedVersions]; len(v) == 2 {
				_, resumed := extensions[extPreSharedKey]
				return binary.BigEndian.Uint16(v), resumed, true
			}
			version = binary.BigEndian.Uint16(m[4:])
		case tlstest.MsgCertificate:
			return version, false, version != 0
		}
	}
	return version, false, false
}

// helloRetryRequest is the random value of one: RFC 8446, section 4.1.3.
const helloRetryRequest = "\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91" +
	"\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c"

// serverHello returns the extensions of a ServerHello without its header.
func serverHello(b []byte) (extensions map[uint16][]byte, retry, ok bool) {
	const fixed = 2 + 32 + 1
	if len(b) < fixed {
		return nil, false, false
	}
	retry = string(b[2:34]) == helloRetryRequest
	session := int(b[34])
	if len(b) < fixed+session+3 {
		return nil, false, false
	}
	b = b[fixed+session+3:]
	extensions = map[uint16][]byte{}
	if len(b) >= 2 {
		b = b[2:]
	}
	for len(b) >= 4 {
		n := int(binary.BigEndian.Uint16(b[2:]))
		if len(b) < 4+n {
			return nil, false, false
		}
		extensions[binary.BigEndian.Uint16(b)] = b[4 : 4+n]
		b = b[4+n:]
	}
	return extensions, retry, true
}
