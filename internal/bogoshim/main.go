// Bogoshim lets BoringSSL's TLS test runner test ossl: it speaks the runner's protocol for a shim, which ssl/test/PORTING.md in
// BoringSSL's source describes.
//
// The runner starts one process for each test. The process connects to the runner, sends the identity that it was given, takes a
// client's or a server's role and returns what it reads with all bits flipped, until the runner ends the connection. Its flags
// say how to be configured and what to expect. It exits with 0 if all went well, with 1 and a reason if not, and with 89 if a
// flag asks for what ossl doesn't have.
//
// ci/bogo runs it; config.json says which of the runner's tests are left out and why.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/ossl-go/ossl"
)

// Exit statuses, by the runner's protocol.
const (
	exitFailure       = 1
	exitUnimplemented = 89
)

func main() {
	args := os.Args[1:]
	if len(args) > 0 {
		switch args[0] { // ci/bogo's own
		case "-runner-config":
			exit(printRunnerConfig(args[1:]), "")
		case "-explain":
			exit(explain(args[1:]), "")
		}
	}
	t, err := parseFlags(args)
	if err == nil {
		if t.initial.isHandshakerSupported {
			fmt.Println("No") // BoringSSL's split of a handshake between two processes
			return
		}
		err = run(t)
	}
	exit(err, t.initial.unimplementedLog)
}

// unimplemented says what the shim, or ossl, does not have.
type unimplemented string

func (u unimplemented) Error() string { return "unimplemented: " + string(u) }

// exit ends the process. What is unimplemented is added to the file log, if there is one.
func exit(err error, log string) {
	var u unimplemented
	switch {
	case err == nil:
		os.Exit(0)
	case errors.As(err, &u):
		if log != "" {
			if err := appendLine(log, string(u)); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitUnimplemented)
	}
	fmt.Fprintln(os.Stderr, describe(err))
	os.Exit(exitFailure)
}

// describe adds OpenSSL's reason where an error has crypto/tls's text, so that the runner's expectations can be told apart.
func describe(err error) string {
	text := err.Error()
	var library *ossl.LibraryError
	if errors.As(err, &library) && library.Error() != text {
		text += " [" + library.Error() + "]"
	}
	return text
}

func appendLine(name, line string) error {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}
