package client

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"slices"
	"time"

	"github.com/ossl-go/ossl/audit/internal/hello"
	"github.com/ossl-go/ossl/audit/internal/wire"
)

// Types of handshake messages.
const (
	typeServerHello12      = 2
	typeNewTicket12        = 4
	typeCertificate12      = 11
	typeKeyExchange12      = 12
	typeCertificateAsk12   = 13
	typeHelloDone12        = 14
	typeClientExchange12   = 16
	typeFinished12         = 20
	typeCertificateState12 = 22
)

const (
	extEncryptThenMAC    = 22
	extExtendedMaster    = 23
	extRenegotiation     = 0xff01
	alertNoRenegotiation = 100
)

// A handshake12 is a handshake in TLS 1.2 or earlier.
type handshake12 struct {
	*Conn
	config     *Config
	hello      *hello.ClientHello
	suite      *suite12
	transcript []byte
	master     []byte
	session    *Session // can be resumed later
	verify     []byte   // the client's Finished
}

// Handshake12 makes a TLS 1.2 handshake, or a handshake in an earlier version if the server chooses
// it. The connection's deadline bounds its time. If it fails, the Conn that it returns has the
// State so far.
func Handshake12(conn net.Conn, config *Config) (*Conn, error) {
	h := &handshake12{Conn: newConn(conn), config: config}
	return h.Conn, h.run()
}

func (h *handshake12) run() error {
	if err := h.sendHello(); err != nil {
		return err
	}
	typ, message, err := h.next()
	if err != nil {
		return err
	}
	if typ != typeServerHello12 {
		return protocolError("the server sent a message of type %d instead of a ServerHello", typ)
	}
	if err := h.readHello(message); err != nil {
		return err
	}
	change, err := h.peekChange()
	if err != nil {
		return err
	}
	if message = nil; !change {
		if typ, message, err = h.next(); err != nil {
			return err
		}
	}
	if change || typ == typeNewTicket12 {
		err = h.resume(message, change)
	} else {
		err = h.full(typ, message)
	}
	if err != nil {
		return err
	}
	h.State.Times.Done = time.Now()
	if len(h.session.ID)+len(h.session.Ticket) > 0 {
		h.addSession(h.session)
	}
	h.Conn.renegotiate = h.nextHello
	h.Conn.post = func(typ byte, _ []byte) error {
		if typ != 0 { // a HelloRequest, which the client may ignore
			return protocolError("the server sent a message of type %d after its handshake", typ)
		}
		return nil
	}
	return nil
}

// sendHello sends the ClientHello.
func (h *handshake12) sendHello() error {
	offer := h.config.Hello
	if offer == nil {
		offer = Default(h.config.ServerName, hello.TLS12)
	}
	copied := *offer
	h.hello = &copied
	if h.config.ServerName != "" {
		copied.ServerName = h.config.ServerName
	}
	if h.config.ALPN != nil {
		copied.ALPN = h.config.ALPN
	}
	if copied.Random == nil {
		copied.Random = make([]byte, 32)
		rand.Read(copied.Random)
	}
	if s := h.config.Session; s != nil {
		if s.Version >= hello.TLS13 {
			return errors.New("client: a session of TLS 1.3 in a handshake of TLS 1.2")
		}
		copied.SessionID = s.ID
		if s.Ticket != nil { // with a ticket the ID is the client's, RFC 5077, section 3.4
			copied.Ticket, copied.SessionID = s.Ticket, make([]byte, 32)
			rand.Read(copied.SessionID)
		}
	}
	packet, err := copied.Marshal()
	if err != nil {
		return err
	}
	if h.transcript, err = copied.Message(); err != nil {
		return err
	}
	h.State.FirstFlight = packet
	h.State.Times.Sent = time.Now()
	_, err = h.conn.Write(packet)
	return err
}

// readHello reads the decisions of a ServerHello.
func (h *handshake12) readHello(message []byte) error {
	answer, err := hello.ParseServerHello(message[4:])
	if err != nil {
		return err
	}
	s := &h.State
	s.ServerHello, s.Version, s.Suite, s.ALPN = answer, answer.Version, answer.Suite, answer.ALPN
	highest := max(h.hello.Version, hello.TLS10)
	if h.hello.Version == 0 {
		highest = hello.TLS12
	}
	if answer.Version > highest || answer.Version < hello.SSL3 || !slices.Contains(h.hello.Suites, answer.Suite) ||
		answer.Retry || len(answer.SessionID) > 32 {
		return protocolError("the server chose version 0x%04x and suite 0x%04x, which weren't offered", answer.Version, answer.Suite)
	}
	h.suite = suite12ByID(answer.Suite)
	if h.suite == nil || answer.Compression != 0 || answer.Version < hello.TLS10 {
		return &UnsupportedError{"the server's version, suite or compression"}
	}
	if answer.Version < h.suite.since {
		return protocolError("the server chose suite 0x%04x in version 0x%04x", answer.Suite, answer.Version)
	}
	_, s.ExtendedMaster = answer.Extension(extExtendedMaster)
	_, s.SecureRenegotiation = answer.Extension(extRenegotiation)
	_, etm := answer.Extension(extEncryptThenMAC)
	s.EncryptThenMAC = etm && h.hello.EncryptThenMAC && h.suite.mac != nil
	return nil
}

