//go:build !linux || 386 || s390x

package ossl

import (
	"errors"
	"syscall"

	"github.com/ossl-go/ossl/internal/libssl"
)

// Kernel TLS is Linux's. Its two processors left out have no system call setsockopt(2) of their own in package syscall.

func beginKernelTLS(syscall.RawConn, uint16) bool { return false }

func setKernelKey(syscall.RawConn, *libssl.KernelKey) (bool, error) { return false, nil }

func sendKernelRecord(syscall.RawConn, uint8, []byte) error { return errors.ErrUnsupported }
