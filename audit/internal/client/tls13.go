package client

import (
	"bytes"
	"crypto/hmac"
	"errors"
	"net"
	"slices"
	"time"

	"github.com/ossl-go/ossl/audit/internal/hello"
	"github.com/ossl-go/ossl/audit/internal/wire"
)

// Types of handshake messages.
const (
	msgServerHello = 2
	msgTicket      = 4
	msgEndOfEarly  = 5
	msgEncrypted   = 8
	msgCertificate = 11
	msgRequest     = 13
	msgVerify      = 15
	msgFinished    = 20
	msgKeyUpdate   = 24
	msgCompressed  = 25
	msgMessageHash = 254
	maxKeyUpdates  = 32
	verifyServer   = "TLS 1.3, server CertificateVerify\x00"
)

// A handshake13 is a TLS 1.3 handshake in progress.
type handshake13 struct {
	*Conn
	config     *Config
	hello      hello.ClientHello
	shares     []share
	suite      suite13
	transcript []byte
	requested  bool // the server asked for a certificate
	context    []byte
	replayed   bool // the first flight was sent before, see Replay

	psk       []byte // of the session that the hello offers
	early     *half13
	handshake []byte // secrets
	client    []byte
	server    []byte
}

// Handshake13 makes a TLS 1.3 handshake. If it fails after the server's first bytes, the Conn isn't
// nil, and its State has the facts that the server sent before.
func Handshake13(conn net.Conn, config *Config) (*Conn, error) {
	h := &handshake13{Conn: newConn(conn), config: config}
	if err := h.prepare(); err != nil {
		return nil, err
	}
	if err := h.run(); err != nil {
		if h.State.ServerHello == nil {
			return nil, err
		}
		return h.Conn, err
	}
	return h.Conn, nil
}

