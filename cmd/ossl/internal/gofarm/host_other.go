//go:build !unix

package gofarm

import "errors"

// errHost is the reason why there are no farms: they consist of symbolic links, and their linker is a script
// for sh(1).
var errHost = errors.New("ossl go needs a Unix system: it can build programs for Windows there")

// Exec returns an error.
func (p *Plan) Exec(string, []string) error { return errHost }
