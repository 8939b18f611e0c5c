//go:build !unix

package main

import "os"

// restartSignals is empty: sockets can't be handed over on this system.
var restartSignals []os.Signal
