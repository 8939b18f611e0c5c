package libssl

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ossl-go/ossl/tlsnames"
)

// suiteNames are the names of cipher suites in OpenSSL's configuration strings. For TLS 1.2 they
// are crypto/tls's suites, except RC4, which no supported OpenSSL has: SSL_CTX_set_cipher_list(3),
// openssl-ciphers(1). For TLS 1.3 they are all OpenSSL suites, including CCM, which crypto/tls
// lacks: SSL_CTX_set_ciphersuites(3).
var suiteNames = sync.OnceValue(func() map[uint16]string {
	names := map[uint16]string{}
	for _, s := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		if !strings.Contains(s.Name, "_RC4_") {
			names[s.ID] = tlsnames.OpenSSLSuite(s.Name)
		}
	}
	for id := tls.TLS_AES_128_GCM_SHA256; id <= 0x1305; id++ { // RFC 8446, appendix B.4
		names[id] = tlsnames.CipherSuites.Name(id)
	}
	return names
})

// groupNames are the key exchange groups: SSL_CTX_set1_groups_list(3). Curves have NIST's names.
var groupNames = sync.OnceValue(func() map[tls.CurveID]string {
	return goNames[tls.CurveID](tlsnames.Groups, func(e tlsnames.Entry) string { return strings.Replace(e.Go, "CurveP", "P-", 1) })
})

// signatureNames are the signature algorithms: SSL_CTX_set1_sigalgs_list(3).
var signatureNames = sync.OnceValue(func() map[tls.SignatureScheme]string {
	return goNames[tls.SignatureScheme](tlsnames.SignatureSchemes, func(e tlsnames.Entry) string { return e.OpenSSL })
})

// goNames returns OpenSSL's names of the entries that crypto/tls has, perhaps in a later Go.
func goNames[ID ~uint16](r *tlsnames.Registry, name func(tlsnames.Entry) string) map[ID]string {
	names := map[ID]string{}
	for e := range r.All() {
		if e.Go != "" {
			names[ID(e.ID)] = name(e)
		}
	}
	return names
}

// MLKEM1024 is crypto/tls's group of this name, which Go has from 1.27 on.
const MLKEM1024 tls.CurveID = 0x0202

// SuiteName returns OpenSSL's name for a cipher suite, or "" if it is unknown.
func SuiteName(id uint16) string { return suiteNames()[id] }

// GroupName returns OpenSSL's name for a key exchange group, or "" if it is unknown.
func GroupName(id tls.CurveID) string { return groupNames()[id] }

// SignatureName returns OpenSSL's name for a signature algorithm, or "" if it is unknown.
func SignatureName(id tls.SignatureScheme) string { return signatureNames()[id] }

// Suites returns all known cipher suites of a version, TLS 1.2 or TLS 1.3.
func Suites(version uint16) []uint16 {
	return slices.DeleteFunc(known(suiteNames()), func(id uint16) bool {
		return IsTLS13Suite(id) != (version == tls.VersionTLS13)
	})
}

// Groups returns the known key exchange groups that the library has. The library must be loaded.
func Groups() []tls.CurveID {
	return slices.DeleteFunc(known(groupNames()), func(id tls.CurveID) bool { return !HasGroup(id, false) })
}

// SignatureSchemes returns the known signature algorithms that the library has. The library must be
// loaded.
func SignatureSchemes() []tls.SignatureScheme {
	return slices.DeleteFunc(known(signatureNames()), func(id tls.SignatureScheme) bool { return !HasSignature(id, false) })
}

// known returns the IDs in a table of names, in the order of the names.
func known[ID comparable](names map[ID]string) []ID {
	var ids []ID
	for id := range names {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b ID) int { return strings.Compare(names[a], names[b]) })
	return ids
}

// IsTLS13Suite reports whether a cipher suite is a TLS 1.3 suite: RFC 8446, appendix B.4.
func IsTLS13Suite(id uint16) bool { return id>>8 == 0x13 }

// isHybrid reports whether a group is a post-quantum hybrid.
func isHybrid(id tls.CurveID) bool { return id > 0x1000 }

