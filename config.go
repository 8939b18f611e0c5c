package ossl

import (
	"crypto/tls"
	"encoding/asn1"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/stdtls"
)

// configFields says for every field of tls.Config what becomes of it. A field that is not here, of a newer Go, is refused if it
// is set. docs/COMPATIBILITY.md has a row for each.
var configFields = map[string]func(c *tls.Config) error{
	"Rand":                                refuseSet("OpenSSL draws its own random numbers"),
	"Time":                                nil,
	"Certificates":                        nil, // newCredential
	"NameToCertificate":                   nil,
	"GetCertificate":                      nil,
	"GetClientCertificate":                nil,
	"GetConfigForClient":                  nil,
	"VerifyPeerCertificate":               nil,
	"VerifyConnection":                    nil,
	"RootCAs":                             nil,
	"NextProtos":                          checkNextProtos,
	"ServerName":                          func(c *tls.Config) error { return checkServerName(c.ServerName) }, // clients' too
	"ClientAuth":                          checkClientAuth,
	"ClientCAs":                           nil,
	"InsecureSkipVerify":                  nil,
	"CipherSuites":                        nil, // resolve
	"PreferServerCipherSuites":            nil, // no effect, as in crypto/tls
	"SessionTicketsDisabled":              nil,
	"SessionTicketKey":                    nil, // ticketRing
	"ClientSessionCache":                  nil,
	"UnwrapSession":                       refuseSet("OpenSSL's sessions are not crypto/tls's SessionState"),
	"WrapSession":                         refuseSet("OpenSSL's sessions are not crypto/tls's SessionState"),
	"MinVersion":                          checkVersion("MinVersion", func(c *tls.Config) uint16 { return c.MinVersion }),
	"MaxVersion":                          checkVersion("MaxVersion", func(c *tls.Config) uint16 { return c.MaxVersion }),
	"CurvePreferences":                    checkCurves, // and resolveGroups
	"DynamicRecordSizingDisabled":         nil,
	"Renegotiation":                       refuseSet("renegotiation is always refused (only RenegotiateNever can be had)"),
	"KeyLogWriter":                        nil,
	"EncryptedClientHelloConfigList":      refuseSet("OpenSSL has Encrypted Client Hello from 4.0 on only, and it is not used"),
	"EncryptedClientHelloRejectionVerify": refuseSet("OpenSSL has Encrypted Client Hello from 4.0 on only, and it is not used"),
	"GetEncryptedClientHelloKeys":         refuseSet("OpenSSL has Encrypted Client Hello from 4.0 on only, and it is not used"),
	"EncryptedClientHelloKeys":            refuseSet("OpenSSL has Encrypted Client Hello from 4.0 on only, and it is not used"),
}

// refuseSet marks a field that can't be honoured; checkConfig puts the field's name to it.
func refuseSet(reason string) func(*tls.Config) error {
	return func(*tls.Config) error { return &ConfigError{Reason: reason} }
}

// checkConfig refuses what can be refused by looking at a configuration alone.
func checkConfig(c *tls.Config) error {
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() || v.Field(i).IsZero() {
			continue
		}
		check, known := configFields[field.Name]
		if !known {
			return &ConfigError{Field: field.Name, Reason: "this version of ossl does not know the field"}
		}
		if check == nil {
			continue
		}
		if err := check(c); err != nil {
			if e, ok := err.(*ConfigError); ok && e.Field == "" {
				e.Field = field.Name
			}
			return err
		}
	}
	if c.MinVersion != 0 && c.MaxVersion != 0 && c.MinVersion > c.MaxVersion {
		return &ConfigError{Field: "MinVersion", Reason: "is above MaxVersion"}
	}
	return nil
}

func checkVersion(field string, get func(*tls.Config) uint16) func(*tls.Config) error {
	return func(c *tls.Config) error {
		switch v := get(c); {
		case v < tls.VersionTLS12:
			return &ConfigError{Field: field, Reason: "versions below TLS 1.2 are refused"}
		case v > tls.VersionTLS13 && field == "MinVersion":
			return &ConfigError{Field: field, Reason: fmt.Sprintf("unknown version %#04x", v)}
		}
		return nil
	}
}

func checkClientAuth(c *tls.Config) error {
	if c.ClientAuth < tls.NoClientCert || c.ClientAuth > tls.RequireAndVerifyClientCert {
		return &ConfigError{Reason: fmt.Sprintf("unknown value %d", c.ClientAuth)}
	}
	return nil
}

func checkCurves(c *tls.Config) error {
	for _, id := range c.CurvePreferences {
		if groupNames[id] == "" {
			return &ConfigError{Reason: fmt.Sprintf("%v is no group that is known", id)}
		}
	}
	return nil
}

