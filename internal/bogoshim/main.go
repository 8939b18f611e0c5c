// Bogoshim makes BoringSSL's TLS test runner test ossl: it speaks the runner's protocol for shims,
// which ssl/test/PORTING.md in BoringSSL's source describes.
//
// The runner starts one process for each test. The process connects to the runner, sends its shim
// ID, takes the role of a client or a server and echoes the received bytes with all bits flipped,
// until the runner closes the connection. Its flags specify the configuration and the expected
// results. It exits with 0 on success, with 1 and a reason on failure, and with 89 if a flag needs
// a feature that ossl doesn't have.
//
// ci/bogo runs it; config.json lists the runner's tests that are left out, and why.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

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
			fmt.Println("No") // whether the shim supports BoringSSL's split of a handshake between two processes
			return
		}
		err = run(t)
	}
	exit(err, t.initial.unimplementedLog)
}

// unimplemented names a feature that the shim, or ossl, doesn't have.
type unimplemented string

func (u unimplemented) Error() string { return "unimplemented: " + string(u) }

// exit exits with the status for err. It appends an unimplemented feature to the file log, if there
// is one.
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

// describe adds OpenSSL's reason to errors with crypto/tls's text, so that the runner can
// distinguish them.
func describe(err error) string {
	text := err.Error()
	var library *ossl.LibraryError
	if errors.As(err, &library) && (library.Error() != text || !strings.Contains(text, library.Reason)) {
		text += fmt.Sprintf(" [ossl: %s: %s (%v)]", library.Op, library.Reason, errors.Unwrap(library))
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
