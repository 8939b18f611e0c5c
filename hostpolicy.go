package ossl

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/record"
	"github.com/ossl-go/ossl/internal/stdtls"
)

// hostPolicy is what the host's OpenSSL configuration says of TLS. It only narrows what a configuration asks for. nil is a policy
// that says nothing.
type hostPolicy struct {
	HostPolicy
	commands []libssl.HostCommand
	pads     bool // records are padded
	level    int  // the security level that is stated, or 0
}

// theHostPolicy reads the policy of the library that is loaded: once, as OpenSSL reads its configuration.
var theHostPolicy = sync.OnceValue(readHostPolicy)

// hostPolicy returns the policy to honour, or nil. The library must be loaded.
func (o *options) hostPolicy() (*hostPolicy, error) {
	p := theHostPolicy()
	if errors.Is(p.Err, libssl.ErrNoContext) {
		return nil, p.Err
	}
	if o.withoutHostPolicy || p.commands == nil && p.Err == nil {
		return nil, nil
	}
	return p, p.Err
}

// all returns the commands that Contexts carry out.
func (p *hostPolicy) all() []libssl.HostCommand {
	if p == nil {
		return nil
	}
	return p.commands
}

// What commands are about. They are looked for by their names, in lower case: SSL_CONF_cmd(3).
var (
	versionCommands           = []string{"minprotocol", "maxprotocol", "protocol"}
	cipherCommands            = []string{"cipherstring"}
	suiteCommands             = []string{"ciphersuites"}
	groupCommands             = []string{"groups", "curves", "ecdhparameters"}
	signatureCommands         = []string{"signaturealgorithms"}
	clientSignatureCommands   = []string{"clientsignaturealgorithms"}
	paddingCommands           = []string{"recordpadding"}
	optionCommands            = []string{"options"}
	levelInside, suiteBInside = "@SECLEVEL=", "SUITEB"
)

// stated returns the commands of these names whose value contains one of parts, if there are any parts.
func (p *hostPolicy) stated(names []string, parts ...string) (found []libssl.HostCommand) {
	for _, c := range p.commands {
		name := strings.ToLower(c.Name)
		has := func(part string) bool { return strings.Contains(c.Value, part) }
		switch {
		case !slices.Contains(names, name), len(parts) > 0 && !slices.ContainsFunc(parts, has):
		case name == "ecdhparameters" && strings.EqualFold(strings.TrimPrefix(c.Value, "+"), "automatic"): // no effect
		default:
			found = append(found, c)
		}
	}
	return found
}

func (p *hostPolicy) states(names []string, parts ...string) bool {
	return len(p.stated(names, parts...)) > 0
}

func readHostPolicy() *hostPolicy {
	p := &hostPolicy{HostPolicy: HostPolicy{
		ConfigFile:    libssl.ConfigFile(),
		MinVersion:    tls.VersionTLS12,
		MaxVersion:    tls.VersionTLS13,
		SecurityLevel: defaultSecurityLevel,
	}}
	var err error
	if p.commands, err = libssl.HostCommands(p.ConfigFile); err != nil {
		p.Err = p.refuse(hostPolicyField, nil, err.Error())
		if errors.Is(err, libssl.ErrNoContext) {
			p.Err = &ConfigError{Field: hostPolicyField, Reason: p.ConfigFile, Err: err}
		}
		return p
	}
	var refused []string
	for _, c := range p.commands {
		text := c.Name + " = " + c.Value
		p.Commands = append(p.Commands, text)
		if !c.Done {
			refused = append(refused, text)
		}
	}
	switch {
	case p.commands == nil:
	case refused != nil:
		p.Err = p.refuse(hostPolicyField, nil, "this OpenSSL does not carry out "+strings.Join(refused, ", "))
	default:
		if p.Err = p.probe(); p.Err != nil && !errors.As(p.Err, new(*ConfigError)) {
			e := p.refuse(hostPolicyField, nil, "it can't be found out what it allows")
			e.Err, p.Err = p.Err, e
		}
	}
	return p
}

// hostPolicyField is the Field of errors that no field of a configuration is to blame for.
const hostPolicyField = "HostPolicy"

