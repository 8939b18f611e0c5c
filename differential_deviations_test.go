//go:build cgo

package ossl_test

import (
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// A deviation is a difference to crypto/tls that libssl forces, or that this package makes on purpose. docs/COMPATIBILITY.md
// quotes the table. Anything that differs without a row here fails the suite.
type deviation struct {
	// Cases matches names of subtests, without "TestDifferential".
	Cases string
	// Where says who observes it, as "ossl client" or "std server"; empty means anyone.
	Where string
	// Field is what differs; empty means any of tlstest.Fields.
	Field string
	// Std and Ossl match what crypto/tls and this package give; empty means anything.
	Std, Ossl string
	// From and Before limit it to versions of libssl, as "3.0" and "3.5"; empty means no limit.
	From, Before string
	// Reason is the row's text in the documentation.
	Reason string

	seen *atomic.Int64
}

func (d *deviation) applies(name string, p tlstest.Pairing, where, field, want, got string) bool {
	return matches(d.Cases, name) && (d.Where == "" || d.Where == where) && (d.Field == "" || d.Field == field) &&
		matches(d.Std, want) && matches(d.Ossl, got) && d.inVersion()
}

func (d *deviation) inVersion() bool {
	return (d.From == "" || libraryAtLeast(d.From)) && (d.Before == "" || !libraryAtLeast(d.Before))
}

func matches(pattern, s string) bool {
	return pattern == "" || regexp.MustCompile("^(?:"+pattern+")$").MatchString(s)
}

func init() {
	for i := range deviations {
		deviations[i].seen = new(atomic.Int64)
	}
}

// checkStale fails a test whose rows in the table were not needed: a difference that is gone must leave the table too.
// Each differential test defers it.
func checkStale(t *testing.T) {
	if strings.Contains(runFlag(), "/") || t.Skipped() || testing.Short() {
		return // not all cases have run
	}
	prefix := strings.TrimPrefix(t.Name(), "TestDifferential")
	for _, d := range deviations {
		if strings.HasPrefix(d.Cases, prefix+"/") && d.inVersion() && d.seen.Load() == 0 {
			t.Errorf("nothing deviates any more as this row of the table says: %s %s: %s", d.Cases, d.Where, d.Reason)
		}
	}
}

var deviations = []deviation{}
