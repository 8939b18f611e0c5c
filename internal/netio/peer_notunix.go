//go:build !unix

package netio

// AtEnd can't tell here.
func AtEnd(uintptr) bool { return false }

// nothingArrived can't tell here.
func nothingArrived(uintptr) bool { return false }
