//go:build cgo

package libssl

// #include <stdlib.h>
// #include "policy.h"
import "C"

import (
	"bytes"
	"errors"
	"fmt"
	"unsafe"
)

// HostCommands returns the commands in a configuration file for every SSL_CTX, in order; none if
// there is no file. It returns an error if the file can't be used. The library must be loaded.
func HostCommands(file string) ([]HostCommand, error) {
	name := C.CString(file)
	defer C.free(unsafe.Pointer(name))
	var n C.size_t
	var problem *C.char
	var errs [errorSlots]C.ulong
	p := C.ossl_policy_read(name, &n, &problem, &errs[0])
	if p == nil {
		err := ErrNoContext
		if problem != nil {
			err = errors.New(C.GoString(problem))
		}
		queue := &Error{Codes: codes(&errs)}
		if reason := queue.Reason(); reason != "" {
			err = fmt.Errorf("%w: %s", err, reason)
		}
		if queue.hasReason(reasonNoCiphers) {
			err = fmt.Errorf("%w: no provider is active that has them; activate \"default\", and look for the modules of the others", err)
		}
		return nil, err
	}
	defer C.free(unsafe.Pointer(p))
	// For each a byte, a name and a value, both ended by zeros.
	var commands []HostCommand
	for list := bytes.Clone(borrowed(p, n)); len(list) > 0; {
		name, rest, _ := bytes.Cut(list[1:], []byte{0})
		value, rest, _ := bytes.Cut(rest, []byte{0})
		commands = append(commands, HostCommand{Name: string(name), Value: string(value), Done: list[0] == 1})
		list = rest
	}
	return commands, nil
}

// ConfigFile returns the file that libcrypto reads its configuration from by default, or "".
func ConfigFile() string {
	file := C.ossl_policy_file()
	defer C.free(unsafe.Pointer(file))
	return C.GoString(file)
}

// NoTickets reports whether the context's SSL_CTX has tickets turned off.
func (c *Context) NoTickets() bool {
	c.mustHold()
	defer c.release()
	return C.ossl_ctx_no_tickets(c.p) == 1
}
