package terminator

import (
	"log/slog"
	"net/netip"
	"time"
)

// A Choice chooses among backends, for tests. Its clock stands still.
type Choice struct {
	backends *backends
	now      time.Time
}

// NewChoice returns a Choice of some backends.
func NewChoice(balance string, names ...string) *Choice {
	c := &Choice{now: time.Now()}
	now := func() time.Time { return c.now }
	c.backends = &backends{byAddress: balance == "address", log: slog.New(slog.DiscardHandler), now: now}
	for _, name := range names {
		c.backends.members = append(c.backends.members, &member{name: name, health: newHealth()})
	}
	return c
}

// Pick chooses a backend for a client's address other than those that have been tried, or returns
// "".
func (c *Choice) Pick(address string, tried ...string) string {
	var not []*member
	for _, name := range tried {
		not = append(not, c.member(name))
	}
	m := c.backends.pick(&client{address: netip.AddrPortFrom(netip.MustParseAddr(address), 1)}, not)
	if m == nil {
		return ""
	}
	return m.name
}

func (c *Choice) member(name string) *member {
	for _, m := range c.backends.members {
		if m.name == name {
			return m
		}
	}
	panic(name)
}

// The events at a backend.
func (c *Choice) Leave(name string)              { c.member(name).leave() }
func (c *Choice) Answer(name string)             { c.member(name).answered() }
func (c *Choice) Fail(name string)               { c.member(name).failed(c.now) }
func (c *Choice) TimeOut(name string)            { c.member(name).timedOut(c.now) }
func (c *Choice) Checked(name string, err error) { c.member(name).checked(err) }
func (c *Choice) Up(name string) bool            { return c.member(name).up() }
func (c *Choice) Advance(d time.Duration)        { c.now = c.now.Add(d) }