// full is a full handshake after the ServerHello. It begins with a message that was read.
func (h *handshake12) full(typ byte, message []byte) error {
	var keyExchange []byte
	asked := false
	for last := 0; typ != typeHelloDone12; {
		place := slices.Index([]byte{typeCertificate12, typeCertificateState12, typeKeyExchange12, typeCertificateAsk12}, typ) + 1
		if place <= last {
			return protocolError("the server sent an unexpected message of type %d", typ)
		}
		last = place
		body := message[4:]
		switch typ {
		case typeCertificate12:
			certificates, err := hello.ParseCertificates(body)
			if err != nil {
				return protocolError("the server sent %v", err)
			}
			h.State.Certificates = certificates
		case typeCertificateState12:
			if r := (wire.Reader{Rest: body}); r.Uint8() == 1 {
				h.State.Staple = bytes.Clone(r.Vector(3))
			}
		case typeKeyExchange12:
			keyExchange = body
		case typeCertificateAsk12:
			asked = true
		}
		var err error
		if typ, message, err = h.next(); err != nil {
			return err
		}
	}
	h.endFlight()
	if len(h.State.Certificates) == 0 {
		return protocolError("the server sent no certificate")
	}
	offered := h.hello.Version
	if offered == 0 {
		offered = hello.TLS12
	}
	exchanged, err := exchangeKeys(h.suite, offered, h.State.Certificates[0], keyExchange)
	if err != nil {
		return err
	}
	h.State.Group = exchanged.group
	if err := h.verifyExchange(keyExchange, exchanged.parameters); err != nil {
		return err
	}
	var out []byte
	add := func(typ byte, body []byte) {
		message := wire.AppendVector([]byte{typ}, 3, body)
		out, h.transcript = append(out, message...), append(h.transcript, message...)
	}
	if asked {
		add(typeCertificate12, []byte{0, 0, 0})
	}
	add(typeClientExchange12, exchanged.message)
	var extended []byte
	if h.State.ExtendedMaster {
		extended = h.transcript
	}
	h.master = h.prf().master(exchanged.premaster, h.hello.Random, h.State.ServerHello.Random, extended)
	h.session = &Session{Version: h.State.Version, Suite: h.State.Suite, Secret: h.master, ID: h.State.ServerHello.SessionID,
		ALPN: h.State.ALPN, Received: time.Now(), ExtendedMaster: h.State.ExtendedMaster,
		EncryptThenMAC: h.State.EncryptThenMAC, Certificates: h.State.Certificates}
	if err := h.sendFinished(out); err != nil {
		return err
	}
	change, err := h.peekChange()
	if err != nil {
		return err
	}
	message = nil
	if !change {
		if typ, message, err = h.next(); err != nil {
			return err
		}
		if typ != typeNewTicket12 {
			return protocolError("the server sent a message of type %d instead of Finished", typ)
		}
	}
	return h.readFinished(message, change)
}

// resume is the rest of a handshake in which the server resumes. It begins with a NewSessionTicket
// that was read, or with a ChangeCipherSpec that wasn't.
func (h *handshake12) resume(message []byte, change bool) error {
	s := h.config.Session
	if s == nil || s.Suite != h.State.Suite || s.Version != h.State.Version {
		return protocolError("the server resumed a session that wasn't offered")
	}
	h.State.Resumed = true
	h.master = s.Secret
	renewed := *s
	h.session = &renewed
	if err := h.readFinished(message, change); err != nil {
		return err
	}
	h.endFlight()
	return h.sendFinished(nil)
}

// endFlight notes the end of the server's first flight.
func (h *handshake12) endFlight() {
	h.State.Times.Flight, h.State.Flight = h.lastRead, h.Conn.read
}

func (h *handshake12) prf() prf { return h.suite.prf(h.State.Version) }

