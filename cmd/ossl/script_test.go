package main

import (
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"ossl": main})
}

// TestScripts runs the command as a user would, with one script in testdata/script for each
// feature.
func TestScripts(t *testing.T) {
	commands := serverCommands()
	commands["exitcode"], commands["mode"] = exitCode, fileMode
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                commands,
		Setup: func(env *testscript.Env) error {
			// The scripts use the same library as the test.
			for _, name := range []string{"OSSL_LIBRARY", "LD_LIBRARY_PATH", "OPENSSL_CONF", "OPENSSL_MODULES"} {
				if value, ok := os.LookupEnv(name); ok {
					env.Setenv(name, value)
				}
			}
			// With the race detector each process would wait for a second before it exits.
			env.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=0"))
			if err := listenNotify(env); err != nil {
				return err
			}
			return startServers(env)
		},
	})
}

// startServers starts a server of HTTPS, whose address is $SERVER and whose certificate is in
// $WORK/roots.pem, and names an address at which nobody listens, $NOBODY.
func startServers(env *testscript.Env) error {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // a check breaks off handshakes
	server.StartTLS()
	env.Defer(server.Close)
	env.Setenv("SERVER", server.Listener.Addr().String())
	env.Setenv("NOBODY", "127.0.0.1:1") // tcpmux; a port that was free a moment ago may be another process's now
	roots := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return os.WriteFile(filepath.Join(env.WorkDir, "roots.pem"), roots, 0o600)
}

// exitCode is the command "exitcode N PROGRAM [ARGS...]": it runs the program and checks that its
// exit code is N. "! exec" can't distinguish a failure from a wrong command line.
func exitCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode N program [args...]")
	}
	code := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code is %d, not %s", code, args[0])
	}
}

// fileMode is the command "mode OCTAL FILE": it checks the permissions of a file.
func fileMode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mode octal file")
	}
	info, err := os.Stat(ts.MkAbs(args[1]))
	ts.Check(err)
	if mode := strconv.FormatUint(uint64(info.Mode().Perm()), 8); mode != args[0] {
		ts.Fatalf("%s has the mode %s, not %s", args[1], mode, args[0])
	}
}
