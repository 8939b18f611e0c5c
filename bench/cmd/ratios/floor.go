package main

import (
	"fmt"
	"strings"
)

// floors are what is measured beside ossl that no binding to libssl can beat, by the name that takes the implementations' place.
var floors = []struct {
	impl, what string
	mixed      bool // it says something about connections between ossl and crypto/tls, too
}{
	{"c", "pure C", false},
	{"tcp", "plain TCP", true},
}

// isFloor reports whether n is a floor's.
func (n name) isFloor() bool {
	for _, f := range floors {
		if n.key("server") == f.impl {
			return true
		}
	}
	return false
}

// A floor is a benchmark's, as a ratio to crypto/tls's; the zero value is that of a benchmark that has none.
type floor struct {
	what  string // "pure C"
	ratio float64
}

func (f floor) String() string {
	if f.what == "" {
		return ""
	}
	return fmt.Sprintf("%s %.2f", f.what, f.ratio)
}

// floorName returns the benchmark that is the floor of n, which is one of ossl's, and what it is; "" if none was measured. All
// that is in n's name but the implementations and the record path is in the floor's: C that verifies no chain is no floor of
// handshakes that do.
func (r *results) floorName(n name) (floor name, what string) {
	for _, f := range floors {
		floor := n.without("record").with("server", f.impl).with("client", f.impl)
		if r.values[floor] != nil && (f.mixed || n.key("server") == n.key("client")) {
			return floor, f.what
		}
	}
	return "", ""
}

// floorOf returns the floor of n in a unit that both it and crypto/tls were measured in.
func (r *results) floorOf(n name, unit string) floor {
	name, what := r.floorName(n)
	if len(r.values[name][unit]) == 0 || len(r.values[name.std()][unit]) == 0 {
		return floor{}
	}
	return floor{what, r.medians(name, unit)}
}

// checkFloors reports floors that were not measured beside the rest: with another libssl, or in other rounds.
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
