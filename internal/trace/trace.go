// Package trace prints the messages of a handshake for people. It prints no random bytes, keys,
// tickets or signatures, only their lengths. It trusts nothing in a message.
package trace

import (
	"crypto/tls"
	"fmt"
	"strings"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/record"
	"github.com/ossl-go/ossl/internal/wire"
)

// A Printer prints the messages of one handshake, in their order.
type Printer struct {
	version uint16 // once there was a ServerHello
	out     strings.Builder
}

// maxList bounds the elements of a list that are printed, and maxText the length of a text, so that a
// peer can't fill a log with one message.
const (
	maxList = 40
	maxText = 2000
)

// Message returns the lines that describe a message. The first one begins with an arrow that points
// to the peer or from it.
func (p *Printer) Message(m libssl.Message) string {
	p.out.Reset()
	arrow := "<-"
	if m.Sent {
		arrow = "->"
	}
	fmt.Fprintf(&p.out, "%s ", arrow)
	switch m.ContentType {
	case record.Handshake:
		p.handshake(m)
	case record.Alert:
		p.alert(m.Data)
	case record.ChangeCipherSpec:
		p.out.WriteString("ChangeCipherSpec\n")
	default:
		fmt.Fprintf(&p.out, "record of type %d, %d bytes\n", m.ContentType, len(m.Data))
	}
	return p.out.String()
}

func (p *Printer) alert(b []byte) {
	if len(b) != 2 {
		fmt.Fprintf(&p.out, "Alert, malformed\n")
		return
	}
	level := "fatal"
	if b[0] == record.LevelWarning {
		level = "warning"
	}
	fmt.Fprintf(&p.out, "Alert: %s, %s (%d)\n", level, strings.TrimPrefix(tls.AlertError(b[1]).Error(), "tls: "), b[1])
}

// field prints a line below a message.
func (p *Printer) field(name, format string, args ...any) {
	p.fieldAt(0, name, format, args...)
}

// fieldAt prints a line that is indented by depth steps more. A long one goes on below.
func (p *Printer) fieldAt(depth int, name, format string, args ...any) {
	const column, width = 31, 100
	text := fmt.Sprintf(format, args...)
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	line := fmt.Sprintf("%-*s", column-1, strings.Repeat(" ", 4+2*depth)+name)
	for _, word := range strings.Fields(text) {
		if len(line) >= column && len(line)+1+len(word) > width {
			p.out.WriteString(line + "\n")
			line = strings.Repeat(" ", column-1)
		}
		line += " " + word
	}
	p.out.WriteString(strings.TrimRight(line, " ") + "\n")
}

// malformed prints that the rest of a message can't be parsed.
func (p *Printer) malformed() { p.field("malformed", "") }

// The types of handshake messages: RFC 8446, appendix B.3, and RFC 5246, appendix A.4.
const (
	clientHello         = 1
	serverHello         = 2
	newSessionTicket    = 4
	encryptedExtensions = 8
	certificate         = 11
	serverKeyExchange   = 12
	certificateRequest  = 13
	certificateVerify   = 15
	clientKeyExchange   = 16
	certificateStatus   = 22
)

var messageNames = map[uint8]string{
	0:                   "HelloRequest",
	clientHello:         "ClientHello",
	serverHello:         "ServerHello",
	newSessionTicket:    "NewSessionTicket",
	5:                   "EndOfEarlyData",
	encryptedExtensions: "EncryptedExtensions",
	certificate:         "Certificate",
	serverKeyExchange:   "ServerKeyExchange",
	certificateRequest:  "CertificateRequest",
	14:                  "ServerHelloDone",
	certificateVerify:   "CertificateVerify",
	clientKeyExchange:   "ClientKeyExchange",
	20:                  "Finished",
	certificateStatus:   "CertificateStatus",
	24:                  "KeyUpdate",
	25:                  "CompressedCertificate",
}

// helloRetryRandom is the Random of a ServerHello that is a HelloRetryRequest: RFC 8446, section
// 4.1.3.
const helloRetryRandom = "\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91" +
	"\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c"

func (p *Printer) handshake(m libssl.Message) {
	const header = 4
	if len(m.Data) < header {
		fmt.Fprintf(&p.out, "handshake message, malformed\n")
		return
	}
	name, ok := messageNames[m.Data[0]]
	if !ok {
		name = fmt.Sprintf("handshake message %d", m.Data[0])
	}
	r := wire.Reader{Rest: m.Data[header:]}
	if m.Data[0] == serverHello && len(r.Rest) >= 34 && string(r.Rest[2:34]) == helloRetryRandom {
		name = "HelloRetryRequest"
	}
	fmt.Fprintf(&p.out, "%s, %d bytes\n", name, len(r.Rest))
	switch m.Data[0] {
	case clientHello:
		p.clientHello(&r)
	case serverHello:
		p.serverHello(&r)
	case encryptedExtensions:
		p.extensions(&r, encryptedExtensions, 0)
	case certificate:
		p.certificate(&r)
	case certificateRequest:
		p.certificateRequest(&r)
	case certificateVerify:
		p.field("signature algorithm", "%v", signatureName(r.Number(2)))
		p.field("signature", "%d bytes", len(r.Vector(2)))
	case serverKeyExchange:
		p.serverKeyExchange(&r)
	case newSessionTicket:
		p.newSessionTicket(&r)
	default:
		return // Finished, for example, or a message whose content is a key
	}
	if !r.Done() {
		p.malformed()
	}
}
