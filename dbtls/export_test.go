package dbtls

import (
	"context"
	"net"
)

// MaxPrelude is the number of bytes that a server may send before TLS.
const MaxPrelude = maxPrelude

// Upgrades are the dialogues before TLS.
var Upgrades = map[string]func(*prelude) error{
	"PostgreSQL": func(p *prelude) error { _, err := requestSSL(context.Background(), p); return err },
	"SMTP":       (*prelude).startSMTP,
	"LDAP": func(p *prelude) error {
		message, err := p.ldapMessage()
		if err != nil {
			return err
		}
		return parseStartTLS(message)
	},
	"MySQL": func(p *prelude) error { _, err := p.mysqlGreeting(); return err },
	"NATS":  func(p *prelude) error { _, err := p.natsInfo(); return err },
}

// RunUpgrade runs the dialogue of the protocol on conn.
func RunUpgrade(protocol string, conn net.Conn) error {
	p := newPrelude(protocol, conn, nil)
	if err := Upgrades[protocol](p); err != nil {
		return err
	}
	return p.sealed()
}

// ParseInfo, HideTLS and ParseStartTLS parse what servers send before TLS.
var (
	ParseInfo     = parseInfo
	HideTLS       = hideTLS
	ParseStartTLS = parseStartTLS
)

// Renumber renumbers a server's packets, given in parts. It returns the length of the connection
// phase, without the last packet, or -1 if it isn't complete.
func Renumber(parts ...[]byte) int {
	r, length := renumberer{step: 0xff}, 0
	for _, part := range parts {
		rest, last := r.renumber(part)
		length += len(part) - len(rest)
		if last {
			return length
		}
	}
	return -1
}
