package hello

import (
	"errors"
	"fmt"
	"io"

	"github.com/ossl-go/ossl/audit/internal/wire"
)

// Types of records and of handshake messages.
const (
	recordCCS       = 20
	recordAlert     = 21
	recordHandshake = 22

	msgHelloRequest = 0
	msgServerHello  = 2
	msgTicket       = 4
	msgCertificate  = 11
	msgKeyExchange  = 12
	msgRequest      = 13
	msgDone         = 14
	msgStatus       = 22
	msgSupplemental = 23
)

// ranks are the TLS 1.2 messages in their order (RFC 5246, section 7.3; RFC 6066, section 8; RFC
// 4680, section 2).
var ranks = map[byte]int{msgServerHello: 1, msgSupplemental: 2, msgCertificate: 3, msgStatus: 4,
	msgKeyExchange: 5, msgRequest: 6, msgDone: 7, msgTicket: 7}

// Read reads a reply. An answer that isn't TLS is a *SyntaxError. If the connection is closed
// before the reply has an alert or reaches stop, Read returns the part that it read, and an error
// that wraps the connection's.
//
// A server that resumes a TLS 1.2 session sends no ServerHelloDone: then Read stops at its
// ChangeCipherSpec, and Done is false.
func Read(r io.Reader, stop Stop) (*Reply, error) {
	p := &reader{r: r, stop: stop, reply: &Reply{}}
	err := p.run()
	if err != nil && errors.Is(err, io.EOF) && p.warned() {
		p.reply.Alert = &p.reply.Warnings[len(p.reply.Warnings)-1]
		err = nil
	}
	return p.reply, err
}

// A reader reads one reply.
type reader struct {
	r        io.Reader
	stop     Stop
	reply    *Reply
	alert    []byte // of an alert in two records
	messages []byte // the beginning of a message
	rank     int    // of the last message
	first    bool   // the first record was read
}

// warned reports whether the server closed the connection after a warning that stands for a refusal.
func (p *reader) warned() bool {
	w := p.reply.Warnings
	return len(w) > 0 && w[len(w)-1].Code != 112
}

func syntax(data []byte, format string, args ...any) *SyntaxError {
	return &SyntaxError{Message: fmt.Sprintf(format, args...), Data: append([]byte(nil), data[:min(len(data), 64)]...)}
}

// read reads n bytes, if the limit allows them.
func (p *reader) read(b []byte) error {
	if p.reply.Bytes+len(b) > MaxReply {
		return syntax(nil, "the reply is longer than %d bytes", MaxReply)
	}
	n, err := io.ReadFull(p.r, b)
	p.reply.Bytes += n
	if err != nil {
		return fmt.Errorf("after %d bytes: %w", p.reply.Bytes, err)
	}
	return nil
}

// run reads records until the reply is complete.
func (p *reader) run() error {
	for {
		header := make([]byte, 5)
		if err := p.read(header[:3]); err != nil {
			return err
		}
		if !p.first && header[0]&0x80 != 0 && (header[2] == 0 || header[2] == 4) {
			return p.ssl2(header[:3])
		}
		if header[0] < recordCCS || header[0] > recordHandshake || header[1] != 3 {
			return p.notTLS(header[:3])
		}
		if err := p.read(header[3:]); err != nil {
			return err
		}
		n := int(header[3])<<8 | int(header[4])
		if n == 0 || n > maxFragment {
			return syntax(header, "a record of %d bytes", n)
		}
		p.first = true
		data := make([]byte, n)
		if err := p.read(data); err != nil {
			return err
		}
		if done, err := p.record(header[0], data); done || err != nil {
			return err
		}
	}
}

// notTLS returns the error for a record's header that isn't one. It reads a little more, for the
// report.
func (p *reader) notTLS(header []byte) error {
	more := make([]byte, 61)
	n := 0
	if !p.first { // an answer in plain text comes in one piece
		n, _ = p.r.Read(more)
		p.reply.Bytes += n
	}
	data := append(header, more[:n]...)
	if len(data) >= 5 && string(data[:5]) == "HTTP/" {
		return syntax(data, "the answer is HTTP without TLS")
	}
	return syntax(data, "not a record of TLS: %q", data[:min(len(data), 16)])
}

