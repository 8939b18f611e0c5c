//go:build !linux

package bench

import (
	"errors"
	"time"
)

// errLinux is the error of measurements that read Linux's clocks and files.
var errLinux = errors.New("bench: this is measured on Linux only")

func raiseFileLimit(uint64) error { return errLinux }

func hasThreadTime() error { return errLinux }

func threadTime() time.Duration { panic(errLinux) }