// keys returns the protection of both directions.
func (h *handshake12) keys() (client, server half12, err error) {
	c, s, err := keys12(h.suite, h.State.Version, h.State.EncryptThenMAC, h.master, h.hello.Random, h.State.ServerHello.Random)
	return half12{c, h.State.Version, 0}, half12{s, h.State.Version, 0}, err
}

// sendFinished sends messages, ChangeCipherSpec and Finished with one write.
func (h *handshake12) sendFinished(messages []byte) error {
	var out []byte
	send := func(typ byte, data []byte) error {
		records, err := h.records(typ, h.State.Version, data)
		out = append(out, records...)
		return err
	}
	if messages != nil {
		if err := send(recordHandshake, messages); err != nil {
			return err
		}
	}
	if err := send(recordChange, []byte{1}); err != nil {
		return err
	}
	client, _, err := h.keys()
	if err != nil {
		return err
	}
	h.out = &sealer12{client}
	h.verify = h.prf().finished(h.master, labelClientFinished, h.transcript)
	finished := wire.AppendVector([]byte{typeFinished12}, 3, h.verify)
	h.transcript = append(h.transcript, finished...)
	if err := send(recordHandshake, finished); err != nil {
		return err
	}
	_, err = h.conn.Write(out)
	return err
}

// readFinished reads the end of the server's side.
func (h *handshake12) readFinished(ticket []byte, change bool) error {
	if ticket != nil {
		r := wire.Reader{Rest: ticket[4:]}
		lifetime, value := uint32(r.Number(4)), r.Vector(2)
		if !r.Done() {
			return protocolError("the server sent a malformed NewSessionTicket")
		}
		if len(value) > 0 { // if it is empty, the server gives no ticket after all
			h.session.Lifetime, h.session.Ticket, h.session.Received = lifetime, bytes.Clone(value), time.Now()
		}
	}
	if !change {
		if err := h.readChange(); err != nil {
			return err
		}
	}
	_, server, err := h.keys()
	if err != nil {
		return err
	}
	h.in = &opener12{server}
	want := h.prf().finished(h.master, labelServerFinished, h.transcript)
	typ, message, err := h.next()
	if err != nil {
		return err
	}
	if typ != typeFinished12 || !hmac.Equal(message[4:], want) {
		return protocolError("the server's Finished is wrong")
	}
	return nil
}

// next returns the next handshake message, and adds it to the transcript.
func (h *handshake12) next() (byte, []byte, error) {
	for {
		typ, message, err := h.readMessage()
		if err != nil {
			return 0, nil, err
		}
		if typ != 0 { // a HelloRequest isn't part of the transcript
			h.transcript = append(h.transcript, message...)
			return typ, message, nil
		}
	}
}

// peekChange reports whether a ChangeCipherSpec comes next, and reads it.
func (h *handshake12) peekChange() (bool, error) {
	if len(h.messages) > 0 {
		return false, nil
	}
	if err := h.fill(headerSize); err != nil {
		return false, err
	}
	if h.buf[0] == recordChange {
		return true, h.readChange()
	}
	return false, nil
}

// nextHello returns the ClientHello of a renegotiation, RFC 5746, section 3.5.
func (h *handshake12) nextHello() (*hello.ClientHello, error) {
	again := *h.hello
	again.Random, again.SessionID, again.Ticket = nil, nil, nil
	if again.Renegotiation {
		again.Renegotiation = false
		verify := wire.AppendVector(nil, 1, h.verify)
		again.Extra = append(slices.Clone(again.Extra), hello.Extension{Type: extRenegotiation, Data: verify})
	}
	return &again, nil
}

// Renegotiate asks for a renegotiation, which TLS 1.2 has, and reports whether the server begins one.
// A server refuses by an alert or by the end of the connection. After Renegotiate the connection can
// only be closed.
func (c *Conn) Renegotiate() (bool, error) {
	if c.renegotiate == nil {
		return false, errors.New("client: no connection of TLS 1.2")
	}
	again, err := c.renegotiate()
	if err != nil {
		return false, err
	}
	message, err := again.Message()
	if err != nil {
		return false, err
	}
	if err := c.send(recordHandshake, message); err != nil {
		return false, err
	}
	for {
		typ, data, err := c.readRecord()
		var network net.Error
		switch {
		case errors.As(err, new(*AlertError)), err == io.EOF, errors.Is(err, io.ErrUnexpectedEOF),
			errors.As(err, &network) && !network.Timeout():
			return false, nil
		case err != nil:
			return false, err
		case typ == recordHandshake && data[0] == typeServerHello12:
			return true, nil
		}
	}
}
