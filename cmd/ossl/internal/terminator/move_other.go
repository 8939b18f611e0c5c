//go:build !unix

package terminator

import (
	"errors"
	"net"
	"os"
)

func inheritMoves(uintptr) (*net.UnixConn, error) { return nil, errors.ErrUnsupported }

func connOf(int) (net.Conn, error) { return nil, errors.ErrUnsupported }

func rights([]int) []byte { return nil }

func readRights(*net.UnixConn, []byte) (int, []int, error) { return 0, nil, errors.ErrUnsupported }

func closeAll([]int) {}

func duplicate(any) (*os.File, error) { return nil, errors.ErrUnsupported }
