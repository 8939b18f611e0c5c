package ossl

import (
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/ossl-go/ossl/internal/negotiate"
)

// configFields has a check for every field of tls.Config, or nil if each of its values can be
// honoured. A field of a newer Go, which is not here, is refused if it is set.
// docs/COMPATIBILITY.md has a row for each.
var configFields = map[string]func(c *tls.Config) error{
	"Rand":                                checkRand,
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
	"ServerName":                          func(c *tls.Config) error { return checkServerName(c.ServerName) }, // for clients too
	"ClientAuth":                          checkClientAuth,
	"ClientCAs":                           nil,
	"InsecureSkipVerify":                  nil,
	"CipherSuites":                        nil, // internal/negotiate
	"PreferServerCipherSuites":            nil, // no effect, as in crypto/tls
	"SessionTicketsDisabled":              nil,
	"SessionTicketKey":                    nil, // makeRing
	"ClientSessionCache":                  nil,
	"UnwrapSession":                       refuseSet("OpenSSL's sessions are not crypto/tls's SessionState"),
	"WrapSession":                         refuseSet("OpenSSL's sessions are not crypto/tls's SessionState"),
	"MinVersion":                          checkVersion("MinVersion", func(c *tls.Config) uint16 { return c.MinVersion }),
	"MaxVersion":                          checkVersion("MaxVersion", func(c *tls.Config) uint16 { return c.MaxVersion }),
	"CurvePreferences":                    checkCurves, // and internal/negotiate
	"DynamicRecordSizingDisabled":         nil,
	"Renegotiation":                       refuseSet("renegotiation is always refused (only RenegotiateNever can be had)"),
	"KeyLogWriter":                        nil,
	"EncryptedClientHelloConfigList":      refuseSet("OpenSSL has Encrypted Client Hello from 4.0 on only, and it is not used"),
	"EncryptedClientHelloRejectionVerify": refuseSet("OpenSSL has Encrypted Client Hello from 4.0 on only, and it is not used"),
	"GetEncryptedClientHelloKeys":         refuseSet("OpenSSL has Encrypted Client Hello from 4.0 on only, and it is not used"),
	"EncryptedClientHelloKeys":            refuseSet("OpenSSL has Encrypted Client Hello from 4.0 on only, and it is not used"),
}

// checkRand accepts crypto/rand's Reader, which many programs set: OpenSSL's random numbers are as good.
func checkRand(c *tls.Config) error {
	if c.Rand != rand.Reader {
		return &ConfigError{Reason: "OpenSSL draws its own random numbers"}
	}
	return nil
}

// refuseSet is the check of a field that can't be honoured. checkConfig adds the field's name.
func refuseSet(reason string) func(*tls.Config) error {
	return func(*tls.Config) error { return &ConfigError{Reason: reason} }
}

// checkConfig returns an error if a field of a configuration, by itself, can't be honoured.
func checkConfig(c *tls.Config) error {
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() || v.Field(i).IsZero() {
			continue
		}
		check, ok := configFields[field.Name]
		if !ok {
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

// checkCurves refuses a list without a known group. crypto/tls passes over the others.
func checkCurves(c *tls.Config) error {
	if len(c.CurvePreferences) > 0 && !slices.ContainsFunc(c.CurvePreferences, negotiate.KnownGroup) {
		return &ConfigError{Reason: fmt.Sprintf("unknown group %v", c.CurvePreferences[0])}
	}
	return nil
}

// checkServerName returns an error if libssl, which gets the name as a C string, can't send it.
func checkServerName(name string) error {
	if sni := hostnameInSNI(name); len(sni) > 255 || strings.IndexByte(sni, 0) >= 0 {
		return &ConfigError{Field: "ServerName", Reason: "OpenSSL can't send a name of more than 255 bytes or with a zero byte"}
	}
	return nil
}

// protoHTTP2 is HTTP/2's name in ALPN: RFC 9113, section 3.1.
const protoHTTP2 = "h2"

// offerHTTP2 adds HTTP/2 to the protocols of a configuration that is the Context's own.
func offerHTTP2(config *tls.Config) {
	if !slices.Contains(config.NextProtos, protoHTTP2) {
		config.NextProtos = append(slices.Clip(config.NextProtos), protoHTTP2) // the array is the caller's
	}
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

// alpnWire returns a list of protocols in the form of the ALPN extension.
func alpnWire(protos []string) []byte {
	var wire []byte
	for _, p := range protos {
		wire = append(wire, byte(len(p)))
		wire = append(wire, p...)
	}
	return wire
}
