package terminator_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestChoice: requests go to the backend with the least under way that is well, and to the least
// bad one if none is.
func TestChoice(t *testing.T) {
	const client = "192.0.2.1"
	late := errors.New("too late")
	t.Run("least", func(t *testing.T) {
		c := terminator.NewChoice("", "a", "b", "c")
		seen := map[string]bool{}
		for range 3 {
			seen[c.Pick(client)] = true
		}
		if len(seen) != 3 {
			t.Errorf("chosen: %v", seen)
		}
		c.Leave("b")
		if got := c.Pick(client); got != "b" {
			t.Errorf("%q, not the idle one", got)
		}
		if got := c.Pick(client, "a", "b", "c"); got != "" {
			t.Errorf("%q, though all have been tried", got)
		}
	})
	// picks returns the backends that some requests get. Each request finishes at once.
	picks := func(c *terminator.Choice, n int) (seen map[string]int) {
		seen = map[string]int{}
		for range n {
			name := c.Pick(client)
			seen[name]++
			c.Leave(name)
		}
		return seen
	}
	t.Run("failure", func(t *testing.T) {
		c := terminator.NewChoice("", "a", "b")
		c.Fail("a")
		if seen := picks(c, 10); seen["a"] > 0 || c.Up("a") {
			t.Errorf("after a failure: %v", seen)
		}
		c.Advance(11 * time.Second)
		if seen := picks(c, 10); seen["a"] != 1 || c.Up("a") {
			t.Errorf("after the pause not one request tries it: %v", seen)
		}
		c.Answer("a")
		if seen := picks(c, 10); seen["a"] != 5 || !c.Up("a") {
			t.Errorf("after an answer: %v", seen)
		}
	})
	t.Run("late", func(t *testing.T) {
		c := terminator.NewChoice("", "a", "b")
		c.TimeOut("a")
		c.TimeOut("a")
		c.Answer("a")
		c.TimeOut("a")
		c.TimeOut("a")
		if !c.Up("a") {
			t.Error("paused, though it has answered between")
		}
		c.TimeOut("a")
		if seen := picks(c, 10); seen["a"] > 0 || c.Up("a") {
			t.Errorf("after three late answers: %v", seen)
		}
	})
	t.Run("none is well", func(t *testing.T) {
		c := terminator.NewChoice("", "a", "b", "c")
		c.Checked("c", late)
		c.Fail("a")
		c.Advance(time.Second)
		c.Fail("b")
		if seen := picks(c, 5); seen["a"] != 5 {
			t.Errorf("chosen: %v, not the one whose pause ends first", seen)
		}
		if got := c.Pick(client, "a", "b"); got != "c" {
			t.Errorf("%q: a backend whose checks fail is the last resort", got)
		}
	})
	t.Run("checks", func(t *testing.T) {
		c := terminator.NewChoice("", "a", "b")
		for _, step := range []struct {
			err error
			up  bool
		}{{late, false}, {nil, true}, {late, true}, {nil, true}, {late, true}, {late, false}, {late, false}, {nil, true}} {
			if c.Checked("a", step.err); c.Up("a") != step.up {
				t.Fatalf("after a check with the error %v: %v", step.err, c.Up("a"))
			}
			if seen := picks(c, 4); (seen["a"] > 0) != step.up {
				t.Errorf("chosen: %v", seen)
			}
		}
		c.Fail("a")
		if c.Checked("a", nil); !c.Up("a") {
			t.Error("a check doesn't end a pause")
		}
	})
	t.Run("address", func(t *testing.T) {
		c := terminator.NewChoice("address", "a", "b", "c")
		home := map[string]string{}
		count := map[string]int{}
		for i := range 300 {
			client := fmt.Sprintf("192.0.%d.%d", i/200, i%200)
			home[client] = c.Pick(client)
			count[home[client]]++
		}
		for name, n := range count {
			if n < 60 {
				t.Errorf("%s has %d of 300 clients", name, n)
			}
		}
		c.Fail("b")
		for client, name := range home {
			got := c.Pick(client)
			if name == "b" && got == "b" || name != "b" && got != name {
				t.Errorf("a client of %s moves to %s", name, got)
			}
		}
		if a, b := c.Pick("2001:db8:1:2::3"), c.Pick("2001:db8:1:2:ffff::4"); a != b {
			t.Error("two addresses of one /64 have different backends")
		}
	})
}
