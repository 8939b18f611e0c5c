//go:build !unix

package settings

import "io/fs"

// CheckOwner returns nil: this system has no modes to check.
func CheckOwner(fs.FileInfo) error { return nil }
