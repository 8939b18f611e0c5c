//go:build !unix

package ossl

import "io/fs"

const nonblocking = 0 // there are no named pipes in folders

// exposure is not known on this system.
func exposure(fs.FileInfo) string { return "" }
