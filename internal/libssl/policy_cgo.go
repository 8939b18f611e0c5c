//go:build cgo && unix

package libssl

// #include <stdlib.h>
// #include "policy.h"
import "C"

import (
	"bytes"
	"runtime"
	"unsafe"
)

// HostCommands returns the commands that SSL_CTX_new carries out, in their order. known is false if this libcrypto doesn't tell.
// The error says that OpenSSL makes no SSL_CTX under the host's configuration. The library must be loaded.
func HostCommands() (commands []HostCommand, known bool, err error) {
	var n C.size_t
	var told C.int
	var errs [errorSlots]C.ulong
	p := C.ossl_policy_read(&n, &told, &errs[0])
	if p == nil {
		return nil, told == 1, &Error{Op: "read the host's policy", Codes: codes(&errs)}
	}
	defer C.free(unsafe.Pointer(p))
	// A byte, a name and a value each, ended by zeros.
	list := bytes.Clone(borrowed(p, n))
	for len(list) > 0 {
		var c HostCommand
		c.Done = list[0] == 1
		name, rest, _ := bytes.Cut(list[1:], []byte{0})
		value, rest, _ := bytes.Cut(rest, []byte{0})
		c.Name, c.Value, list = string(name), string(value), rest
		commands = append(commands, c)
	}
	return commands, told == 1, nil
}

// ConfigFile returns the file that libcrypto reads its configuration from by default, or "".
func ConfigFile() string {
	file := C.ossl_policy_file()
	defer C.free(unsafe.Pointer(file))
	return C.GoString(file)
}

// NoTickets reports whether the context's SSL_CTX has tickets turned off.
func (c *Context) NoTickets() bool {
	defer runtime.KeepAlive(c)
	return C.ossl_ctx_no_tickets(c.p) == 1
}