// checkServerName returns an error if libssl, which takes the name as a C string, can't send it.
func checkServerName(name string) error {
	if sni := hostnameInSNI(name); len(sni) > 255 || strings.IndexByte(sni, 0) >= 0 {
		return &ConfigError{Field: "ServerName", Reason: "OpenSSL can't send a name of more than 255 bytes or with a zero byte"}
	}
	return nil
}

func checkNextProtos(c *tls.Config) error {
	size := 0
	for _, p := range c.NextProtos {
		if p == "" || len(p) > 255 {
			return &ConfigError{Reason: fmt.Sprintf("a protocol's name has 1 to 255 bytes (RFC 7301, section 3.1), not %d", len(p))}
		}
		size += 1 + len(p)
	}
	if size > 0xffff {
		return &ConfigError{Reason: "list longer than 65535 bytes"}
	}
	return nil
}

func alpnWire(protos []string) []byte {
	var wire []byte
	for _, p := range protos {
		wire = append(wire, byte(len(p)))
		wire = append(wire, p...)
	}
	return wire
}

// settings are a configuration's negotiable parameters in OpenSSL's words.
type settings struct {
	min, max                            uint16
	suites12, suites13, groups, sigalgs string
	requiredSuites                      []uint16              // named by the user: refused if libssl lacks one
	signatures                          []tls.SignatureScheme // sigalgs
	clientSigalgs                       string                // what clients may sign with, if that is less than sigalgs
	groupIDs                            []tls.CurveID
	hello                               *tls.ClientHelloInfo
	fips                                bool
}

// resolve works out a configuration's versions, suites, groups and signature algorithms: exactly those, in the order, that
// crypto/tls of the running Go uses for it, GODEBUG settings included, less those that libssl lacks and the configuration doesn't
// name, and less those that the host's policy forbids.
func resolve(c *tls.Config, o *options, policy *hostPolicy, fips bool) (*settings, error) {
	hello, err := stdtls.DefaultHello(c)
	if err != nil {
		return nil, &ConfigError{Field: "Config", Reason: "crypto/tls can't use it", Err: err}
	}
	if fips {
		limitToFIPS(hello)
	}
	s := &settings{hello: hello, fips: fips, min: tls.VersionTLS12, max: tls.VersionTLS13}
	versions := slices.DeleteFunc(slices.Clone(hello.SupportedVersions), func(v uint16) bool { return v < tls.VersionTLS12 })
	if len(versions) == 0 {
		return nil, &ConfigError{Field: "MinVersion", Reason: "leaves no version"}
	}
	if versions, err = policy.limitVersions(c, versions); err != nil {
		return nil, err
	}
	s.min, s.max = slices.Min(versions), slices.Max(versions)

	var suites []uint16
	prohibited := func(id uint16) bool { return o.http2 && c.CipherSuites == nil && !isHTTP2Suite(id) }
	for _, id := range hello.CipherSuites {
		if suiteNames12[id] != "" && !prohibited(id) {
			suites = append(suites, id)
		}
	}
	for _, id := range c.CipherSuites {
		switch {
		case suiteNames13[id] != "": // not configurable there, as in crypto/tls
		case suiteNames12[id] == "":
			return nil, &ConfigError{Field: "CipherSuites", Reason: fmt.Sprintf("OpenSSL has no %s", tls.CipherSuiteName(id))}
		default:
			s.requiredSuites = append(s.requiredSuites, id)
		}
	}
	if s.min <= tls.VersionTLS12 {
		if _, err := policy.limitSuites12(s.requiredSuites, true); err != nil {
			return nil, err
		}
	}
	offered := len(suites)
	suites, _ = policy.limitSuites12(suites, false)
	s.suites12, _ = namesOf(suites, suiteNames12)
	if s.min <= tls.VersionTLS12 && s.suites12 == "" {
		if s.max < tls.VersionTLS13 {
			if len(suites) < offered {
				return nil, policy.refuse("CipherSuites", cipherCommands, "it leaves no suite for TLS 1.2")
			}
			return nil, &ConfigError{Field: "CipherSuites", Reason: "names no suite for TLS 1.2"}
		}
		s.min = tls.VersionTLS13
	}

	suites13 := o.suites13
	if suites13 == nil {
		for _, id := range hello.CipherSuites {
			if suiteNames13[id] != "" {
				suites13 = append(suites13, id)
			}
		}
		if suites13 == nil {
			suites13 = []uint16{tls.TLS_AES_128_GCM_SHA256, tls.TLS_AES_256_GCM_SHA384, tls.TLS_CHACHA20_POLY1305_SHA256}
			if fips {
				suites13 = suites13[:2]
			}
		}
	}
	var unknown []uint16
	if s.suites13, unknown = namesOf(suites13, suiteNames13); unknown != nil {
		return nil, &ConfigError{Field: "WithTLS13CipherSuites", Reason: fmt.Sprintf("%#04x is no TLS 1.3 suite", unknown[0])}
	}
	if s.max >= tls.VersionTLS13 {
		if suites13, err = policy.limitSuites13(suites13, o.suites13 != nil); err != nil {
			return nil, err
		}
		if s.suites13, _ = namesOf(suites13, suiteNames13); s.suites13 == "" {
			if s.min >= tls.VersionTLS13 {
				return nil, policy.refuse("MinVersion", policy.blame(suiteCommands), "it leaves no suite for TLS 1.3")
			}
			s.max = tls.VersionTLS12
		}
	}

	if err := s.resolveGroups(c, policy); err != nil {
		return nil, err
	}
	return s, s.resolveSignatures(o, policy)
}

