package confgen

import (
	"strconv"
	"strings"

	"github.com/ossl-go/ossl/policy"
)

// The reasons that several servers' directives have.
const (
	whyVersions   = "Older versions have known attacks, and all current clients have these."
	whySuites13   = "The cipher suites of TLS 1.3, the most preferred first."
	whySuites12   = "The cipher suites of TLS 1.2: forward secrecy and authenticated encryption."
	whyGroups     = "The groups of the key exchange. A client that guesses another one pays a round trip more."
	whySignatures = "The schemes in which the server signs handshakes."
	whyID         = "A client without tickets that comes back saves the server's signature, and in TLS 1.2 a round trip."
	whyTickets    = "Clients that come back save the server's signature. In TLS 1.3 all resumption needs tickets."
	whyLifetime   = "The seconds for which a session can be resumed: whoever gets its key can read what it protects."
	whyEarly      = "Early data can be replayed by anyone who has recorded it."
	whyHSTS       = "Browsers use HTTPS from then on, even if a link says http."
	whyH2         = "One connection, and so one handshake, for all requests of a client."
	whyStapling   = "The client need not ask the authority whether the certificate was revoked."
	whySendFile   = "Without kernel TLS this helps plain HTTP only: data to be encrypted passes through the server anyway."
	whyCompress   = "Compression of TLS reveals secrets (CRIME)."
	whyKernel     = "The kernel encrypts, so that sendfile needs no copy in the server."
)

const defaultLifetime = 86400 // seconds, if the policy is silent

// order returns the reason for the setting of the order, and reports whether the server's order
// decides. On a processor without AES, the server's order has ChaCha20 first.
func (g *generator) order() (server bool, reason, source string) {
	o := g.Policy.Order
	switch {
	case o.Value == "server":
		return true, "The server's order of suites decides, so that the best one is used that both have.", o.Source
	case o.Value == "client":
		return false, "The client's order decides, as it knows whether it has instructions for AES. All suites here are good.", o.Source
	}
	return true, "The policy leaves the order open. The server's decides, so that the best suite is used that both have.", ""
}

// lifetime returns the seconds for which sessions can be resumed.
func (g *generator) lifetime() (seconds, source string) {
	l := g.Policy.Resumption.Lifetime
	if l.Value == 0 {
		return strconv.Itoa(defaultLifetime), l.Source
	}
	return strconv.Itoa(l.Value), l.Source
}

// want reports whether a setting is wanted. An open one is: resumption is the larger gain.
func want(s policy.Setting) bool { return s.Value != "no" }

func yes(s policy.Setting) bool { return s.Value == "yes" }

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// tickets returns whether tickets are wanted. TLS 1.3 is resumed by tickets alone.
func (g *generator) tickets() (on bool, source string) {
	r := g.Policy.Resumption
	source = r.Tickets.Source
	if source == "" {
		source = r.TLS13.Source
	}
	return want(r.Tickets), source
}

func (g *generator) rotation(reason string) {
	if g.Policy.Resumption.Rotation.Value > 0 {
		g.remain("resumption.rotation", reason)
	}
}

func (g *generator) hsts() (header, source string) {
	h := g.Policy.Sockets.HSTS
	if h.Value == 0 {
		return "", ""
	}
	return "max-age=" + strconv.Itoa(h.Value), h.Source
}

// join joins the words that aren't empty.
func join(separator string, words ...string) string {
	var out []string
	for _, w := range words {
		if w != "" {
			out = append(out, w)
		}
	}
	return strings.Join(out, separator)
}
