package negotiate

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/ossl-go/ossl/internal/libssl"
)

// DefaultSecurityLevel is OpenSSL's level for 112 bits of security, the default of 3.x:
// SSL_CTX_set_security_level(3).
const DefaultSecurityLevel = 2

// A Policy is the public part of a host's policy. It has the fields of ossl.HostPolicy, which
// documents them.
type Policy struct {
	ConfigFile string
	Commands   []string

	MinVersion, MaxVersion uint16
	SecurityLevel          int

	CipherSuites           []uint16
	TLS13CipherSuites      []uint16
	Groups                 []tls.CurveID
	SignatureSchemes       []tls.SignatureScheme
	ClientSignatureSchemes []tls.SignatureScheme
	NoSessionTickets       bool

	Err error
}

// A Host is the filter of the host's OpenSSL configuration. A nil Host restricts nothing.
type Host struct {
	Policy
	commands []libssl.HostCommand
	pads     bool     // records are padded
	level    int      // the security level that the commands set, or 0
	psk      []uint16 // the TLS 1.2 suites with pre-shared keys that it allows, nil for all

	// Dropped is the reason why OpenSSL is not as the configuration has it, except for TLS, or nil: a
	// [*Refusal]. It does not concern Contexts in FIPS mode, which have a library context of their own.
	Dropped error
}

// IsEmpty reports whether the host has no policy.
func (h *Host) IsEmpty() bool { return h.commands == nil && h.Err == nil }

// HostCommands returns the commands that Contexts carry out.
func (h *Host) HostCommands() []libssl.HostCommand {
	if h == nil {
		return nil
	}
	return h.commands
}

// Pads reports whether records are padded, which only libssl does.
func (h *Host) Pads() bool { return h != nil && h.pads }

// AllowsPSK reports whether the policy allows a TLS 1.2 suite with pre-shared keys.
func (h *Host) AllowsPSK(id uint16) bool { return h == nil || allow(h.psk)(id) }

// about returns the commands about a topic.
func (h *Host) about(topic libssl.Topic) []libssl.HostCommand {
	return Keep(h.commands, func(c libssl.HostCommand) bool { return topic != libssl.TopicOther && c.Topic() == topic })
}

// Refuse returns the error for something that the policy forbids. It names the commands about
// topic; if topic is TopicOther, none.
func (h *Host) Refuse(topic libssl.Topic, field, reason string) *Refusal {
	cited := h.ConfigFile
	for _, c := range h.about(topic) {
		cited += ", " + c.String()
	}
	return &Refusal{Field: field, Reason: fmt.Sprintf("the host's OpenSSL policy (%s): %s. WithoutHostPolicy() ignores it",
		cited, reason)}
}

// blame is Refuse for a list of IDs. If no command is about the list, the error names the commands
// about cipher suites, which can set the security level too.
func (h *Host) blame(topic libssl.Topic, field, reason string) *Refusal {
	if len(h.about(topic)) == 0 {
		topic = libssl.TopicCipherSuites
	}
	return h.Refuse(topic, field, "it "+reason)
}

// allow reports whether id is in a list of the policy. A nil list allows everything.
func allow[ID comparable](allowed []ID) func(id ID) bool {
	return func(id ID) bool { return allowed == nil || slices.Contains(allowed, id) }
}

// narrow leaves the versions and IDs that the policy allows. If the user has named an ID that the
// policy forbids, narrow refuses it. Of two bounds on versions, the stricter one is in force.
func (h *Host) narrow(o *Offer, p part) error {
	if h == nil {
		return nil
	}
	switch p {
	case versions:
		return h.narrowVersions(o)
	case suites:
		return h.narrowSuites(o)
	case groups:
		return h.narrowGroups(o)
	default:
		return h.narrowSignatures(o)
	}
}

func (h *Host) narrowVersions(o *Offer) error {
	left := Keep(o.Versions, func(v uint16) bool { return v >= h.MinVersion && v <= h.MaxVersion })
	if len(left) == 0 {
		field, allowed := "MinVersion", tls.VersionName(h.MaxVersion)+" and below"
		if ceiling := o.namedCeiling(); ceiling != 0 && ceiling < h.MinVersion {
			field, allowed = "MaxVersion", tls.VersionName(h.MinVersion)+" and above"
		}
		return h.Refuse(libssl.TopicVersions, field, "it allows "+allowed)
	}
	o.Versions = left
	return nil
}

