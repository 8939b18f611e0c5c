package client

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"errors"
	"net"
	"slices"
	"time"

	"github.com/ossl-go/ossl/audit/internal/hello"
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

// A handshake13 is a handshake of TLS 1.3 in progress.
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

// Handshake13 makes a handshake of TLS 1.3. If it fails after the server's first bytes, the Conn
// isn't nil, and its State has the facts that the server sent before.
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

// prepare makes the first ClientHello.
func (h *handshake13) prepare() error {
	base := h.config.Hello
	if base == nil {
		base = Default(h.config.ServerName)
	}
	h.hello = *base
	if h.config.ServerName != "" {
		h.hello.ServerName = h.config.ServerName
	}
	if h.config.ALPN != nil {
		h.hello.ALPN = h.config.ALPN
	}
	if err := randomize(&h.hello); err != nil {
		return err
	}
	groups := h.config.Shares
	if groups == nil {
		groups = commonShares(h.hello.Groups)
	}
	if err := h.addShares(groups); err != nil {
		return err
	}
	if s := h.config.Session; s != nil {
		if s.Version != hello.TLS13 {
			return errors.New("client: the session is not one of TLS 1.3")
		}
		suite, err := findSuite13(s.Suite)
		if err != nil {
			return err
		}
		h.suite, h.psk = suite, s.Secret
		if h.hello.PSKModes == nil {
			h.hello.PSKModes = []byte{pskDHE}
		}
	}
	if h.config.Early != nil && (h.psk == nil || len(h.config.Early) > int(h.config.Session.MaxEarly)) {
		return errors.New("client: the session doesn't allow the early data")
	}
	h.hello.EarlyData = h.config.Early != nil
	return nil
}

// commonShares returns the groups for which a browser would send key shares.
func commonShares(offered []uint16) (groups []uint16) {
	for _, g := range []uint16{X25519MLKEM768, X25519} {
		if slices.Contains(offered, g) {
			groups = append(groups, g)
		}
	}
	i := slices.IndexFunc(offered, func(g uint16) bool { return curve(g) != nil })
	if groups == nil && i >= 0 {
		groups = offered[i : i+1]
	}
	return groups
}

// randomize sets the fields of a hello that have to be random.
func randomize(h *hello.ClientHello) error {
	random := make([]byte, 64)
	if _, err := rand.Read(random); err != nil {
		return err
	}
	if h.Random == nil {
		h.Random = random[:32]
	}
	if h.SessionID == nil {
		h.SessionID = random[32:]
	}
	return nil
}

func (h *handshake13) addShares(groups []uint16) error {
	h.shares, h.hello.KeyShares = nil, []hello.KeyShare{}
	for _, g := range groups {
		secret, public, err := newShare(g)
		if err != nil {
			return err
		}
		h.shares = append(h.shares, secret)
		h.hello.KeyShares = append(h.hello.KeyShares, public)
	}
	return nil
}

