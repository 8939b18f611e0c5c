// Package negotiate works out which versions, cipher suites, groups and signature algorithms a
// Context uses.
//
// It starts with an [Offer]: crypto/tls's choice in the running Go version, including GODEBUG
// settings. Then one [Filter] after the other takes IDs away: HTTP/2, FIPS mode, the library, which
// may lack some, and the host's policy. No filter adds an ID or changes their order. If the user
// has named an ID that a filter takes away, or if nothing is left, the filter returns a [Refusal],
// which names the field or option. But cipher suites and groups that the library lacks, or that are
// below the security level, are left out as an [Omission] if others that were named remain, because
// programs name suites and groups that only a newer OpenSSL or crypto/tls has.
package negotiate

import (
	"crypto/tls"
	"fmt"
	"slices"
	"sync"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/stdtls"
)

// A Refusal is the error for a field of a configuration, or an option, that can't be honoured.
type Refusal struct {
	Field  string // of tls.Config, or the name of an option
	Reason string
	Err    error // the cause, or nil
}

func (r *Refusal) Error() string {
	if r.Err != nil {
		return r.Field + ": " + r.Reason + ": " + r.Err.Error()
	}
	return r.Field + ": " + r.Reason
}

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Err }

// Asked is the part of a configuration that the user has named. Empty lists were not named.
type Asked struct {
	Config            *tls.Config // MinVersion, MaxVersion, CipherSuites, CurvePreferences
	CipherSuiteOrder  bool        // the order of Config.CipherSuites is the order of preference
	TLS13CipherSuites []uint16
	SignatureSchemes  []tls.SignatureScheme
	All               bool // nothing that was named may be left out
}

// An Omission is a part of a configuration that is left out, because the library lacks it or it is
// below the security level.
type Omission struct {
	Field  string // of tls.Config
	Name   string
	Reason string
}

// An Offer is the choice of a configuration, as IDs in order of preference.
type Offer struct {
	Versions               []uint16 // TLS 1.2, TLS 1.3 or both
	CipherSuites           []uint16 // for TLS 1.2
	TLS13CipherSuites      []uint16
	Groups                 []tls.CurveID
	SignatureSchemes       []tls.SignatureScheme
	ClientSignatureSchemes []tls.SignatureScheme // for the signatures of clients, if not SignatureSchemes
	Omitted                []Omission

	asked *Asked
}

// A Filter takes IDs away that one authority does not allow.
type Filter interface {
	// narrow removes IDs from the offer. It is called for each part in turn. The error is a
	// *Refusal.
	narrow(o *Offer, p part) error
}

// A part of an offer is narrowed by all filters before the next part: which groups a configuration
// can use depends on the versions, and these on the suites that are left.
type part int

const (
	versions part = iota
	suites
	groups
	signatures
)

// NewOffer returns the offer that the filters leave. The error is a [*Refusal].
func NewOffer(asked *Asked, filters ...Filter) (*Offer, error) {
	o, err := defaultOffer(asked)
	if err != nil {
		return nil, err
	}
	for p := versions; p <= signatures; p++ {
		for _, f := range filters {
			if err := f.narrow(o, p); err != nil {
				return nil, err
			}
		}
	}
	return o, nil
}

// defaultOffer returns crypto/tls's choice, changed by the options that replace parts of it.
func defaultOffer(asked *Asked) (*Offer, error) {
	hello, err := stdtls.DefaultHello(asked.Config)
	if err != nil {
		return nil, &Refusal{Field: "Config", Reason: "crypto/tls can't use it", Err: err}
	}
	o := &Offer{
		Versions:          Keep(hello.Versions, func(v uint16) bool { return v >= tls.VersionTLS12 }),
		CipherSuites:      Keep(hello.CipherSuites, func(id uint16) bool { return !libssl.IsTLS13Suite(id) }),
		TLS13CipherSuites: Keep(hello.CipherSuites, libssl.IsTLS13Suite),
		Groups:            slices.Clone(hello.Groups),
		SignatureSchemes:  slices.Clone(hello.SignatureSchemes),
		asked:             asked,
	}
	if len(o.Versions) == 0 {
		return nil, &Refusal{Field: "MinVersion", Reason: "leaves no version"}
	}
	if asked.CipherSuiteOrder {
		named := asked.Config.CipherSuites
		if len(named) == 0 {
			return nil, &Refusal{Field: "WithCipherSuiteOrder", Reason: "Config.CipherSuites has no suites"}
		}
		slices.SortStableFunc(o.CipherSuites, func(a, b uint16) int { return slices.Index(named, a) - slices.Index(named, b) })
	}
	if asked.TLS13CipherSuites != nil {
		o.TLS13CipherSuites = asked.TLS13CipherSuites
	}
	if asked.SignatureSchemes != nil {
		o.SignatureSchemes = asked.SignatureSchemes
	}
	return o, nil
}

