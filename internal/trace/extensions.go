package trace

import (
	"fmt"
	"strings"

	"github.com/ossl-go/ossl/tlsnames"
)

// The extensions whose bodies are printed: RFC 8446, section 4.2.
const (
	extensionServerName  = 0
	extensionGroups      = 10
	extensionSignatures  = 13
	extensionALPN        = 16
	extensionPSK         = 41
	extensionVersions    = 43
	extensionPSKModes    = 45
	extensionAuthorities = 47
	extensionSignCert    = 50
	extensionKeyShare    = 51
)

// extensionName returns IANA's name of an extension, and for the longest its abbreviation.
func extensionName(id int) string {
	if id == extensionALPN {
		return "ALPN"
	}
	return named(id, tlsnames.Extensions.Name(uint16(id)))
}

// extensions prints the extensions in a message of a type.
func (p *Printer) extensions(r *reader, message uint8, depth int) {
	all := reader{b: r.vector(2)}
	for i := 0; len(all.b) > 0 && i < maxList; i++ {
		id, body := all.number(2), reader{b: all.vector(2)}
		name := extensionName(id)
		if len(body.b) == 0 {
			p.fieldAt(depth, name, "")
			continue
		}
		n := len(body.b)
		text := p.extension(&body, id, message)
		if text == "" || body.failed || len(body.b) > 0 {
			text = fmt.Sprintf("%d bytes", n)
		}
		p.fieldAt(depth, name, "%s", text)
	}
	r.failed = r.failed || all.failed
}

// extension describes the body of an extension, or returns "" if only its length is of interest.
func (p *Printer) extension(r *reader, id int, message uint8) string {
	switch id {
	case extensionServerName:
		return serverName(r)
	case extensionGroups:
		return list(r.numbers(r.vector(2), 2), groupName)
	case extensionSignatures, extensionSignCert:
		return list(r.numbers(r.vector(2), 2), signatureName)
	case extensionALPN:
		return protocols(r)
	case extensionVersions:
		if message == clientHello {
			return list(r.numbers(r.vector(1), 2), versionName)
		}
		return versionName(r.number(2))
	case extensionKeyShare:
		return keyShares(r, message)
	case extensionPSKModes:
		return list(r.numbers(r.vector(1), 1), func(n int) string { return [...]string{"psk_ke", "psk_dhe_ke", "unknown"}[min(n, 2)] })
	case extensionPSK:
		return preSharedKeys(r, message)
	}
	return ""
}

func serverName(r *reader) string {
	const hostName = 0
	names := reader{b: r.vector(2)}
	if names.number(1) != hostName {
		return ""
	}
	name := names.vector(2)
	r.failed = r.failed || names.failed || len(names.b) > 0
	return fmt.Sprintf("%q", name)
}

func protocols(r *reader) string {
	all := reader{b: r.vector(2)}
	var names []string
	for len(all.b) > 0 && len(names) < maxList {
		names = append(names, fmt.Sprintf("%q", all.vector(1)))
	}
	r.failed = r.failed || all.failed
	return strings.Join(names, " ")
}

// keyShares describes the groups, and the length of each share. A HelloRetryRequest has only a
// group.
func keyShares(r *reader, message uint8) string {
	all := *r
	if message == clientHello {
		all = reader{b: r.vector(2)}
	} else {
		r.b = nil
	}
	var shares []string
	for len(all.b) > 0 && len(shares) < maxList {
		share := groupName(all.number(2))
		if len(all.b) > 0 {
			share += fmt.Sprintf(" (%d bytes)", len(all.vector(2)))
		}
		shares = append(shares, share)
	}
	r.failed = r.failed || all.failed
	return strings.Join(shares, ", ")
}

// preSharedKeys describes the tickets that a client offers, or the one that the server has chosen.
func preSharedKeys(r *reader, message uint8) string {
	if message != clientHello {
		return fmt.Sprintf("number %d is chosen", r.number(2))
	}
	all := reader{b: r.vector(2)}
	var lengths []string
	for len(all.b) > 0 && len(lengths) < maxList {
		lengths = append(lengths, fmt.Sprintf("%d", len(all.vector(2))))
		all.bytes(4) // obfuscated_ticket_age
	}
	r.vector(2) // binders
	r.failed = r.failed || all.failed
	return "tickets of " + strings.Join(lengths, ", ") + " bytes"
}
