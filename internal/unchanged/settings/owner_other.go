//go:build !unix

package settings

import "io/fs"

// checkOwner returns nil: this system has no modes to check.
func checkOwner(fs.FileInfo) error { return nil }
