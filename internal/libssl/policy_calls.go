package libssl

import (
	"bytes"
	"errors"
	"fmt"
	"syscall"
	"unsafe"
)

// Commands returns the configuration's commands for every SSL_CTX, in order. It returns an error if
// they can't be used.
func (c *Config) Commands() ([]HostCommand, error) {
	var n c_size_t
	var problem *c_char
	var errs [errorSlots]c_ulong
	p := c_ossl_policy_read(c.p, &n, &problem, &errs[0])
	defer c_free(unsafe.Pointer(p))
	queue := &Error{Codes: codes(&errs)}
	if queue.NoMemory() || c_GoString(problem) == "out of memory" {
		return nil, syscall.ENOMEM
	}
	if p == nil {
		err := ErrNoContext
		if problem != nil {
			err = errors.New(c_GoString(problem))
		}
		if reason := queue.Reason(); reason != "" {
			err = fmt.Errorf("%w: %s", err, reason)
		}
		if queue.hasReason(reasonNoCiphers) {
			err = fmt.Errorf("%w: no provider is active that has them; activate \"default\", and look for the modules of the others", err)
		}
		return nil, err
	}
	// For each a byte, a name and a value, both terminated by zeros.
	var commands []HostCommand
	for list := bytes.Clone(borrowed(p, n)); len(list) > 0; {
		name, rest, _ := bytes.Cut(list[1:], []byte{0})
		value, rest, _ := bytes.Cut(rest, []byte{0})
		commands = append(commands, HostCommand{Name: string(name), Value: string(value), Done: list[0] == 1})
		list = rest
	}
	return commands, nil
}

// NoTickets reports whether the context's SSL_CTX has tickets turned off.
func (c *Context) NoTickets() bool {
	ssl := c.mustHold()
	defer ssl.release()
	return c_ossl_ctx_no_tickets(ssl.p) == 1
}
