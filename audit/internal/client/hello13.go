package client

import (
	"bytes"
	"crypto/rand"
	"errors"
	"slices"
	"time"

	"github.com/ossl-go/ossl/audit/internal/hello"
	"github.com/ossl-go/ossl/audit/internal/wire"
)

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
	identity := wire.Append(wire.AppendVector(nil, 2, s.Ticket), 4, int(age))
	n := h.suite.size()
	body := wire.AppendVector(nil, 2, identity)
	h.hello.PSK = append(wire.Append(wire.Append(body, 2, n+1), 1, n), make([]byte, n)...)
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

// readHello reads a ServerHello or a HelloRetryRequest. It reads no more than the record with the
// message's last byte.
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
	server, err := hello.ParseServerHello(message[4:])
	if err != nil {
		return nil, nil, protocolError("the server sent %v", err)
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
	h.transcript = append(wire.AppendVector([]byte{msgMessageHash}, 3, suite.sum(h.transcript)), message...)
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
