package main

import (
	"fmt"
	"strings"

	"github.com/ossl-go/ossl/cmd/ossl/internal/bench/rounds"
)

// floors are the measurements that are lower bounds for any binding to libssl, by the name that
// replaces the implementations'.
var floors = []struct {
	impl, what string
	mixed      bool // also applies to connections between ossl and crypto/tls
}{
	{"c", "pure C", false},
	{"tcp", "plain TCP", true},
}

// isFloor reports whether n is the name of a floor.
func (n name) isFloor() bool {
	for _, f := range floors {
		if n.key("server") == f.impl || n.key("impl") == f.impl {
			return true
		}
	}
	return false
}

// A floor is the floor of a benchmark, as a ratio to crypto/tls; the zero value means that there is
// none.
type floor struct {
	what  string // "pure C"
	ratio rounds.Ratio
}

func (f floor) String() string {
	if f.what == "" {
		return ""
	}
	return fmt.Sprintf("%s %.2f", f.what, f.ratio.Median)
}

// floorName returns the name and the kind of the floor of n, which is a benchmark of ossl; "" if
// none was measured. The floor must have all of n's keys except for the implementations and the
// record path: C that verifies no chain is not a floor of handshakes that do.
func (r *results) floorName(n name) (floor name, what string) {
	for _, f := range floors {
		floor := n.without("record").with("server", f.impl).with("client", f.impl).with("impl", f.impl)
		if r.values[floor] != nil && (f.mixed || n.key("server") == n.key("client")) {
			return floor, f.what
		}
	}
	return "", ""
}

// floorOf returns the floor of n in a unit that was measured for both the floor and crypto/tls.
func (r *results) floorOf(n name, unit string) floor {
	name, what := r.floorName(n)
	if ratio := r.ratio(name, name.std(), unit); ratio.Rounds > 0 {
		return floor{what, ratio}
	}
	return floor{}
}

// checkFloors returns an error for floors that were measured with another libssl, or in other
// rounds.
func (r *results) checkFloors() error {
	for _, n := range r.names {
		if !n.isFloor() {
			continue
		}
		if versions := r.config["libssl"]; n.key("server") == "c" && len(versions) > 1 {
			return fmt.Errorf("%s: is of libssl %s, which of them can't be told", n, strings.Join(versions, " or "))
		}
		if std := n.std(); r.values[std] != nil && r.rounds(n) != r.rounds(std) {
			return fmt.Errorf("%s has %d rounds, and %s %d", n, r.rounds(n), std, r.rounds(std))
		}
	}
	return nil
}
