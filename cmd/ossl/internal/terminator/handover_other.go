//go:build !unix

package terminator

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
)

// HandOver is not possible on this system.
func (s *Server) HandOver(context.Context, *exec.Cmd) error { return errors.ErrUnsupported }

func inheritListener(uintptr, string) (net.Listener, error) { return nil, errors.ErrUnsupported }

func inheritTicketKeys(uintptr) ([]agedKey, error) { return nil, errors.ErrUnsupported }

func inheritFile(fd uintptr, name string) *os.File { return os.NewFile(fd, name) }

func keepFromChildren(int) {}
