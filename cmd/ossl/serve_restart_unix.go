//go:build unix

package main

import (
	"os"
	"syscall"
)

// restartSignals start the program again.
var restartSignals = []os.Signal{syscall.SIGUSR2}
