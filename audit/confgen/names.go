package confgen

import (
	"slices"
	"strings"

	"github.com/ossl-go/ossl/policy"
	"github.com/ossl-go/ossl/tlsnames"
)

// entry returns the entry with a name, and the first OpenSSL that has it.
func entry(r *tlsnames.Registry, name string) (e tlsnames.Entry, since Version) {
	if id, ok := r.ID(name); ok {
		e, _ = r.Lookup(id)
		since, _ = ParseVersion(e.Since)
	}
	return e, since
}

// suites12 returns the TLS 1.2 suites by OpenSSL's names. ChaCha20 comes first on a processor
// without AES.
func (g *generator) suites12() (list, source string) {
	values := g.chachaFirst(current(g.Policy.Suites12, g.At))
	var names []string
	for _, v := range values {
		name := tlsnames.OpenSSLSuite(v.Name)
		if name == "" {
			g.remain("suites12", "OpenSSL has no "+v.Name)
			continue
		}
		names = append(names, name)
	}
	return strings.Join(names, ":"), sources(values)
}

func (g *generator) suites13() (list, source string) {
	values := g.chachaFirst(current(g.Policy.Suites13, g.At))
	var names []string
	for _, v := range values {
		names = append(names, v.Name)
	}
	return strings.Join(names, ":"), sources(values)
}

func (g *generator) chachaFirst(values []policy.Value) []policy.Value {
	if !g.NoAES {
		return values
	}
	values = slices.Clone(values)
	slices.SortStableFunc(values, func(a, b policy.Value) int {
		rank := func(v policy.Value) int {
			if strings.Contains(v.Name, "CHACHA20") {
				return 0
			}
			return 1
		}
		return rank(a) - rank(b)
	})
	return values
}

// groups returns the groups as OpenSSL's names, and lists those that this OpenSSL doesn't have.
func (g *generator) groups() (list, source, needs string) {
	values := current(g.Policy.Groups, g.At)
	var names []string
	var since Version
	for _, v := range values {
		group, first := entry(tlsnames.Groups, v.Name)
		switch {
		case group.OpenSSL == "":
			g.remain("groups", "OpenSSL has no group "+v.Name)
		case g.Server.OpenSSL.Before(first):
			g.remain("groups", v.Name+" needs OpenSSL "+first.String()+"; this server runs with "+g.Server.OpenSSL.String())
		default:
			names = append(names, group.OpenSSL)
			if since.Before(first) {
				since = first
			}
		}
	}
	if since != (Version{}) {
		needs = "OpenSSL " + since.String()
	}
	return strings.Join(names, ":"), sources(values), needs
}

// signatures returns the signature schemes. OpenSSL knows IANA's names since 1.1.1.
func (g *generator) signatures() (list, source string) {
	values := current(g.Policy.Signatures, g.At)
	var names []string
	for _, v := range values {
		if _, since := entry(tlsnames.SignatureSchemes, v.Name); g.Server.OpenSSL.Before(since) {
			g.remain("signatures", v.Name+" needs OpenSSL "+since.String())
			continue
		}
		names = append(names, v.Name)
	}
	return strings.Join(names, ":"), sources(values)
}
