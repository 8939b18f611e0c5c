package status

import (
	"os"
	"strconv"
)

// PerSecond bounds the answers of a process.
const PerSecond = perSecond

// Answer sends a report to a client.
var Answer = answer

// StartInTest is Start, also in a test's program.
var StartInTest = start

// SocketName returns the name of the socket of a process in this PID namespace.
func SocketName(pid int) string {
	return socketName(namespace(strconv.Itoa(os.Getpid()), "pid"), pid)
}