func (h *Host) narrowSuites(o *Offer) error {
	allowsSuite, allowsSuite13 := allow(h.CipherSuites), allow(h.TLS13CipherSuites)
	if id, ok := firstOutside(o.namedSuites(), allowsSuite); ok && o.has(tls.VersionTLS12) {
		return h.Refuse(libssl.TopicCipherSuites, "CipherSuites", "it forbids "+tls.CipherSuiteName(id))
	}
	o.CipherSuites = Keep(o.CipherSuites, allowsSuite)
	if id, ok := firstOutside(o.asked.TLS13CipherSuites, allowsSuite13); ok && o.has(tls.VersionTLS13) {
		name := libssl.SuiteName(id)
		if name == "" {
			name = tls.CipherSuiteName(id)
		}
		return h.blame(libssl.TopicTLS13CipherSuites, "WithTLS13CipherSuites", "forbids "+name)
	}
	o.TLS13CipherSuites = Keep(o.TLS13CipherSuites, allowsSuite13)
	return o.dropVersions(h.blame)
}

func (h *Host) narrowGroups(o *Offer) error {
	allowsGroup := allow(h.Groups)
	if id, ok := firstOutside(o.namedGroups(), allowsGroup); ok {
		return h.blame(libssl.TopicGroups, "CurvePreferences", "forbids "+libssl.GroupName(id))
	}
	if o.Groups = Keep(o.Groups, allowsGroup); len(o.Groups) == 0 {
		return h.blame(libssl.TopicGroups, "CurvePreferences", "leaves no group")
	}
	return nil
}

func (h *Host) narrowSignatures(o *Offer) error {
	if len(o.SignatureSchemes) == 0 {
		return nil
	}
	allowsSignature := allow(h.SignatureSchemes)
	if scheme, ok := firstOutside(o.asked.SignatureSchemes, allowsSignature); ok {
		return h.blame(libssl.TopicSignatures, "WithSignatureAlgorithms", "forbids "+scheme.String())
	}
	if o.SignatureSchemes = Keep(o.SignatureSchemes, allowsSignature); len(o.SignatureSchemes) == 0 {
		return h.blame(libssl.TopicSignatures, "WithSignatureAlgorithms", "leaves no signature algorithm")
	}
	if h.ClientSignatureSchemes == nil {
		return nil
	}
	if o.ClientSignatureSchemes = Keep(o.SignatureSchemes, allow(h.ClientSignatureSchemes)); len(o.ClientSignatureSchemes) == 0 {
		return h.Refuse(libssl.TopicClientSignatures, "WithSignatureAlgorithms", "it leaves clients no signature algorithm")
	}
	return nil
}

// raisesLevel reports whether the policy has a security level above the default, and the user has
// named none.
func (h *Host) raisesLevel(level int, named bool) bool { return h != nil && !named && h.level > level }

// Level returns the security level of a Context. level is the one that the user has named, or the
// default.
func (h *Host) Level(level int, named bool) (int, error) {
	switch {
	case h == nil || h.level <= level:
		return level, nil
	case h.raisesLevel(level, named):
		return h.level, nil
	}
	return 0, h.Refuse(libssl.TopicCipherSuites, "WithSecurityLevel", fmt.Sprintf("it asks for level %d", h.level))
}

// ExplainCertificate returns the error for a certificate that libssl refuses with err. weakness is
// the reason why the level doesn't admit it, or "". If the policy does not raise the security
// level, it is not the reason, and ExplainCertificate returns nil.
func (h *Host) ExplainCertificate(field, weakness string, err error, level int, named bool) *Refusal {
	if !h.raisesLevel(level, named) {
		return nil
	}
	reason := fmt.Sprintf("OpenSSL does not accept it at the policy's security level %d", h.level)
	if weakness != "" {
		reason = "it sets the security level: " + weakness + "; use a stronger certificate"
	}
	r := h.Refuse(libssl.TopicCipherSuites, field, reason)
	r.Err = err
	return r
}

