//go:build !unix

package ossl

import "io/fs"

// exposure is not known on this system.
func exposure(fs.FileInfo) string { return "" }
