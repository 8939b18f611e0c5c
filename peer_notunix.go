//go:build !unix

package ossl

// atEnd can't tell here.
func atEnd(uintptr) bool { return false }

// nothingArrived can't tell here.
func nothingArrived(uintptr) bool { return false }