// MinVersion returns the lowest version of the offer.
func (o *Offer) MinVersion() uint16 { return slices.Min(o.Versions) }

// MaxVersion returns the highest version of the offer.
func (o *Offer) MaxVersion() uint16 { return slices.Max(o.Versions) }

func (o *Offer) has(version uint16) bool { return slices.Contains(o.Versions, version) }

// namedCeiling returns the highest version that was named, or 0 if none was.
func (o *Offer) namedCeiling() uint16 { return o.asked.Config.MaxVersion }

// namedSuites returns the TLS 1.2 suites that were named. crypto/tls ignores other numbers in the
// field CipherSuites, such as TLS_FALLBACK_SCSV and TLS 1.3 suites.
func (o *Offer) namedSuites() []uint16 {
	return Keep(o.asked.Config.CipherSuites, func(id uint16) bool {
		return !libssl.IsTLS13Suite(id) && isSuite(id) && !o.omits("CipherSuites", tls.CipherSuiteName(id))
	})
}

// isSuite reports whether crypto/tls knows a suite.
func isSuite(id uint16) bool { return knownSuites()[id] }

var knownSuites = sync.OnceValue(func() map[uint16]bool {
	known := map[uint16]bool{}
	for _, s := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		known[s.ID] = true
	}
	return known
})

// namedGroups returns the groups that were named and that the versions of the offer can use.
// crypto/tls passes over numbers that it doesn't know.
func (o *Offer) namedGroups() []tls.CurveID {
	return Keep(o.asked.Config.CurvePreferences, func(id tls.CurveID) bool {
		return KnownGroup(id) && (o.has(tls.VersionTLS13) || !libssl.IsPostQuantum(id)) && !o.omits("CurvePreferences", id.String())
	})
}

// omits reports whether an ID was left out.
func (o *Offer) omits(field, name string) bool {
	return slices.ContainsFunc(o.Omitted, func(m Omission) bool { return m.Field == field && m.Name == name })
}

// OmitSuites leaves out the TLS 1.2 suites for which lack returns a reason.
func (o *Offer) OmitSuites(lack func(id uint16) string) error {
	return omit(o, "CipherSuites", &o.CipherSuites, o.namedSuites(), tls.CipherSuiteName, lack)
}

// omit removes from a list the IDs for which lack returns a reason. If such an ID was named, it is
// noted as omitted or, if all must be there or no other named ID is left, refused.
func omit[ID comparable](o *Offer, field string, list *[]ID, named []ID, name, lack func(ID) string) error {
	has := func(id ID) bool { return lack(id) == "" }
	*list = Keep(*list, has)
	must := o.asked.All || !slices.ContainsFunc(named, has)
	for _, id := range named {
		switch reason := lack(id); {
		case reason == "":
		case must:
			return &Refusal{Field: field, Reason: reason}
		default:
			o.Omitted = append(o.Omitted, Omission{field, name(id), reason})
		}
	}
	return nil
}

// dropVersions takes away the versions for which no cipher suite is left. refuse makes the error if
// no version is left.
func (o *Offer) dropVersions(refuse func(topic libssl.Topic, field, reason string) *Refusal) error {
	drop := func(version uint16) {
		o.Versions = Keep(o.Versions, func(v uint16) bool { return v != version })
	}
	if o.has(tls.VersionTLS12) && len(o.CipherSuites) == 0 {
		if !o.has(tls.VersionTLS13) {
			return refuse(libssl.TopicCipherSuites, "CipherSuites", "leaves no suite for TLS 1.2")
		}
		drop(tls.VersionTLS12)
	}
	if o.has(tls.VersionTLS13) && len(o.TLS13CipherSuites) == 0 {
		if !o.has(tls.VersionTLS12) {
			return refuse(libssl.TopicTLS13CipherSuites, "MinVersion", "leaves no suite for TLS 1.3")
		}
		drop(tls.VersionTLS13)
	}
	return nil
}

// checkGroups returns an error if the offer has no group.
func (o *Offer) checkGroups(refuse func(topic libssl.Topic, field, reason string) *Refusal) error {
	if len(o.Groups) == 0 {
		return refuse(libssl.TopicGroups, "CurvePreferences", "leaves no group")
	}
	return nil
}

// refuseAsked returns the error for a configuration that leaves nothing by itself.
func refuseAsked(_ libssl.Topic, field, reason string) *Refusal {
	return &Refusal{Field: field, Reason: reason}
}

// HTTP2 is the filter for HTTP/2. If the user has not named cipher suites, it leaves out the TLS
// 1.2 suites that HTTP/2 prohibits: RFC 9113, section 9.2.2.
type HTTP2 struct{}

func (HTTP2) narrow(o *Offer, p part) error {
	if p != suites {
		return nil
	}
	if o.asked.Config.CipherSuites == nil {
		o.CipherSuites = Keep(o.CipherSuites, isHTTP2Suite)
	}
	return o.dropVersions(refuseAsked)
}

