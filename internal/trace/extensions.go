package trace

import (
	"fmt"
	"strings"

	"github.com/ossl-go/ossl/internal/wire"
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
func (p *Printer) extensions(r *wire.Reader, message uint8, depth int) {
	all := r.List(2)
	for i := 0; len(all.Rest) > 0 && i < maxList; i++ {
		id, body := all.Number(2), all.List(2)
		name := extensionName(id)
		if len(body.Rest) == 0 {
			p.fieldAt(depth, name, "")
			continue
		}
		n := len(body.Rest)
		text := p.extension(&body, id, message)
		if text == "" || !body.Done() {
			text = fmt.Sprintf("%d bytes", n)
		}
		p.fieldAt(depth, name, "%s", text)
	}
	r.Failed = all.Failed
}

// extension describes the body of an extension, or returns "" if only its length is of interest.
func (p *Printer) extension(r *wire.Reader, id int, message uint8) string {
	switch id {
	case extensionServerName:
		return serverName(r)
	case extensionGroups:
		return list(numbers(r, 2, 2), groupName)
	case extensionSignatures, extensionSignCert:
		return list(numbers(r, 2, 2), signatureName)
	case extensionALPN:
		return protocols(r)
	case extensionVersions:
		if message == clientHello {
			return list(numbers(r, 1, 2), versionName)
		}
		return versionName(r.Number(2))
	case extensionKeyShare:
		return keyShares(r, message)
	case extensionPSKModes:
		return list(numbers(r, 1, 1), func(n int) string { return [...]string{"psk_ke", "psk_dhe_ke", "unknown"}[min(n, 2)] })
	case extensionPSK:
		return preSharedKeys(r, message)
	}
	return ""
}

func serverName(r *wire.Reader) string {
	const hostName = 0
	names := r.List(2)
	if names.Number(1) != hostName {
		return ""
	}
	name := names.Vector(2)
	r.Failed = !names.Done()
	return fmt.Sprintf("%q", name)
}

func protocols(r *wire.Reader) string {
	all := r.List(2)
	var names []string
	for len(all.Rest) > 0 && len(names) < maxList {
		names = append(names, fmt.Sprintf("%q", all.Vector(1)))
	}
	r.Failed = all.Failed
	return strings.Join(names, " ")
}

// keyShares describes the groups, and the length of each share. A HelloRetryRequest has only a
// group.
func keyShares(r *wire.Reader, message uint8) string {
	all := *r
	if message == clientHello {
		all = r.List(2)
	} else {
		r.Rest = nil
	}
	var shares []string
	for len(all.Rest) > 0 && len(shares) < maxList {
		share := groupName(all.Number(2))
		if len(all.Rest) > 0 {
			share += fmt.Sprintf(" (%d bytes)", len(all.Vector(2)))
		}
		shares = append(shares, share)
	}
	r.Failed = all.Failed
	return strings.Join(shares, ", ")
}

// preSharedKeys describes the tickets that a client offers, or the one that the server has chosen.
func preSharedKeys(r *wire.Reader, message uint8) string {
	if message != clientHello {
		return fmt.Sprintf("number %d is chosen", r.Number(2))
	}
	all := r.List(2)
	var lengths []string
	for len(all.Rest) > 0 && len(lengths) < maxList {
		lengths = append(lengths, fmt.Sprintf("%d", len(all.Vector(2))))
		all.Bytes(4) // obfuscated_ticket_age
	}
	r.Vector(2) // binders
	r.Failed = r.Failed || all.Failed
	return "tickets of " + strings.Join(lengths, ", ") + " bytes"
}