// probe finds out what the policy allows: what a client of libssl offers under it. So that libssl's own defaults don't count,
// all that ossl knows is set where the host says nothing.
func (p *hostPolicy) probe() error {
	cfg := &libssl.ContextConfig{AsHost: true, HostCommands: p.commands, MinVersion: tls.VersionTLS12, SecurityLevel: -1}
	ctx, err := libssl.NewContext(cfg)
	if err != nil {
		return libraryError(err)
	}
	level := p.states(cipherCommands, levelInside)
	if level {
		p.level = ctx.SecurityLevel()
		p.SecurityLevel = max(p.SecurityLevel, p.level)
	} else {
		cfg.SecurityLevel, cfg.ExactLevel = 0, true
	}
	p.NoSessionTickets = p.states(optionCommands) && ctx.NoTickets()
	for _, c := range p.stated(paddingCommands) {
		p.pads = slices.ContainsFunc(strings.Split(c.Value, ","), func(s string) bool {
			n, err := strconv.ParseUint(strings.TrimSpace(s), 0, 16)
			return err != nil || n > 1
		})
	}

	suites12 := p.states(cipherCommands)
	if !suites12 {
		cfg.CipherList, _ = namesOf(keysOf(suiteNames12), suiteNames12)
	}
	suites13 := p.states(suiteCommands)
	if !suites13 {
		cfg.CipherSuites, _ = namesOf(keysOf(suiteNames13), suiteNames13)
	}
	suiteB := p.states(cipherCommands, suiteBInside)
	groups := p.states(groupCommands) || suiteB
	if !groups {
		known := slices.DeleteFunc(keysOf(groupNames), func(id tls.CurveID) bool {
			return isHybrid(id) && !hasGroup(groupNames[id], false)
		})
		cfg.Groups, _ = namesOf(known, groupNames)
	}
	signatures := p.states(signatureCommands) || suiteB
	if !signatures {
		cfg.SignatureAlgorithms, _ = namesOf(keysOf(signatureNames), signatureNames)
	}
	hello, err := p.hello(cfg)
	if err != nil {
		return err
	}

	var versions []uint16
	for _, v := range hello.SupportedVersions {
		if v == tls.VersionTLS12 || v == tls.VersionTLS13 {
			versions = append(versions, v)
		}
	}
	if versions == nil {
		return p.refuse(hostPolicyField, versionCommands, "it allows neither TLS 1.2 nor TLS 1.3")
	}
	p.MinVersion, p.MaxVersion = slices.Min(versions), slices.Max(versions)
	if suites12 || level {
		p.CipherSuites = known(hello.CipherSuites, suiteNames12)
	}
	if suites13 || level {
		p.TLS13CipherSuites = known(hello.CipherSuites, suiteNames13)
	}
	if groups || level {
		p.Groups = known(hello.SupportedCurves, groupNames)
	}
	if signatures || level {
		p.SignatureSchemes = known(hello.SignatureSchemes, signatureNames)
	}
	if c := p.stated(clientSignatureCommands); len(c) > 0 {
		cfg.SignatureAlgorithms = c[len(c)-1].Value
		if hello, err = p.hello(cfg); err != nil {
			return err
		}
		p.ClientSignatureSchemes = known(hello.SignatureSchemes, signatureNames)
	}
	return nil
}

// hello returns the ClientHello of a client with these settings.
func (p *hostPolicy) hello(cfg *libssl.ContextConfig) (*tls.ClientHelloInfo, error) {
	ctx, err := libssl.NewContext(cfg)
	if err != nil {
		return nil, libraryError(err)
	}
	out := make([]byte, record.MaxPlaintext+1024) // more than a hello
	conn, step, err := ctx.Start(false, false, "", nil, nil, out)
	if err != nil {
		return nil, libraryError(err)
	}
	defer conn.Free(false, nil)
	if step.Status != libssl.WantRead || step.Produced == 0 {
		err := p.refuse(hostPolicyField, versionCommands, "it leaves nothing to offer to a server")
		err.Err = libraryError(&libssl.Error{Op: "handshake", Codes: conn.Errors()})
		return nil, err
	}
	info, _, err := stdtls.ParseHello(context.Background(), out[:step.Produced], &tls.Config{})
	return info, err
}

// known returns the ids that have names, which are those that ossl can use. It is not nil.
func known[ID comparable](ids []ID, names map[ID]string) []ID {
	list := []ID{}
	for _, id := range ids {
		if names[id] != "" {
			list = append(list, id)
		}
	}
	return list
}

// keysOf returns the keys of a table of names in the order of the names.
func keysOf[ID comparable](names map[ID]string) []ID {
	var ids []ID
	for id := range names {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b ID) int { return strings.Compare(names[a], names[b]) })
	return ids
}

// refuse makes the error for what the policy forbids, and names the commands that do.
func (p *hostPolicy) refuse(field string, commands []string, what string) *ConfigError {
	cited := p.ConfigFile
	for _, c := range p.stated(commands) {
		cited += ", " + c.Name + " = " + c.Value
	}
	return &ConfigError{Field: field, Reason: fmt.Sprintf("the host's OpenSSL policy (%s): %s. WithoutHostPolicy() ignores it",
		cited, what)}
}

// The methods below narrow a configuration to the policy. Where it names something that is forbidden, they refuse it; where it
// names nothing, what is forbidden is left out, and they refuse it if nothing is left.

// limitVersions takes the versions of c. A floor below the policy's is raised to it, a ceiling above it lowered: the bounds are
// both in force.
func (p *hostPolicy) limitVersions(c *tls.Config, versions []uint16) ([]uint16, error) {
	if p == nil {
		return versions, nil
	}
	left := slices.DeleteFunc(versions, func(v uint16) bool { return v < p.MinVersion || v > p.MaxVersion })
	if len(left) > 0 {
		return left, nil
	}
	field, allowed := "MinVersion", tls.VersionName(p.MaxVersion)+" and below"
	if c.MaxVersion != 0 && c.MaxVersion < p.MinVersion {
		field, allowed = "MaxVersion", tls.VersionName(p.MinVersion)+" and above"
	}
	return nil, p.refuse(field, versionCommands, "it allows "+allowed)
}

