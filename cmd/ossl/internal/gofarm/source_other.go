//go:build !unix

package gofarm

import "errors"

func isOurs(string) error { return errors.New("not on this system") }
