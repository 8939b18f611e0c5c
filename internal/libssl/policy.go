package libssl

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// ErrNoContext means that OpenSSL can't make an SSL_CTX with the host's configuration: the
// configuration has an error, and turns config_diagnostics on.
var ErrNoContext = errors.New("OpenSSL can't make an SSL_CTX with it")

// A HostCommand is a command in the host's configuration for every SSL_CTX, in the section
// system_default of the module ssl_conf: SSL_CONF_cmd(3), config(5).
type HostCommand struct {
	Name, Value string
	Done        bool // libssl executes it
}

// A Topic is the part of TLS that a command of the host's policy is about.
type Topic int

// The topics, with the commands' names as openssl.cnf has them, in any case.
const (
	TopicOther             Topic = iota
	TopicVersions                // MinProtocol, MaxProtocol, Protocol
	TopicCipherSuites            // CipherString: the TLS 1.2 suites, and the security level
	TopicTLS13CipherSuites       // Ciphersuites
	TopicGroups                  // Groups, Curves, ECDHParameters
	TopicSignatures              // SignatureAlgorithms
	TopicClientSignatures        // ClientSignatureAlgorithms
	TopicPadding                 // RecordPadding
	TopicOptions                 // Options
)

var topics = map[string]Topic{
	"minprotocol":               TopicVersions,
	"maxprotocol":               TopicVersions,
	"protocol":                  TopicVersions,
	"cipherstring":              TopicCipherSuites,
	"ciphersuites":              TopicTLS13CipherSuites,
	"groups":                    TopicGroups,
	"curves":                    TopicGroups,
	"ecdhparameters":            TopicGroups,
	"signaturealgorithms":       TopicSignatures,
	"clientsignaturealgorithms": TopicClientSignatures,
	"recordpadding":             TopicPadding,
	"options":                   TopicOptions,
}

func (c HostCommand) String() string { return c.Name + " = " + c.Value }

// Topic returns the part of TLS that the command is about.
func (c HostCommand) Topic() Topic {
	name := strings.ToLower(c.Name)
	if name == "ecdhparameters" && strings.EqualFold(strings.TrimPrefix(c.Value, "+"), "automatic") { // has no effect
		return TopicOther
	}
	return topics[name]
}

// SetsLevel reports whether the command sets a security level: openssl-ciphers(1).
func (c HostCommand) SetsLevel() bool {
	return c.Topic() == TopicCipherSuites && strings.Contains(c.Value, "@SECLEVEL=")
}

// SetsSuiteB reports whether the command asks for Suite B, which sets groups and signature
// algorithms too.
func (c HostCommand) SetsSuiteB() bool {
	return c.Topic() == TopicCipherSuites && strings.Contains(c.Value, "SUITEB")
}

// Pads reports whether the command has libssl pad records.
func (c HostCommand) Pads() bool {
	return c.Topic() == TopicPadding && slices.ContainsFunc(strings.Split(c.Value, ","), func(s string) bool {
		n, err := strconv.ParseUint(strings.TrimSpace(s), 0, 16)
		return err != nil || n > 1
	})
}

// AsSignatures returns, for a command about clients' signatures, the command that has the same list
// for all signatures, so that a ClientHello shows it.
func (c HostCommand) AsSignatures() HostCommand {
	return HostCommand{Name: "SignatureAlgorithms", Value: c.Value}
}

// packCommands terminates each name and value with a zero, as the shim requires.
func packCommands(commands []HostCommand) []byte {
	var packed []byte
	for _, c := range commands {
		packed = append(append(packed, c.Name...), 0)
		packed = append(append(packed, c.Value...), 0)
	}
	return packed
}
