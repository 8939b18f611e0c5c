package confgen

import (
	"slices"
	"strings"

	"github.com/ossl-go/ossl/policy"
)

// opensslSuite returns OpenSSL's name of a cipher suite of TLS 1.2, from IANA's.
func opensslSuite(name string) string {
	exchange, cipher, ok := strings.Cut(strings.TrimPrefix(name, "TLS_"), "_WITH_")
	if !ok {
		return name
	}
	for _, r := range [][2]string{{"AES_128", "AES128"}, {"AES_256", "AES256"}, {"CAMELLIA_128", "CAMELLIA128"},
		{"CAMELLIA_256", "CAMELLIA256"}, {"ARIA_128", "ARIA128"}, {"ARIA_256", "ARIA256"},
		{"3DES_EDE_CBC", "DES-CBC3"}, {"_CBC_", "_"}, {"CCM_8", "CCM8"}} {
		cipher = strings.Replace(cipher, r[0], r[1], 1)
	}
	if strings.HasPrefix(cipher, "CHACHA20") {
		cipher = strings.TrimSuffix(cipher, "_SHA256")
	}
	// ARIA's GCM suites have the exchange ECDHE-ARIA128-GCM-SHA256 for RSA.
	if strings.HasPrefix(cipher, "ARIA") && exchange == "ECDHE_RSA" {
		exchange = "ECDHE"
	}
	if strings.HasPrefix(cipher, "CAMELLIA") && strings.Contains(cipher, "_GCM_") ||
		strings.HasPrefix(cipher, "ARIA") && strings.Contains(name, "_CBC_") {
		return "" // OpenSSL has Camellia with CBC only, and ARIA with GCM only
	}
	out := strings.ReplaceAll(cipher, "_", "-")
	if exchange != "RSA" {
		out = strings.ReplaceAll(exchange, "_", "-") + "-" + out
	}
	return out
}

// opensslGroups are OpenSSL's names of groups, and the version that has them, by IANA's names in
// lower case.
var opensslGroups = map[string]struct {
	name  string
	since Version
}{
	"x25519": {"X25519", Version{1, 1, 0}}, "x448": {"X448", Version{1, 1, 1}},
	"secp224r1": {"secp224r1", Version{}}, "secp256r1": {"prime256v1", Version{}},
	"secp384r1": {"secp384r1", Version{}}, "secp521r1": {"secp521r1", Version{}},
	"brainpoolp256r1": {"brainpoolP256r1", Version{1, 0, 2}}, "brainpoolp384r1": {"brainpoolP384r1", Version{1, 0, 2}},
	"brainpoolp512r1":      {"brainpoolP512r1", Version{1, 0, 2}},
	"brainpoolp256r1tls13": {"brainpoolP256r1tls13", Version{3, 2, 0}}, "brainpoolp384r1tls13": {"brainpoolP384r1tls13",
		Version{3, 2, 0}},
	"brainpoolp512r1tls13": {"brainpoolP512r1tls13", Version{3, 2, 0}},
	"ffdhe2048":            {"ffdhe2048", Version{3, 0, 0}}, "ffdhe3072": {"ffdhe3072", Version{3, 0, 0}},
	"ffdhe4096": {"ffdhe4096", Version{3, 0, 0}}, "ffdhe6144": {"ffdhe6144", Version{3, 0, 0}},
	"ffdhe8192":      {"ffdhe8192", Version{3, 0, 0}},
	"x25519mlkem768": {"X25519MLKEM768", Version{3, 5, 0}}, "secp256r1mlkem768": {"SecP256r1MLKEM768", Version{3, 5, 0}},
	"secp384r1mlkem1024": {"SecP384r1MLKEM1024", Version{3, 5, 0}},
	"mlkem512":           {"MLKEM512", Version{3, 5, 0}}, "mlkem768": {"MLKEM768", Version{3, 5, 0}},
	"mlkem1024": {"MLKEM1024", Version{3, 5, 0}}, "curvesm2": {"SM2", Version{3, 2, 0}},
}

// signatureSince are the versions of OpenSSL that have a signature scheme, if not all that have TLS 1.3.
var signatureSince = map[string]Version{
	"mldsa44": {3, 5, 0}, "mldsa65": {3, 5, 0}, "mldsa87": {3, 5, 0},
	"ecdsa_brainpoolP256r1tls13_sha256": {3, 2, 0}, "ecdsa_brainpoolP384r1tls13_sha384": {3, 2, 0},
	"ecdsa_brainpoolP512r1tls13_sha512": {3, 2, 0},
}

// suites12 returns the suites of TLS 1.2 as OpenSSL's names. ChaCha20 comes first on a processor
// without AES.
func (g *generator) suites12() (list, source string) {
	values := g.chachaFirst(current(g.Policy.Suites12, g.At))
	var names []string
	for _, v := range values {
		name := opensslSuite(v.Name)
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
		group, known := opensslGroups[strings.ToLower(v.Name)]
		switch {
		case !known:
			g.remain("groups", "OpenSSL has no group "+v.Name)
		case g.Server.OpenSSL.Before(group.since):
			g.remain("groups", v.Name+" needs OpenSSL "+group.since.String()+"; this server runs with "+g.Server.OpenSSL.String())
		default:
			names = append(names, group.name)
			if since.Before(group.since) {
				since = group.since
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
		if since := signatureSince[v.Name]; g.Server.OpenSSL.Before(since) {
			g.remain("signatures", v.Name+" needs OpenSSL "+since.String())
			continue
		}
		names = append(names, v.Name)
	}
	return strings.Join(names, ":"), sources(values)
}
