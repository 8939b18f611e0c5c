package client

import (
	"slices"
	"time"

	"github.com/ossl-go/ossl/audit/internal/hello"
	"github.com/ossl-go/ossl/audit/internal/wire"
)

// A post13 handles the TLS 1.3 messages after the handshake.
type post13 struct {
	*Conn
	suite      suite13
	resumption []byte
	updates    int
}

func (p *post13) handle(typ byte, message []byte) error {
	switch typ {
	case msgTicket:
		return p.ticket(message[4:])
	case msgKeyUpdate:
		return p.keyUpdate(message[4:])
	}
	return protocolError("the server sent a message of type %d after its handshake", typ)
}

func (p *post13) ticket(body []byte) error {
	r := wire.Reader{Rest: body}
	lifetime, add := r.Number(4), r.Number(4)
	nonce, ticket := r.Vector(1), r.Vector(2)
	extensions, err := hello.ReadExtensions(&r)
	if err != nil || !r.Done() || len(ticket) == 0 {
		return protocolError("the server's NewSessionTicket is malformed")
	}
	secret, err := p.suite.expand(p.resumption, "resumption", nonce, p.suite.size())
	if err != nil {
		return err
	}
	s := &Session{Version: hello.TLS13, Suite: p.State.Suite, Secret: secret, Ticket: slices.Clone(ticket),
		Lifetime: uint32(lifetime), AgeAdd: uint32(add), ALPN: p.State.ALPN, Received: time.Now(), Certificates: p.State.Certificates}
	for _, e := range extensions {
		if e.Type == extEarlyData {
			r := wire.Reader{Rest: e.Data}
			if s.MaxEarly = uint32(r.Number(4)); !r.Done() {
				return protocolError("the server's NewSessionTicket is malformed")
			}
		}
	}
	p.addSession(s)
	return nil
}

func (p *post13) keyUpdate(body []byte) error {
	if p.updates++; p.updates > maxKeyUpdates {
		return protocolError("the server sent more than %d KeyUpdates", maxKeyUpdates)
	}
	if len(body) != 1 || body[0] > 1 || len(p.messages) != 0 {
		return protocolError("the server's KeyUpdate is malformed")
	}
	if err := p.in.(*half13).update(); err != nil || body[0] == 0 {
		return err
	}
	return p.updateKeys(0)
}

// updateKeys sends a KeyUpdate.
func (p *post13) updateKeys(request byte) error {
	if err := p.send(recordHandshake, []byte{msgKeyUpdate, 0, 0, 1, request}); err != nil {
		return err
	}
	return p.out.(*half13).update()
}