// record reads the content of a record, and reports whether the reply is complete.
func (p *reader) record(typ byte, data []byte) (done bool, err error) {
	switch typ {
	case recordAlert:
		return p.alerts(data)
	case recordCCS:
		if len(data) != 1 || data[0] != 1 {
			return false, syntax(data, "a ChangeCipherSpec of %d bytes", len(data))
		}
		if len(p.messages) > 0 || len(p.alert) > 0 {
			return false, syntax(data, "a ChangeCipherSpec inside a message")
		}
		if p.reply.ServerHello == nil || p.rank != ranks[msgServerHello] && p.rank != ranks[msgTicket] {
			return false, syntax(data, "a ChangeCipherSpec too early")
		}
		return true, nil
	}
	if len(p.alert) > 0 {
		return false, syntax(data, "a handshake message inside an alert")
	}
	p.messages = append(p.messages, data...)
	for len(p.messages) >= 4 {
		n := 4 + int(p.messages[1])<<16 + int(p.messages[2])<<8 + int(p.messages[3])
		if n > MaxReply {
			return false, syntax(p.messages, "a message of %d bytes", n)
		}
		if len(p.messages) < n {
			break
		}
		m := p.messages[:n:n]
		p.messages = p.messages[n:]
		p.reply.Raw = append(p.reply.Raw, m...)
		if done, err := p.message(m[0], m[4:]); done || err != nil {
			return done, err
		}
	}
	return false, nil
}

func (p *reader) alerts(data []byte) (bool, error) {
	if len(p.messages) > 0 {
		return false, syntax(data, "an alert inside a handshake message")
	}
	p.alert = append(p.alert, data...)
	for len(p.alert) >= 2 {
		a := Alert{Level: p.alert[0], Code: p.alert[1]}
		p.alert = p.alert[2:]
		if a.Level != 1 && a.Level != 2 {
			return false, syntax([]byte{a.Level, a.Code}, "an alert of level %d", a.Level)
		}
		// Servers send unrecognized_name as a warning, and go on (RFC 6066, section 3).
		if a.Level == 1 && a.Code != 0 {
			if len(p.reply.Warnings) == maxWarnings {
				return false, syntax(nil, "more than %d warnings", maxWarnings)
			}
			p.reply.Warnings = append(p.reply.Warnings, a)
			continue
		}
		p.reply.Alert = &a
		return true, nil
	}
	return false, nil
}

const maxWarnings = 16

// message reads one message, and reports whether the reply is complete.
func (p *reader) message(typ byte, body []byte) (done bool, err error) {
	if typ == msgHelloRequest && len(body) == 0 {
		return false, nil
	}
	rank := ranks[typ]
	if rank <= p.rank || p.rank == 0 && typ != msgServerHello {
		return false, syntax(append([]byte{typ}, body[:min(len(body), 63)]...), "an unexpected message of type %d", typ)
	}
	p.rank = rank
	reply := p.reply
	switch typ {
	case msgServerHello:
		if reply.ServerHello, err = ParseServerHello(body); err != nil {
			return false, err
		}
		return p.stop == AtServerHello || reply.ServerHello.Version >= TLS13, nil
	case msgCertificate:
		reply.Certificates, err = ParseCertificates(body)
	case msgStatus:
		s := wire.Reader{Rest: body}
		if s.Uint8() != 1 {
			return false, syntax(body, "a CertificateStatus of an unknown type")
		}
		reply.Status = s.Vector(3)
		err = end(s, "CertificateStatus")
	case msgKeyExchange:
		reply.KeyExchange, err = ParseKeyExchange(body, reply.ServerHello.Version, reply.ServerHello.Suite)
	case msgRequest:
		reply.CertificateRequest = true
	case msgDone:
		if len(body) != 0 {
			return false, syntax(body, "a ServerHelloDone of %d bytes", len(body))
		}
		reply.Done = true
		return true, nil
	}
	return false, err
}

// ssl2 reads an answer of SSL 2: a SERVER-HELLO or an ERROR.
func (p *reader) ssl2(header []byte) error {
	n := int(header[0]&0x7f)<<8 | int(header[1])
	if n < 3 {
		return p.notTLS(header)
	}
	body := make([]byte, n-1)
	if err := p.read(body); err != nil {
		return err
	}
	s := wire.Reader{Rest: body}
	if header[2] == 0 {
		if p.reply.SSL2Error = s.Uint16(); p.reply.SSL2Error == 0 {
			return syntax(body, "an SSL 2 error of number 0")
		}
		return end(s, "SSL 2 ERROR")
	}
	s.Uint8() // session ID hit
	s.Uint8() // certificate type
	h := &SSL2Hello{Version: s.Uint16()}
	certificate, suites, id := int(s.Uint16()), int(s.Uint16()), int(s.Uint16())
	if suites%3 != 0 {
		return syntax(body, "SSL 2 ciphers of %d bytes", suites)
	}
	h.Certificate = s.Bytes(certificate)
	for b := s.Bytes(suites); len(b) > 0; b = b[3:] {
		h.Suites = append(h.Suites, uint32(b[0])<<16|uint32(b[1])<<8|uint32(b[2]))
	}
	s.Bytes(id)
	if err := end(s, "SSL 2 SERVER-HELLO"); err != nil {
		return err
	}
	p.reply.SSL2 = h
	return nil
}
