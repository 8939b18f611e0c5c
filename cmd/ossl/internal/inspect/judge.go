package inspect

import (
	"fmt"
	"slices"
)

// Modes are the modes of "ossl go", each stricter than the one before.
var Modes = []string{"off", "prefer", "require"}

// A Verdict says whether a program or a process has its TLS on OpenSSL.
type Verdict struct {
	OK     bool   `json:"on_ossl"`
	Reason string `json:"reason,omitempty"` // if it isn't OK
	Do     string `json:"do,omitempty"`     // the remedy, or ""
}

func bad(do, format string, args ...any) Verdict {
	return Verdict{Reason: fmt.Sprintf(format, args...), Do: do}
}

// Judge judges a program. If a mode is required, the program must have been built by "ossl go" with
// that mode or a stricter one.
func (p *Program) Judge(required string) Verdict {
	switch {
	case p.Engine == None:
		return bad("leave it out", "it has no TLS")
	case p.problem != "":
		return bad("", "%s", p.problem)
	case p.Engine == Go && p.embedded:
		return bad("build it with 'ossl go'", "its TLS is crypto/tls: the mark of 'ossl go' in it belongs to a file that it embeds")
	case p.Engine == Go:
		return bad("build it with 'ossl go'", "its TLS is crypto/tls")
	case p.CGO != nil && !*p.CGO && !p.object:
		return bad("install a C compiler, and build it with CGO_ENABLED=1",
			"it was built without cgo, and without ossl's object, so it can't load OpenSSL")
	case p.Static:
		return bad("link it without -static", "it is linked statically, so it can't load OpenSSL")
	case p.Unchanged != nil:
		return judgeMode(p.Unchanged.Mode, required)
	case required != "":
		return bad("build it with 'ossl go'", "only 'ossl go' gives programs a mode, and it wasn't built by that")
	}
	return Verdict{OK: true}
}

// judgeMode judges the mode of a program or process that "ossl go" has built.
func judgeMode(mode, required string) Verdict {
	rank := slices.Index(Modes, mode)
	switch {
	case rank < 0:
		return bad("use the command that has built it", "this command doesn't know its mode, %q", mode)
	case rank == 0:
		return bad("", "its mode is off, so its TLS is crypto/tls")
	case rank < slices.Index(Modes, required):
		return bad("build it with 'ossl go --mode "+required+"'", "its mode is %s, not %s", mode, required)
	}
	return Verdict{OK: true}
}