// IsPostQuantum reports whether a group is post-quantum. Only TLS 1.3 has such groups, and OpenSSL
// from 3.5 on.
func IsPostQuantum(id tls.CurveID) bool { return isHybrid(id) || id>>8 == MLKEM1024>>8 }

// namesInLibrary are the answers of HasGroup and HasSignature for the one library of the process, and
// namesInModule those for its FIPS module: nil until all names were tried.
var namesInLibrary, namesInModule atomic.Pointer[names]

type names struct {
	groups     map[tls.CurveID]bool
	signatures map[tls.SignatureScheme]bool // of ML-DSA
}

// AskNames finds out which groups and signature algorithms the library has or, in FIPS mode, the
// module, for HasGroup and HasSignature, which report false for all of these while AskNames returns
// an error.
func AskNames(fips bool) error {
	_, err := namesOf(fips)
	return err
}

func namesOf(fips bool) (*names, error) {
	known := &namesInLibrary
	if fips {
		known = &namesInModule
	}
	if n := known.Load(); n != nil {
		return n, nil
	}
	n, err := askNames(fips)
	if err != nil {
		return new(names), err
	}
	known.Store(n)
	return n, nil
}

func askNames(fips bool) (*names, error) {
	ids := known(groupNames())
	if !fips {
		ids = slices.DeleteFunc(ids, func(id tls.CurveID) bool { return !IsPostQuantum(id) })
	}
	var groups, signatures []string
	for _, id := range ids {
		groups = append(groups, groupNames()[id])
	}
	var schemes []tls.SignatureScheme
	if AtLeast(Version3_5) { // before, OpenSSL has none
		schemes = []tls.SignatureScheme{MLDSA44, MLDSA65, MLDSA87}
	}
	for _, scheme := range schemes {
		signatures = append(signatures, signatureNames()[scheme])
	}
	answers, err := ask(groups, signatures, fips)
	if err != nil {
		return nil, err
	}
	has := &names{map[tls.CurveID]bool{}, map[tls.SignatureScheme]bool{}}
	for i, id := range ids {
		has.groups[id] = answers[i]
	}
	for i, scheme := range schemes {
		has.signatures[scheme] = answers[len(ids)+i]
	}
	return has, nil
}

// HasGroup reports whether a group is known and the library has it or, in FIPS mode, the module.
// Every supported library has all groups but the post-quantum ones. The library must be loaded.
func HasGroup(id tls.CurveID, fips bool) bool {
	name := groupNames()[id]
	if name == "" || !fips && !IsPostQuantum(id) {
		return name != ""
	}
	n, _ := namesOf(fips)
	return n.groups[id]
}

// HasSignature reports whether a signature algorithm is known and the library has it or, in FIPS
// mode, the module. Every supported library has all algorithms but ML-DSA's. The library must be
// loaded, and FIPS mode set up.
func HasSignature(scheme tls.SignatureScheme, fips bool) bool {
	switch {
	case signatureNames()[scheme] == "":
		return false
	case IsMLDSA(scheme):
		n, _ := namesOf(fips)
		return n.signatures[scheme]
	}
	return !fips || scheme != tls.Ed25519 || fipsHasEd25519()
}

// fipsHasEd25519 is asked once FIPS mode is set up, and not before. The module doesn't change.
var fipsHasEd25519 = sync.OnceValue(func() bool { return fipsHasSignature("ED25519") })

// list joins the names of ids with colons, as OpenSSL's settings have them. It returns an error if
// one has no name.
func list[ID comparable](ids []ID, names map[ID]string) (string, error) {
	parts := make([]string, len(ids))
	for i, id := range ids {
		if parts[i] = names[id]; parts[i] == "" {
			return "", fmt.Errorf("libssl: no name for %v", id)
		}
	}
	return strings.Join(parts, ":"), nil
}

// settingLists are the lists of a ContextConfig in the syntax of OpenSSL's settings.
type settingLists struct {
	suites, suites13, groups, signatures, clientSignatures string

	psk   string    // for TLS 1.2
	psk13 [2]string // with SHA-256, and with SHA-384
}

