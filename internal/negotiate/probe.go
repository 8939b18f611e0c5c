package negotiate

import (
	"context"
	"crypto/tls"
	"slices"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/record"
	"github.com/ossl-go/ossl/internal/stdtls"
)

// maxHello is the size of a buffer for a ClientHello with all known IDs.
const maxHello = record.MaxPlaintext + 1024

// probe finds the IDs that the policy allows: those that a libssl client offers while the policy's
// commands are in force. Lists that the host does not state are set to all known IDs, so that
// libssl's own defaults don't count as the host's.
func (h *Host) probe() *Refusal {
	unknown := func(err error) *Refusal { return h.refuseAll(libssl.TopicOther, "can't determine what it allows", err) }
	cfg := &libssl.ContextConfig{AsHost: true, HostCommands: h.commands, MinVersion: tls.VersionTLS12, SecurityLevel: -1}
	level := slices.ContainsFunc(h.commands, libssl.HostCommand.SetsLevel)
	if !level {
		cfg.SecurityLevel, cfg.ExactLevel = 0, true
	}
	if c := h.about(libssl.TopicPadding); len(c) > 0 {
		h.pads = c[len(c)-1].Pads()
	}

	suiteB := slices.ContainsFunc(h.commands, libssl.HostCommand.SetsSuiteB)
	states := func(topic libssl.Topic) bool { return len(h.about(topic)) > 0 }
	suites, suites13 := states(libssl.TopicCipherSuites), states(libssl.TopicTLS13CipherSuites)
	groups, signatures := states(libssl.TopicGroups) || suiteB, states(libssl.TopicSignatures) || suiteB
	if !suites {
		cfg.CipherSuites = libssl.Suites(tls.VersionTLS12)
	}
	if !suites13 {
		cfg.TLS13CipherSuites = libssl.Suites(tls.VersionTLS13)
	}
	if !groups {
		cfg.Groups = libssl.Groups()
	}
	if !signatures {
		cfg.SignatureSchemes = libssl.SignatureSchemes()
	}
	ctx, err := libssl.NewContext(cfg)
	if err != nil {
		return unknown(err)
	}
	if level {
		h.level = ctx.SecurityLevel()
		h.SecurityLevel = max(h.SecurityLevel, h.level)
	}
	if suites {
		h.psk = stated(libssl.PSKSuites(), ctx.HasCipher)
	}
	h.NoSessionTickets = len(h.about(libssl.TopicOptions)) > 0 && ctx.NoTickets()
	hello, err := h.hello(ctx)
	if r, ok := err.(*Refusal); ok {
		return r
	} else if err != nil {
		return unknown(err)
	}

	versions := Keep(hello.SupportedVersions, func(v uint16) bool { return v == tls.VersionTLS12 || v == tls.VersionTLS13 })
	if versions == nil {
		return h.refuseAll(libssl.TopicVersions, "it allows neither TLS 1.2 nor TLS 1.3", nil)
	}
	h.MinVersion, h.MaxVersion = slices.Min(versions), slices.Max(versions)
	if suites || level {
		h.CipherSuites = stated(hello.CipherSuites, func(id uint16) bool { return knownSuite(id) && !libssl.IsTLS13Suite(id) })
	}
	if suites13 || level {
		h.TLS13CipherSuites = stated(hello.CipherSuites, knownTLS13Suite)
	}
	if groups || level {
		h.Groups = stated(hello.SupportedCurves, KnownGroup)
	}
	if signatures || level {
		h.SignatureSchemes = stated(hello.SignatureSchemes, KnownSignature)
	}
	return h.probeClientSignatures(cfg, unknown)
}

// probeClientSignatures finds out with which algorithms clients may sign. A ClientHello does not
// show these, so the command's list is used as the list for all signatures.
func (h *Host) probeClientSignatures(cfg *libssl.ContextConfig, unknown func(error) *Refusal) *Refusal {
	c := h.about(libssl.TopicClientSignatures)
	if len(c) == 0 {
		return nil
	}
	cfg.SignatureSchemes = nil
	cfg.HostCommands = append(slices.Clip(h.commands), c[len(c)-1].AsSignatures())
	ctx, err := libssl.NewContext(cfg)
	if err != nil {
		return unknown(err)
	}
	hello, err := h.hello(ctx)
	if r, ok := err.(*Refusal); ok {
		return r
	} else if err != nil {
		return unknown(err)
	}
	h.ClientSignatureSchemes = stated(hello.SignatureSchemes, KnownSignature)
	return nil
}

// stated returns the known IDs of a list that the policy states. It is not nil, which would mean
// that the policy states none.
func stated[ID any](list []ID, known func(ID) bool) []ID {
	return append([]ID{}, Keep(list, known)...)
}

// hello returns the ClientHello of a client of a context, which it closes.
func (h *Host) hello(ctx *libssl.Context) (*tls.ClientHelloInfo, error) {
	defer ctx.Close()
	out := make([]byte, maxHello)
	conn, step, err := ctx.Start(false, false, "", nil, nil, out)
	if err != nil {
		return nil, err
	}
	defer conn.Free(false, nil)
	if step.Status != libssl.WantRead || step.Produced == 0 {
		return nil, h.refuseAll(libssl.TopicVersions, "it leaves nothing to offer to a server",
			&libssl.Error{Op: "handshake", Codes: conn.Errors()})
	}
	info, _, err := stdtls.ParseHello(context.Background(), out[:step.Produced], &tls.Config{})
	return info, err
}
