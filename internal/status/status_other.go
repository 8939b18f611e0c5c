//go:build !linux

package status

import (
	"context"
	"runtime"
)

// Start does nothing on this system.
func Start(func() Report) {}

// Counts returns no counts on this system.
func Counts() Asked { return Asked{} }

// Ask reports that processes don't answer on this system.
func Ask(context.Context, int) (Report, error) {
	return Report{}, askError(Failed, "", "processes can be asked on Linux only, not on %s", runtime.GOOS)
}