func (h *handshake13) run() error {
	if err := h.sendHello(); err != nil {
		return err
	}
	if err := h.readServerHello(); err != nil {
		return err
	}
	for _, step := range []func() error{h.readEncrypted, h.readCertificates, h.readFinished, h.finish} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// deriveHandshake makes the keys of the handshake.
func (h *handshake13) deriveHandshake(server *hello.ServerHello) error {
	suite, err := findSuite13(server.Suite)
	if err != nil {
		return err
	}
	var psk []byte
	if server.PSK >= 0 {
		if h.psk == nil || server.PSK != 0 || suite.size() != h.suite.size() {
			return protocolError("the server chose a session that wasn't offered")
		}
		psk, h.State.Resumed = h.psk, true
	}
	h.suite = suite
	early, err := suite.extract(psk, nil)
	if err != nil {
		return err
	}
	salt, err := suite.derive(early, "derived", nil)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(h.shares, func(s share) bool { return s.group == server.Group })
	if i < 0 {
		return protocolError("the server chose group 0x%04x, for which there is no key share", server.Group)
	}
	h.State.Group = server.Group
	shared, err := h.shares[i].secret(server.KeyShare)
	if err != nil {
		return err
	}
	if h.handshake, err = suite.extract(shared, salt); err != nil {
		return err
	}
	if h.client, err = suite.derive(h.handshake, "c hs traffic", h.transcript); err != nil {
		return err
	}
	if h.server, err = suite.derive(h.handshake, "s hs traffic", h.transcript); err != nil {
		return err
	}
	h.in, err = newHalf13(suite, h.server)
	return err
}

// readEncrypted reads EncryptedExtensions.
func (h *handshake13) readEncrypted() error {
	typ, message, err := h.readMessage()
	if err != nil {
		return err
	}
	if typ != msgEncrypted {
		return protocolError("the server sent a message of type %d instead of EncryptedExtensions", typ)
	}
	h.transcript = append(h.transcript, message...)
	r := wire.Reader{Rest: message[4:]}
	if h.State.Encrypted, err = hello.ReadExtensions(&r); err != nil || !r.Done() {
		return protocolError("the server's EncryptedExtensions are malformed")
	}
	for _, e := range h.State.Encrypted {
		switch e.Type {
		case extALPN:
			r := wire.Reader{Rest: e.Data}
			list := r.List(2)
			name := string(list.Vector(1))
			if !r.Done() || !list.Done() || !slices.Contains(h.hello.ALPN, name) {
				return protocolError("the server chose protocol %.64q, which wasn't offered", name)
			}
			h.State.ALPN = name
		case extEarlyData:
			if h.early == nil || !h.State.Resumed || len(e.Data) != 0 {
				return protocolError("the server accepts early data that weren't sent")
			}
			h.State.EarlyAccepted = true
		}
	}
	return nil
}

// readCertificates reads the server's certificates and its signature, if it doesn't resume.
func (h *handshake13) readCertificates() error {
	if h.State.Resumed {
		return nil
	}
	typ, message, err := h.readMessage()
	if err != nil {
		return err
	}
	if typ == msgRequest {
		r := wire.Reader{Rest: message[4:]}
		h.requested, h.context = true, r.Vector(1)
		if r.Failed {
			return protocolError("the server's CertificateRequest is malformed")
		}
		h.transcript = append(h.transcript, message...)
		if typ, message, err = h.readMessage(); err != nil {
			return err
		}
	}
	h.transcript = append(h.transcript, message...)
	switch typ {
	case msgCertificate:
		err = h.State.parseCertificates(message[4:])
	case msgCompressed:
		err = h.State.parseCompressed(message[4:], h.hello.CompressCertificate)
	default:
		err = protocolError("the server sent a message of type %d instead of Certificate", typ)
	}
	if err != nil {
		return err
	}
	return h.readSignature()
}

// readSignature reads and verifies CertificateVerify.
func (h *handshake13) readSignature() error {
	typ, message, err := h.readMessage()
	if err != nil {
		return err
	}
	r := wire.Reader{Rest: message[4:]}
	scheme, signature := r.Uint16(), r.Vector(2)
	if typ != msgVerify || !r.Done() {
		return protocolError("the server sent a message of type %d instead of CertificateVerify, or a malformed one", typ)
	}
	if !slices.Contains(h.hello.Signatures, scheme) {
		return protocolError("the server signed by scheme 0x%04x, which wasn't offered", scheme)
	}
	h.State.Signature = scheme
	signed := append(bytes.Repeat([]byte{' '}, 64), verifyServer...)
	signed = append(signed, h.suite.sum(h.transcript)...)
	if err := h.State.verifySignature(scheme, signed, signature); errors.Is(err, errUnverified) {
		h.State.Unverified = err
	} else if err != nil {
		return err
	}
	h.transcript = append(h.transcript, message...)
	return nil
}

// readFinished reads and verifies the server's Finished.
func (h *handshake13) readFinished() error {
	typ, message, err := h.readMessage()
	if err != nil {
		return err
	}
	h.State.Times.Flight, h.State.Flight = h.lastRead, h.read
	want, err := h.suite.finished(h.server, h.transcript)
	if err != nil {
		return err
	}
	if typ != msgFinished || !hmac.Equal(want, message[4:]) {
		return protocolError("the server's Finished is wrong")
	}
	if len(h.messages) != 0 {
		return protocolError("the server sent a message after Finished with the keys before it")
	}
	h.transcript = append(h.transcript, message...)
	return nil
}

// finish sends the client's last flight, and takes the keys of application data.
func (h *handshake13) finish() error {
	salt, err := h.suite.derive(h.handshake, "derived", nil)
	if err != nil {
		return err
	}
	master, err := h.suite.extract(nil, salt)
	if err != nil {
		return err
	}
	client, err := h.suite.derive(master, "c ap traffic", h.transcript)
	if err != nil {
		return err
	}
	server, err := h.suite.derive(master, "s ap traffic", h.transcript)
	if err != nil {
		return err
	}
	if h.in, err = newHalf13(h.suite, server); err != nil {
		return err
	}
	if h.replayed {
		h.post = func(byte, []byte) error { return nil }
		return nil
	}
	if err := h.sendFinished(); err != nil {
		return err
	}
	resumption, err := h.suite.derive(master, "res master", h.transcript)
	if err != nil {
		return err
	}
	if h.out, err = newHalf13(h.suite, client); err != nil {
		return err
	}
	h.State.Times.Done = time.Now()
	post := &post13{Conn: h.Conn, suite: h.suite, resumption: resumption}
	h.post = post.handle
	return nil
}

// sendFinished sends EndOfEarlyData, an empty Certificate if one was asked for, and Finished.
func (h *handshake13) sendFinished() error {
	var flight []byte
	add := func(message []byte) error {
		h.transcript = append(h.transcript, message...)
		records, err := h.records(recordHandshake, hello.TLS12, message)
		flight = append(flight, records...)
		return err
	}
	if h.State.EarlyAccepted {
		h.out = h.early
		if err := add([]byte{msgEndOfEarly, 0, 0, 0}); err != nil {
			return err
		}
	} else if !h.State.Retried && h.config.Early == nil {
		flight = append(flight, recordChange, 3, 3, 0, 1, 1)
	}
	var err error
	if h.out, err = newHalf13(h.suite, h.client); err != nil {
		return err
	}
	if h.requested {
		body := wire.AppendVector(wire.AppendVector(nil, 1, h.context), 3, nil)
		if err := add(wire.AppendVector([]byte{msgCertificate}, 3, body)); err != nil {
			return err
		}
	}
	verify, err := h.suite.finished(h.client, h.transcript)
	if err != nil {
		return err
	}
	if err := add(wire.AppendVector([]byte{msgFinished}, 3, verify)); err != nil {
		return err
	}
	_, err = h.conn.Write(flight)
	return err
}
