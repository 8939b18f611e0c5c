package policy

import (
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ossl-go/ossl/internal/strictjson"
)

// Default is the name of the policy that is used if none is named.
const Default = "fast-and-safe"

//go:embed data/*.json
var data embed.FS

// load returns the policy of a name in [Names]. A test loads them all, so that the panics can't happen.
func load(name string) *Policy {
	b, err := data.ReadFile("data/" + name + ".json")
	if err != nil {
		panic(err)
	}
	p, err := Parse(b)
	if err != nil {
		panic(fmt.Errorf("%s: %w", name, err))
	}
	return p
}

// Get returns the policy with a name or an alias. An empty name stands for [Default]. The policy is
// the caller's to change.
func Get(name string) (*Policy, error) {
	if name == "" {
		name = Default
	}
	if slices.Contains(Names(), name) {
		return load(name), nil
	}
	for _, p := range All() {
		if slices.Contains(p.Aliases, name) {
			return p, nil
		}
	}
	return nil, fmt.Errorf("policy: no policy %q; there are %s", name, strings.Join(Names(), ", "))
}

// All returns all policies, the default first and the others by their names.
func All() []*Policy {
	var list []*Policy
	for _, name := range Names() {
		list = append(list, load(name))
	}
	return list
}

// Names returns the names of all policies, without aliases, in the order of [All].
func Names() []string {
	entries, err := data.ReadDir("data")
	if err != nil {
		panic(err)
	}
	names := []string{Default}
	for _, e := range entries {
		if name := strings.TrimSuffix(e.Name(), ".json"); name != Default {
			names = append(names, name)
		}
	}
	return names
}

// Parse decodes the JSON of a policy. It returns an error if the JSON has a field that a [Policy]
// doesn't have, a field twice, a text with characters that can't be printed, or a value that isn't
// valid: an unknown cipher suite, a date that doesn't exist, a source that isn't in Sources.
func Parse(b []byte) (*Policy, error) {
	p := new(Policy)
	if err := strictjson.Unmarshal(b, p); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	if err := p.validate(); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	return p, nil
}

// clone returns a copy that shares nothing with p. A nil Policy's is empty.
func (p *Policy) clone() *Policy {
	if p == nil {
		return new(Policy)
	}
	c := *p
	c.Aliases, c.Sources, c.Keys = slices.Clone(p.Aliases), maps.Clone(p.Sources), slices.Clone(p.Keys)
	for i := range c.Keys {
		c.Keys[i].Curves, c.Keys[i].Until = slices.Clone(c.Keys[i].Curves), c.Keys[i].Until.clone()
	}
	for _, list := range []*[]Value{&c.Versions, &c.Suites13, &c.Suites12, &c.Groups, &c.Signatures, &c.Chain.Hashes} {
		*list = slices.Clone(*list)
		for i := range *list {
			(*list)[i].Until = (*list)[i].Until.clone()
		}
	}
	c.visit(func(_ string, s *Setting, l *Limit) {
		if s != nil {
			s.Until = s.Until.clone()
		}
		if l != nil {
			l.Until = l.Until.clone()
		}
	})
	return &c
}
