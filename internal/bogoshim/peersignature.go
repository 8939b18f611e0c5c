package main

import (
	"errors"
	"fmt"
	"net"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// A witness records a connection to find the peer's signature algorithm, which is not in
// tls.ConnectionState.
type witness struct {
	recording tlstest.Recording
	log       tlstest.KeyLog
	server    bool // the shim's role
}

// messageServerKeyExchange and messageCertificateVerify are the signed messages: RFC 8446, section
// 4; RFC 5246, section 7.4.
const (
	messageServerKeyExchange = 12
	messageCertificateVerify = 15
)

func (w *witness) roles() (own, peer tlstest.Role) {
	if w.server {
		return tlstest.ServerRole, tlstest.ClientRole
	}
	return tlstest.ClientRole, tlstest.ServerRole
}

// watch returns conn with both directions recorded.
func (w *witness) watch(conn net.Conn) net.Conn {
	own, peer := w.roles()
	return &witnessed{w.recording.Tap(own, conn), w.recording.Tap(peer, nowhere{})}
}

type witnessed struct {
	net.Conn
	copy net.Conn
}

func (c *witnessed) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	_, _ = c.copy.Write(b[:n])
	return n, err
}

type nowhere struct{ net.Conn }

func (nowhere) Write(b []byte) (int, error) { return len(b), nil }

// signature returns the algorithm of the peer's signature.
func (w *witness) signature() (uint16, error) {
	_, peer := w.roles()
	for _, m := range tlstest.Messages(w.recording.Decipher(peer, &w.log)) {
		at := 4
		switch {
		case m[0] == messageServerKeyExchange && len(m) > 8: // a named curve: RFC 8422, section 5.4
			at = 8 + int(m[7])
		case m[0] != messageCertificateVerify:
			continue
		}
		if len(m) < at+2 {
			return 0, fmt.Errorf("short handshake message %x", m)
		}
		return uint16(m[at])<<8 | uint16(m[at+1]), nil
	}
	return 0, errors.New("the peer signed nothing")
}