// limit leaves out what the policy forbids, or refuses it if it is named.
func limit[ID comparable](p *hostPolicy, ids, allowed []ID, named bool, field string, commands []string, name func(ID) string,
) ([]ID, error) {
	if p == nil || allowed == nil {
		return ids, nil
	}
	var left []ID
	for _, id := range ids {
		if slices.Contains(allowed, id) {
			left = append(left, id)
		} else if named {
			return nil, p.refuse(field, p.blame(commands), "it forbids "+name(id))
		}
	}
	return left, nil
}

// blame adds to commands the ones by which the security level was set.
func (p *hostPolicy) blame(commands []string) []string {
	if len(p.stated(commands)) > 0 {
		return commands
	}
	return cipherCommands
}

func (p *hostPolicy) limitSuites12(ids []uint16, named bool) ([]uint16, error) {
	if p == nil {
		return ids, nil
	}
	return limit(p, ids, p.CipherSuites, named, "CipherSuites", cipherCommands, tls.CipherSuiteName)
}

func (p *hostPolicy) limitSuites13(ids []uint16, named bool) ([]uint16, error) {
	if p == nil {
		return ids, nil
	}
	return limit(p, ids, p.TLS13CipherSuites, named, "WithTLS13CipherSuites", suiteCommands, nameOf(suiteNames13))
}

func (p *hostPolicy) limitGroups(ids []tls.CurveID, named bool) ([]tls.CurveID, error) {
	if p == nil {
		return ids, nil
	}
	return limit(p, ids, p.Groups, named, "CurvePreferences", groupCommands, nameOf(groupNames))
}

func (p *hostPolicy) limitSignatures(ids []tls.SignatureScheme, named bool) ([]tls.SignatureScheme, error) {
	if p == nil {
		return ids, nil
	}
	left, err := limit(p, ids, p.SignatureSchemes, named, "WithSignatureAlgorithms", signatureCommands, tls.SignatureScheme.String)
	if err == nil && len(left) == 0 && len(ids) > 0 {
		return nil, p.refuse("WithSignatureAlgorithms", p.blame(signatureCommands), "it leaves no signature algorithm")
	}
	return left, err
}

// limitClientSignatures returns, of a Context's algorithms, those that clients may sign with, or nil if that is no less.
func (p *hostPolicy) limitClientSignatures(ids []tls.SignatureScheme) ([]tls.SignatureScheme, error) {
	if p == nil || p.ClientSignatureSchemes == nil {
		return nil, nil
	}
	left, _ := limit(p, ids, p.ClientSignatureSchemes, false, "", nil, nil)
	if len(left) == 0 {
		return nil, p.refuse("WithSignatureAlgorithms", clientSignatureCommands, "it leaves clients no signature algorithm")
	}
	return left, nil
}

// limitLevel returns the security level of a Context.
func (p *hostPolicy) limitLevel(o *options) (int, error) {
	if p == nil || p.level <= o.securityLevel {
		return o.securityLevel, nil
	}
	if o.levelNamed {
		return 0, p.refuse("WithSecurityLevel", cipherCommands, fmt.Sprintf("it asks for level %d", p.level))
	}
	return p.level, nil
}

// explain adds to the refusal of a certificate that the security level may be the policy's.
func (p *hostPolicy) explain(err error, o *options) error {
	var e *ConfigError
	if p == nil || o.levelNamed || p.level <= o.securityLevel || !errors.As(err, &e) || e.Field != "Certificates" {
		return err
	}
	refusal := p.refuse(e.Field, cipherCommands, fmt.Sprintf("at its security level %d OpenSSL does not take it", p.level))
	refusal.Err = e.Err
	return refusal
}

// limitRecords returns the record path of a Context: it is libssl that pads records.
func (p *hostPolicy) limitRecords(path RecordPath) (RecordPath, error) {
	switch {
	case p == nil || !p.pads:
		return path, nil
	case path == RecordsOwn:
		return path, p.refuse("WithRecordPath", paddingCommands, "records are padded, which only RecordsLibssl does")
	}
	return RecordsLibssl, nil
}

// limitCredential returns those of a certificate's algorithms that the policy has. Both roles may come to use it.
func (p *hostPolicy) limitCredential(schemes []tls.SignatureScheme) ([]tls.SignatureScheme, error) {
	if p == nil || len(schemes) == 0 {
		return schemes, nil
	}
	left, _ := limit(p, schemes, p.SignatureSchemes, false, "", nil, nil)
	left, _ = limit(p, left, p.ClientSignatureSchemes, false, "", nil, nil)
	if len(left) == 0 {
		return nil, errors.New("the host's OpenSSL policy leaves none of SupportedSignatureAlgorithms")
	}
	return left, nil
}

func nameOf[ID comparable](names map[ID]string) func(ID) string {
	return func(id ID) string { return names[id] }
}