// ForCertificate returns the certificate's signature algorithms that the policy allows. Both roles
// may use the certificate.
func (h *Host) ForCertificate(schemes []tls.SignatureScheme) ([]tls.SignatureScheme, error) {
	if h == nil || len(schemes) == 0 {
		return schemes, nil
	}
	left := Keep(Keep(schemes, allow(h.SignatureSchemes)), allow(h.ClientSignatureSchemes))
	if len(left) == 0 {
		return nil, errors.New("the host's OpenSSL policy leaves none of SupportedSignatureAlgorithms")
	}
	return left, nil
}

// refuseAll returns the error for a policy that can't be honoured at all.
func (h *Host) refuseAll(topic libssl.Topic, reason string, err error) *Refusal {
	if lacksMemory(err) {
		return h.refuseNow(err)
	}
	r := h.Refuse(topic, HostPolicyField, reason)
	r.Err = err
	return r
}

// lacksMemory reports whether memory was short, which is no fault of the policy.
func lacksMemory(err error) bool {
	var e *libssl.Error
	return errors.Is(err, syscall.ENOMEM) || errors.As(err, &e) && e.NoMemory()
}

// refuseNow returns the error for a policy that can't be determined now.
func (h *Host) refuseNow(err error) *Refusal {
	return &Refusal{Field: HostPolicyField, Err: err,
		Reason: fmt.Sprintf("the host's OpenSSL policy (%s) is unknown; try again", h.ConfigFile)}
}

// HostPolicyField is the Field of a Refusal that concerns no field of a configuration.
const HostPolicyField = "HostPolicy"

// ReadHost reads the policy of the library that is loaded. If it can't be honoured, the policy's
// Err is set, to a [*Refusal].
func ReadHost() *Host {
	h := &Host{Policy: Policy{
		ConfigFile:    libssl.ConfigFile(),
		MinVersion:    tls.VersionTLS12,
		MaxVersion:    tls.VersionTLS13,
		SecurityLevel: DefaultSecurityLevel,
	}}
	config, fault := libssl.HostConfig()
	defer config.Close()
	if fault != nil {
		h.Err = RefuseFault(fault)
	}
	if config == nil {
		return h
	}
	var err error
	if h.commands, err = config.Commands(); err != nil {
		switch {
		case h.Err != nil:
		case lacksMemory(err):
			h.Err = h.refuseNow(err)
		case errors.Is(err, libssl.ErrNoContext):
			h.Err = &Refusal{Field: HostPolicyField, Reason: h.ConfigFile, Err: err}
		default:
			h.Err = h.Refuse(libssl.TopicOther, HostPolicyField, err.Error())
		}
		return h
	}
	var refused []string
	for _, c := range h.commands {
		h.Commands = append(h.Commands, c.String())
		if !c.Done {
			refused = append(refused, c.String())
		}
	}
	dropped, err := config.Dropped()
	switch {
	case err != nil:
		h.Dropped = h.refuseNow(err)
	case dropped != nil:
		h.Dropped = &Refusal{Field: HostPolicyField, Reason: fmt.Sprintf("the host's OpenSSL configuration (%s) is not in force: %s. "+
			"Mend it and restart the process; WithoutHostPolicy() ignores it", h.ConfigFile, strings.Join(dropped, ", "))}
	}
	switch {
	case h.Err != nil || h.commands == nil:
	case refused != nil:
		h.Err = h.Refuse(libssl.TopicOther, HostPolicyField, "this OpenSSL does not carry out "+strings.Join(refused, ", "))
	default:
		if err := h.probe(); err != nil {
			h.Err = err // not a nil *Refusal in an interface
		}
	}
	return h
}

// RefuseFault returns the error for a configuration that can't be relied on.
func RefuseFault(fault *libssl.ConfigFault) *Refusal {
	if fault.HidesFIPS() {
		return &Refusal{Field: HostPolicyField, Reason: fmt.Sprintf(
			"the host's OpenSSL policy (%s) is unknown, and so is whether it asks for FIPS mode", fault.File), Err: fault}
	}
	if why, err := libssl.FIPSByHost(); why != "" || err != nil { // which WithoutHostPolicy doesn't lift
		return &Refusal{Field: HostPolicyField, Reason: fmt.Sprintf("the host's OpenSSL policy (%s)", fault.File), Err: fault}
	}
	h := &Host{Policy: Policy{ConfigFile: fault.File}}
	return h.Refuse(libssl.TopicOther, HostPolicyField, fault.What())
}
