package metrics

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"unicode/utf8"
	"weak"

	"github.com/ossl-go/ossl"
)

// A Source gives the statistics that an exporter reads: a [*Contexts], or [Process]. An exporter
// reads one Source, so that no connection is counted twice.
type Source interface {
	// Stats returns the statistics, sorted by name.
	Stats() []Named
}

// Named are the statistics of the Contexts with a name, or of the process, whose name is empty.
type Named struct {
	Name  string
	Stats ossl.Stats
}

// Process is the Source of [ossl.ProcessStats]: all connections of the process.
var Process Source = process{}

type process struct{}

func (process) Stats() []Named { return []Named{{Stats: ossl.ProcessStats()}} }

// Contexts is a Source of the statistics of Contexts under names, which the program chooses. The
// zero value is empty and ready to use. It may be used by any number of goroutines.
type Contexts struct {
	mu     sync.Mutex
	groups map[string]*group                   // guarded by mu
	gone   map[weak.Pointer[ossl.Context]]bool // guarded by mu; their counts are in a group's past
}

// A group is the Contexts with a name.
type group struct {
	members []*member
	past    ossl.Stats // of members that are gone
}

type member struct {
	ctx     *ossl.Context
	removed bool
}

// Add adds the statistics of ctx to those with the name. After remove, the counts of ctx stay in the
// sum, and grow as long as it has open connections. Handshakes that end later are not counted.
// remove may be called several times.
//
// Add returns an error, an [*ossl.ConfigError], if the name is empty or not UTF-8, if ctx is nil,
// or if it was added before: its counts would be in the sum twice.
func (c *Contexts) Add(name string, ctx *ossl.Context) (remove func(), err error) {
	if name == "" || !utf8.ValidString(name) || ctx == nil {
		return nil, &ossl.ConfigError{Field: "Contexts.Add", Reason: "needs a name in UTF-8 and a Context"}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone[weak.Make(ctx)] {
		return nil, &ossl.ConfigError{Field: "Contexts.Add", Reason: "had the Context before"}
	}
	for other, g := range c.groups {
		if slices.ContainsFunc(g.members, func(m *member) bool { return m.ctx == ctx }) {
			return nil, &ossl.ConfigError{Field: "Contexts.Add", Reason: "has the Context already, with the name " + other}
		}
	}
	if c.groups == nil {
		c.groups = make(map[string]*group)
	}
	if c.groups[name] == nil {
		c.groups[name] = new(group)
	}
	m := &member{ctx: ctx}
	c.groups[name].members = append(c.groups[name].members, m)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		m.removed = true
		c.settle(c.groups[name])
	}, nil
}

// Stats implements [Source].
func (c *Contexts) Stats() []Named {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]Named, 0, len(c.groups))
	for name, g := range c.groups {
		all = append(all, Named{name, c.settle(g)})
	}
	slices.SortFunc(all, func(a, b Named) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// settle returns the sum of a group. It forgets the members that were removed and have no open
// connections. c.mu is held.
func (c *Contexts) settle(g *group) ossl.Stats {
	var live ossl.Stats
	g.members = slices.DeleteFunc(g.members, func(m *member) bool {
		stats := m.ctx.Stats()
		if m.removed && stats.OpenConns == 0 {
			g.past = Sum(g.past, stats)
			c.forget(m.ctx)
			return true
		}
		live = Sum(live, stats)
		return false
	})
	return Sum(g.past, live)
}

// forget remembers that ctx was a member, as long as the program has it. c.mu is held.
func (c *Contexts) forget(ctx *ossl.Context) {
	if c.gone == nil {
		c.gone = make(map[weak.Pointer[ossl.Context]]bool)
	}
	maps.DeleteFunc(c.gone, func(p weak.Pointer[ossl.Context], _ bool) bool { return p.Value() == nil })
	c.gone[weak.Make(ctx)] = true
}