// resolveGroups keeps the groups that libssl has, and refuses the configuration if it names another.
func (s *settings) resolveGroups(c *tls.Config, policy *hostPolicy) error {
	for _, id := range c.CurvePreferences {
		if isHybrid(id) && s.max < tls.VersionTLS13 {
			continue
		}
		if isHybrid(id) && !hasGroup(groupNames[id], s.fips) {
			return &ConfigError{Field: "CurvePreferences", Reason: groupNames[id] + " is not in this OpenSSL"}
		}
		if _, err := policy.limitGroups([]tls.CurveID{id}, true); err != nil {
			return err
		}
	}
	for _, id := range s.hello.SupportedCurves {
		name := groupNames[id]
		if name == "" || isHybrid(id) && !hasGroup(name, s.fips) {
			continue
		}
		s.groupIDs = append(s.groupIDs, id)
	}
	available := len(s.groupIDs)
	s.groupIDs, _ = policy.limitGroups(s.groupIDs, false)
	if len(s.groupIDs) == 0 && available > 0 {
		return policy.refuse("CurvePreferences", policy.blame(groupCommands), "it leaves no group")
	}
	if len(s.groupIDs) == 0 {
		return &ConfigError{Field: "CurvePreferences", Reason: "leaves no group"}
	}
	s.groups, _ = namesOf(s.groupIDs, groupNames)
	if libraryHas(libssl.Version3_5) && isHybrid(s.groupIDs[0]) {
		s.groups = withKeyShares(s.groupIDs)
	}
	return nil
}

// withKeyShares marks for which groups a client sends key shares at once, in the syntax of 3.5: the first hybrid and, since most
// servers without it have X25519 or P-256, the first group that is not one, as crypto/tls does.
func withKeyShares(ids []tls.CurveID) string {
	var list string
	hybrid, plain := false, false
	for _, id := range ids {
		mark := ""
		switch {
		case isHybrid(id) && !hybrid:
			hybrid, mark = true, "*"
		case !isHybrid(id) && !plain:
			plain, mark = true, "*"
		}
		if list != "" {
			list += ":"
		}
		list += mark + groupNames[id]
	}
	return list
}

func (s *settings) resolveSignatures(o *options, policy *hostPolicy) error {
	schemes := o.signatures
	if schemes == nil {
		schemes = s.hello.SignatureSchemes
		if len(schemes) == 0 {
			return nil
		}
	}
	if _, unknown := namesOf(schemes, signatureNames); unknown != nil && o.signatures != nil {
		return &ConfigError{Field: "WithSignatureAlgorithms", Reason: fmt.Sprintf("%v is not in OpenSSL", unknown[0])}
	}
	schemes, err := policy.limitSignatures(schemes, o.signatures != nil)
	if err != nil {
		return err
	}
	s.signatures = schemes
	s.sigalgs, _ = namesOf(schemes, signatureNames)
	clients, err := policy.limitClientSignatures(schemes)
	s.clientSigalgs, _ = namesOf(clients, signatureNames)
	return err
}

// checkStaple refuses an OCSP staple that is no successful OCSPResponse (RFC 6960, section 4.2.1): from 3.6 on libssl drops such
// a one silently, and a client would never be told.
func checkStaple(der []byte) error {
	var response struct {
		Status asn1.Enumerated
		Bytes  struct {
			Type     asn1.ObjectIdentifier
			Response []byte
		} `asn1:"optional,explicit,tag:0"`
	}
	rest, err := asn1.Unmarshal(der, &response)
	switch {
	case err != nil:
		return fmt.Errorf("OCSPStaple is no DER OCSPResponse: %w", err)
	case len(rest) > 0:
		return fmt.Errorf("OCSPStaple has %d bytes after the OCSPResponse", len(rest))
	}
	return nil
}
