package policy

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ossl-go/ossl/policy/internal/names"
	"github.com/ossl-go/ossl/tlsnames"
)

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*$`)

// validate returns an error that names the first value of the policy that isn't valid.
func (p *Policy) validate() error {
	if !nameForm.MatchString(p.Name) {
		return fmt.Errorf("name %q: lower-case letters, digits, dots and hyphens are allowed", p.Name)
	}
	for _, a := range p.Aliases {
		if !nameForm.MatchString(a) {
			return fmt.Errorf("aliases: %q: lower-case letters, digits, dots and hyphens are allowed", a)
		}
	}
	switch {
	case p.Title == "":
		return errors.New("title: empty")
	case p.Summary == "":
		return errors.New("summary: empty")
	case p.Date.IsZero():
		return errors.New("date: missing")
	}
	for key, s := range p.Sources {
		if key == "" || strings.ContainsAny(key, " \t") || s.Title == "" {
			return fmt.Errorf("sources: %q needs a key without spaces, and a title", key)
		}
		if s.URL != "" && !strings.HasPrefix(s.URL, "https://") {
			return fmt.Errorf("sources: %q: the URL is not one of https", key)
		}
	}
	for _, check := range []func() error{p.validateLists, p.validateKeys, p.validateSettings, p.validateLimits} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (p *Policy) validateLists() error {
	for _, list := range []struct {
		name   string
		values []Value
		known  func(string) bool
		needed bool
	}{
		{"versions", p.Versions, func(n string) bool { return names.Version(n) != 0 }, true},
		{"suites13", p.Suites13, func(n string) bool { return names.Suite13(n) != 0 }, false},
		{"suites12", p.Suites12, func(n string) bool { return names.Suite12(n) != 0 || names.OtherSuite12(n) }, false},
		{"groups", p.Groups, names.Known(tlsnames.Groups), true},
		{"signatures", p.Signatures, names.Known(tlsnames.SignatureSchemes), true},
		{"chain.hashes", p.Chain.Hashes, func(n string) bool { return slices.Contains(hashes, n) }, false},
	} {
		if list.needed && len(list.values) == 0 {
			return fmt.Errorf("%s: empty", list.name)
		}
		seen := map[string]bool{}
		for _, v := range list.values {
			at := list.name + "." + v.Name
			if !list.known(v.Name) {
				return fmt.Errorf("%s: unknown name", at)
			}
			if seen[v.Name] {
				return fmt.Errorf("%s: there twice", at)
			}
			seen[v.Name] = true
			if v.Needs != "" && (v.Needs != EncryptThenMAC || !strings.Contains(v.Name, "_CBC_")) {
				return fmt.Errorf("%s: needs %q, and can't", at, v.Needs)
			}
			if err := p.validateEntry(at, true, v.Level, v.Source, v.Until); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *Policy) validateKeys() error {
	if len(p.Keys) == 0 {
		return errors.New("keys: empty")
	}
	for _, k := range p.Keys {
		at := "keys." + k.Type
		switch k.Type {
		case "ECDSA":
			if len(k.Curves) == 0 || k.Bits != 0 {
				return fmt.Errorf("%s: curves are needed, and no bits", at)
			}
		case "RSA":
			if k.Bits < 1024 || k.Bits > 16384 || k.Curves != nil {
				return fmt.Errorf("%s: bits between 1024 and 16384 are needed, and no curves", at)
			}
		case "Ed25519", "ML-DSA":
			if k.Bits != 0 || k.Curves != nil {
				return fmt.Errorf("%s: has neither bits nor curves", at)
			}
		default:
			return fmt.Errorf("%s: unknown type", at)
		}
		for _, c := range k.Curves {
			if !slices.Contains(curves, c) {
				return fmt.Errorf("%s: unknown curve %q", at, c)
			}
		}
		if err := p.validateEntry(at, true, k.Level, k.Source, k.Until); err != nil {
			return err
		}
	}
	return nil
}

func (p *Policy) validateSettings() error {
	yesNo, staple := []string{"yes", "no"}, []string{"finding", "fine"}
	for _, f := range []struct {
		name    string
		setting Setting
		values  []string
	}{
		{"order", p.Order, []string{"server", "client", "any"}},
		{"chain.shortest", p.Chain.Shortest, yesNo},
		{"stapling.no_uri", p.Stapling.NoURI, staple},
		{"stapling.stapled", p.Stapling.Stapled, staple},
		{"stapling.missing", p.Stapling.Missing, staple},
		{"resumption.tls13", p.Resumption.TLS13, yesNo},
		{"resumption.id", p.Resumption.ID, yesNo},
		{"resumption.tickets", p.Resumption.Tickets, yesNo},
		{"resumption.early", p.Resumption.Early, yesNo},
		{"records.kernel", p.Records.Kernel, yesNo},
		{"records.compression", p.Records.Compression, yesNo},
		{"sockets.sendfile", p.Sockets.SendFile, yesNo},
		{"sockets.nopush", p.Sockets.NoPush, yesNo},
		{"sockets.nodelay", p.Sockets.NoDelay, yesNo},
	} {
		s := f.setting
		if s.Value != "" && !slices.Contains(f.values, s.Value) {
			return fmt.Errorf("%s: %q is not one of %s", f.name, s.Value, strings.Join(f.values, ", "))
		}
		if err := p.validateEntry(f.name, s.Value != "", s.Level, s.Source, s.Until); err != nil {
			return err
		}
	}
	return nil
}

func (p *Policy) validateLimits() error {
	for _, f := range []struct {
		name     string
		limit    Limit
		min, max int
	}{
		{"chain.lifetime", p.Chain.Lifetime, 1, 10000},
		{"chain.recommended", p.Chain.Recommended, 1, 10000},
		{"resumption.lifetime", p.Resumption.Lifetime, 1, 7 * 86400}, // RFC 8446, section 4.6.1
		{"resumption.rotation", p.Resumption.Rotation, 1, 365 * 86400},
		{"records.buffer_size", p.Records.BufferSize, 512, 1 << 24},
		{"sockets.sendfile_chunk", p.Sockets.SendFileChunk, 4096, 1 << 30},
		{"sockets.hsts", p.Sockets.HSTS, 1, 50 * 365 * 86400},
	} {
		l := f.limit
		if l.Value != 0 && (l.Value < f.min || l.Value > f.max) {
			return fmt.Errorf("%s: %d is not between %d and %d", f.name, l.Value, f.min, f.max)
		}
		if err := p.validateEntry(f.name, l.Value != 0, l.Level, l.Source, l.Until); err != nil {
			return err
		}
	}
	if r, l := p.Chain.Recommended.Value, p.Chain.Lifetime.Value; l != 0 && r > l {
		return fmt.Errorf("chain.recommended: %d is above the lifetime, %d", r, l)
	}
	return nil
}

// validateEntry checks the parts that every value of a policy has. set reports whether it has a value.
func (p *Policy) validateEntry(at string, set bool, level Level, source string, until *Date) error {
	switch level {
	case Allowed, Recommended, Required, PhaseOut:
	default:
		return fmt.Errorf("%s: unknown level %q", at, level)
	}
	if !set && (level != Allowed || until != nil) {
		return fmt.Errorf("%s: a level or a date without a value", at)
	}
	if until != nil && until.Before(p.Date.Time) {
		return fmt.Errorf("%s: until %v is before the policy's date", at, until)
	}
	if source == "" {
		if set {
			return fmt.Errorf("%s: no source", at)
		}
		return nil
	}
	key, _, _ := strings.Cut(source, " ")
	if _, ok := p.Sources[key]; !ok {
		return fmt.Errorf("%s: %q is not one of the sources", at, key)
	}
	return nil
}
