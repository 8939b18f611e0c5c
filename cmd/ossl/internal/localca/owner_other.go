//go:build !unix

package localca

import "io/fs"

// This system has no such modes.

func checkFile(string, fs.FileMode) error { return nil }

func checkNew(string) error { return nil }