// helloMessage returns the ClientHello, with the binder of the session if there is one. before is
// the transcript before it.
func (h *handshake13) helloMessage(before []byte) ([]byte, error) {
	if h.psk == nil {
		return h.hello.Message()
	}
	s := h.config.Session
	age := uint32(time.Since(s.Received).Milliseconds()) + s.AgeAdd
	identity := put(putVector(nil, 2, s.Ticket), 4, int(age))
	n := h.suite.size()
	body := putVector(nil, 2, identity)
	h.hello.PSK = append(put(put(body, 2, n+1), 1, n), make([]byte, n)...)
	message, err := h.hello.Message()
	if err != nil {
		return nil, err
	}
	early, err := h.suite.extract(h.psk, nil)
	if err != nil {
		return nil, err
	}
	key, err := h.suite.derive(early, "res binder", nil)
	if err != nil {
		return nil, err
	}
	partial := slices.Concat(before, message[:len(message)-n-3])
	binder, err := h.suite.finished(key, partial)
	if err != nil {
		return nil, err
	}
	copy(h.hello.PSK[len(h.hello.PSK)-n:], binder)
	copy(message[len(message)-n:], binder)
	return message, nil
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

// sendHello sends the first ClientHello, and the early data.
func (h *handshake13) sendHello() error {
	message, err := h.helloMessage(nil)
	if err != nil {
		return err
	}
	version := h.hello.RecordVersion
	if version == 0 {
		version = hello.TLS10
	}
	flight, err := h.records(recordHandshake, version, message)
	if err != nil {
		return err
	}
	h.transcript = message
	if h.config.Early != nil {
		secret, err := h.suite.extract(h.psk, nil)
		if err != nil {
			return err
		}
		if secret, err = h.suite.derive(secret, "c e traffic", message); err != nil {
			return err
		}
		if h.early, err = newHalf13(h.suite, secret); err != nil {
			return err
		}
		flight = append(flight, recordChange, 3, 3, 0, 1, 1)
		h.out = h.early
		early, err := h.records(recordApplication, hello.TLS12, h.config.Early)
		if err != nil {
			return err
		}
		h.out, flight = nil, append(flight, early...)
	}
	h.keepReplay(message)
	h.State.FirstFlight = flight
	if _, err := h.conn.Write(flight); err != nil {
		return err
	}
	h.State.Times.Sent = time.Now()
	return nil
}

// readServerHello reads the ServerHello, and answers a HelloRetryRequest before that.
func (h *handshake13) readServerHello() error {
	server, message, err := h.readHello()
	if err != nil {
		return err
	}
	if server.Retry {
		if err := h.retry(server, message); err != nil {
			return err
		}
		first := server
		if server, message, err = h.readHello(); err != nil {
			return err
		}
		if server.Retry || server.Suite != first.Suite || first.Group != 0 && server.Group != first.Group {
			return protocolError("the ServerHello contradicts the HelloRetryRequest")
		}
	}
	h.transcript = append(h.transcript, message...)
	return h.deriveHandshake(server)
}

// readHello reads a ServerHello or a HelloRetryRequest. It reads no more than the record that the
// message ends in.
func (h *handshake13) readHello() (*hello.ServerHello, []byte, error) {
	h.State.Version = hello.TLS13 // ChangeCipherSpec may come between
	typ, message, err := h.readMessage()
	h.State.Version = 0
	if err != nil {
		return nil, nil, err
	}
	if typ != msgServerHello {
		return nil, nil, protocolError("the server sent a message of type %d instead of ServerHello", typ)
	}
	server, err := parseServerHello(message)
	if err != nil {
		return nil, nil, err
	}
	h.State.ServerHello = server
	h.State.Version, h.State.Suite = server.Version, server.Suite
	switch {
	case server.Version != hello.TLS13:
		return nil, nil, protocolError("the server chose version 0x%04x", server.Version)
	case !bytes.Equal(server.SessionID, h.hello.SessionID):
		return nil, nil, protocolError("the server doesn't echo the session ID")
	case !slices.Contains(h.hello.Suites, server.Suite):
		return nil, nil, protocolError("the server chose suite 0x%04x, which wasn't offered", server.Suite)
	case len(h.messages) != 0:
		return nil, nil, protocolError("the server sent a plain message after its ServerHello")
	}
	return server, message, nil
}

// retry answers a HelloRetryRequest.
func (h *handshake13) retry(server *hello.ServerHello, message []byte) error {
	if h.replayed {
		return errRetried
	}
	h.State.Retried, h.State.Times.Retry = true, h.lastRead
	suite, err := findSuite13(server.Suite)
	if err != nil {
		return err
	}
	offered := func(s share) bool { return s.group == server.Group }
	switch {
	case server.Group == 0 && server.Cookie == nil:
		return protocolError("a HelloRetryRequest asks for nothing")
	case server.Group != 0 && (!slices.Contains(h.hello.Groups, server.Group) || slices.ContainsFunc(h.shares, offered)):
		return protocolError("a HelloRetryRequest asks for group 0x%04x", server.Group)
	}
	h.transcript = append(putVector([]byte{msgMessageHash}, 3, suite.sum(h.transcript)), message...)
	h.hello.Cookie, h.hello.EarlyData, h.early = server.Cookie, false, nil
	if server.Group != 0 {
		if err := h.addShares([]uint16{server.Group}); err != nil {
			return err
		}
	}
	if h.psk != nil && suite.size() != h.suite.size() {
		h.psk, h.hello.PSK = nil, nil
	}
	second, err := h.helloMessage(h.transcript)
	if err != nil {
		return err
	}
	h.transcript = append(h.transcript, second...)
	records, err := h.records(recordHandshake, hello.TLS12, second)
	if err != nil {
		return err
	}
	h.read, h.State.Times.FirstByte = 0, time.Time{}
	if _, err := h.conn.Write(append([]byte{recordChange, 3, 3, 0, 1, 1}, records...)); err != nil {
		return err
	}
	h.State.Times.Sent = time.Now()
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
	if h.State.Encrypted, err = parseExtensions(newReader(message[4:]), true); err != nil {
		return err
	}
	for _, e := range h.State.Encrypted {
		switch e.Type {
		case extALPN:
			r := newReader(e.Data)
			list := newReader(r.vector(2))
			name := string(list.vector(1))
			if !r.end() || !list.end() || !slices.Contains(h.hello.ALPN, name) {
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
		r := newReader(message[4:])
		h.requested, h.context = true, r.vector(1)
		if !r.ok {
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
	r := newReader(message[4:])
	scheme, signature := uint16(r.uint(2)), r.vector(2)
	if typ != msgVerify || !r.end() {
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
		body := putVector(putVector(nil, 1, h.context), 3, nil)
		if err := add(putVector([]byte{msgCertificate}, 3, body)); err != nil {
			return err
		}
	}
	verify, err := h.suite.finished(h.client, h.transcript)
	if err != nil {
		return err
	}
	if err := add(putVector([]byte{msgFinished}, 3, verify)); err != nil {
		return err
	}
	_, err = h.conn.Write(flight)
	return err
}