func (cfg *ContextConfig) lists() (l settingLists, err error) {
	if l.suites, err = list(cfg.CipherSuites, suiteNames()); err != nil {
		return l, err
	}
	if l.suites13, err = list(cfg.TLS13CipherSuites, suiteNames()); err != nil {
		return l, err
	}
	if l.groups, err = groupList(cfg.Groups); err != nil {
		return l, err
	}
	if l.signatures, err = list(cfg.SignatureSchemes, signatureNames()); err != nil {
		return l, err
	}
	if l.clientSignatures, err = list(cfg.ClientSignatureSchemes, signatureNames()); err != nil || cfg.PSK == nil {
		return l, err
	}
	return l, cfg.pskLists(&l)
}

// pskLists makes the lists of connections with pre-shared keys.
func (cfg *ContextConfig) pskLists(l *settingLists) (err error) {
	if l.psk, err = list(cfg.PSK.CipherSuites, pskNames()); err != nil {
		return err
	}
	switch {
	case l.psk == "":
	case cfg.PSK.Alone || l.suites == "":
		l.suites = l.psk
	default:
		l.suites = l.psk + ":" + l.suites
	}
	for i, sha384 := range []bool{false, true} {
		ids := slices.DeleteFunc(slices.Clone(cfg.TLS13CipherSuites), func(id uint16) bool { return HasSHA384(id) != sha384 })
		if l.psk13[i], err = list(ids, suiteNames()); err != nil {
			return err
		}
	}
	return nil
}

// pskSuites are TLS 1.2 suites with pre-shared keys, in order of preference: first those with ECDHE.
var pskSuites = []uint16{
	0xccac, // TLS_ECDHE_PSK_WITH_CHACHA20_POLY1305_SHA256
	0xc037, // TLS_ECDHE_PSK_WITH_AES_128_CBC_SHA256
	0xc038, // TLS_ECDHE_PSK_WITH_AES_256_CBC_SHA384
	0x00a8, // TLS_PSK_WITH_AES_128_GCM_SHA256
	0x00a9, // TLS_PSK_WITH_AES_256_GCM_SHA384
	0xccab, // TLS_PSK_WITH_CHACHA20_POLY1305_SHA256
	0xc0a4, // TLS_PSK_WITH_AES_128_CCM
	0xc0a8, // TLS_PSK_WITH_AES_128_CCM_8
	0x00ae, // TLS_PSK_WITH_AES_128_CBC_SHA256
}

var pskNames = sync.OnceValue(func() map[uint16]string {
	names := map[uint16]string{}
	for _, id := range pskSuites {
		names[id] = tlsnames.OpenSSLSuite(tlsnames.CipherSuites.Name(id))
	}
	return names
})

// PSKSuites returns the TLS 1.2 suites with pre-shared keys that connections can use.
func PSKSuites() []uint16 { return slices.Clone(pskSuites) }

// PSKSuiteHasECDHE reports whether a suite of PSKSuites has forward secrecy.
func PSKSuiteHasECDHE(id uint16) bool { return strings.HasPrefix(pskNames()[id], "ECDHE-") }

// HasSHA384 reports whether the hash of a TLS 1.3 suite is SHA-384. That of all others is SHA-256.
func HasSHA384(id uint16) bool { return id == tls.TLS_AES_256_GCM_SHA384 }

// groupList is list for groups. If OpenSSL is 3.5 or later and a hybrid comes first, it marks the
// groups for which a client sends key shares at once: the first hybrid and the first other group,
// as crypto/tls does, since most servers without the hybrid have X25519 or P-256. Otherwise OpenSSL
// sends one for the first group.
func groupList(ids []tls.CurveID) (string, error) {
	joined, err := list(ids, groupNames())
	if err != nil || len(ids) == 0 || !isHybrid(ids[0]) || !AtLeast(Version3_5) {
		return joined, err
	}
	parts := strings.Split(joined, ":")
	parts[0] = "*" + parts[0]
	if plain := slices.IndexFunc(ids, func(id tls.CurveID) bool { return !IsPostQuantum(id) }); plain >= 0 {
		parts[plain] = "*" + parts[plain]
	}
	return strings.Join(parts, ":"), nil
}