// isHTTP2Suite reports whether HTTP/2 permits a TLS 1.2 suite. It permits those with forward
// secrecy and an AEAD; RFC 9113, appendix A, lists the others.
func isHTTP2Suite(id uint16) bool {
	switch id {
	case tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256:
		return true
	}
	return false
}

// IsHTTP2PSKSuite reports whether HTTP/2 permits a TLS 1.2 suite with pre-shared keys: those that are in OpenSSL.
func IsHTTP2PSKSuite(id uint16) bool { return id == 0xccac }

// Library is the filter for the OpenSSL that is loaded: it takes away the IDs that OpenSSL lacks.
type Library struct {
	FIPS bool // the library is the FIPS module
}

func (l Library) narrow(o *Offer, p part) error {
	switch p {
	case suites:
		return l.narrowSuites(o)
	case groups:
		return l.narrowGroups(o)
	case signatures:
		if scheme, ok := firstOutside(o.asked.SignatureSchemes, KnownSignature); ok {
			return &Refusal{Field: "WithSignatureAlgorithms", Reason: WhyNoSignature(scheme)}
		}
		if scheme, ok := firstOutside(o.asked.SignatureSchemes, o.canSign); ok {
			return &Refusal{Field: "WithSignatureAlgorithms", Reason: libssl.MLDSAName(scheme) + " requires TLS 1.3"}
		}
		o.SignatureSchemes = Keep(o.SignatureSchemes, KnownSignature)
	}
	return nil
}

func (l Library) narrowSuites(o *Offer) error {
	err := o.OmitSuites(func(id uint16) string {
		if knownSuite(id) {
			return ""
		}
		return "OpenSSL has no " + tls.CipherSuiteName(id)
	})
	if err != nil {
		return err
	}
	if id, ok := firstOutside(o.asked.TLS13CipherSuites, knownTLS13Suite); ok {
		return &Refusal{Field: "WithTLS13CipherSuites", Reason: fmt.Sprintf("%#04x is not a TLS 1.3 suite", id)}
	}
	o.TLS13CipherSuites = Keep(o.TLS13CipherSuites, knownTLS13Suite)
	return o.dropVersions(refuseAsked)
}

func (l Library) narrowGroups(o *Offer) error {
	err := omit(o, "CurvePreferences", &o.Groups, o.namedGroups(), tls.CurveID.String, func(id tls.CurveID) string {
		if libssl.HasGroup(id, l.FIPS) {
			return ""
		}
		return id.String() + " is not in this OpenSSL"
	})
	if err != nil {
		return err
	}
	return o.checkGroups(refuseAsked)
}

func knownSuite(id uint16) bool { return libssl.SuiteName(id) != "" }

func knownTLS13Suite(id uint16) bool { return libssl.IsTLS13Suite(id) && knownSuite(id) }

// KnownGroup reports whether this package can offer a group. An offer has only those that crypto/tls
// has, and before Go 1.27, which also brought ML-DSA, that has no MLKEM1024.
func KnownGroup(id tls.CurveID) bool {
	return libssl.GroupName(id) != "" && (id != libssl.MLKEM1024 || libssl.GoHasMLDSA)
}

// KnownSignature reports whether OpenSSL has a signature algorithm that Go can verify. The library
// must be loaded.
func KnownSignature(id tls.SignatureScheme) bool {
	return libssl.HasSignature(id, false) && (libssl.GoHasMLDSA || !libssl.IsMLDSA(id))
}

// WhyNoSignature returns the reason why KnownSignature returns false.
func WhyNoSignature(id tls.SignatureScheme) string {
	name := libssl.MLDSAName(id)
	switch {
	case name == "":
		return fmt.Sprintf("%v is not in OpenSSL", id)
	case !libssl.GoHasMLDSA:
		return name + " requires Go 1.27 or later"
	}
	return name + " requires OpenSSL 3.5 or later"
}

// canSign reports whether a version of the offer can use a signature algorithm.
func (o *Offer) canSign(id tls.SignatureScheme) bool {
	return o.has(tls.VersionTLS13) || !libssl.IsMLDSA(id)
}

// Keep returns the IDs of a list that are wanted, in their order. The list is not changed.
func Keep[ID any](list []ID, wanted func(ID) bool) (left []ID) {
	for i, id := range list {
		if wanted(id) {
			if left == nil {
				left = make([]ID, 0, len(list)-i)
			}
			left = append(left, id)
		}
	}
	return left
}

// firstOutside returns the first ID of a list that is not allowed.
func firstOutside[ID any](list []ID, allowed func(ID) bool) (id ID, ok bool) {
	for _, id := range list {
		if !allowed(id) {
			return id, true
		}
	}
	return id, false
}
