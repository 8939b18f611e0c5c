//go:build !linux

package handover

import (
	"errors"
	"net"
	"os"
	"runtime"
	"syscall"
)

// errSystem is the error of every function on systems other than Linux. None of the functions below
// runs there, except checkPeer and pair, which come first.
var (
	errSystem   = errorf("connections can't be handed over on %s: %w", runtime.GOOS, errors.ErrUnsupported)
	errNoSocket = errSystem
)

type received struct {
	fd   int
	lost bool
}

func (r *received) close() {}

func (r *received) connection() (net.Conn, error)   { return nil, errSystem }
func (r *received) listener() (net.Listener, error) { return nil, errSystem }

func checkPeer(*net.UnixConn) error { return errSystem }

func pair() (*net.UnixConn, *os.File, error) { return nil, nil, errSystem }

func sendDescriptor(*net.UnixConn, []byte, syscall.RawConn) (n int, unsent, err error) {
	return 0, nil, errSystem
}

func readHeaderBytes(*net.UnixConn, []byte) (received, int, error) {
	return received{fd: -1}, 0, errSystem
}

func noDescriptorLeft(error) bool { return false }
func end(conn net.Conn)           { conn.Close() }
func closeOnExec(int)             {}
