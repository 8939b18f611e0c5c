//go:build !linux || 386 || s390x

package ktls

import (
	"errors"
	"syscall"

	"github.com/ossl-go/ossl/internal/libssl"
)

// Only Linux has kernel TLS. On 386 and s390x, package syscall has no setsockopt(2) system call.

// Begin reports false.
func Begin(syscall.RawConn, uint16) bool { return false }

// SetKey reports false.
func SetKey(syscall.RawConn, *libssl.KernelKey) (bool, error) { return false, nil }

// Send fails.
func Send(syscall.RawConn, uint8, []byte) error { return errors.ErrUnsupported }

// Shows reports false.
func Shows(syscall.RawConn, uint16) bool { return false }

// Sealed fails.
func Sealed(syscall.RawConn, *libssl.KernelKey) (uint64, error) { return 0, errors.ErrUnsupported }
