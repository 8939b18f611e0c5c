package bench

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ossl-go/ossl/bench/rounds"
	"github.com/ossl-go/ossl/bench/startup"
)

// A Start is one run of a program from its start to its end.
type Start struct {
	CPU     time.Duration // processor time, the program loader's included
	Elapsed time.Duration
}

// Starts runs each program n times and once before that, in rounds. The programs get a folder with a
// new certificate as their argument (package startup). librun is a program that starts another one
// on an OpenSSL of its own, or "".
func Starts(programs []string, librun string, n int) (rounds.Samples[string, Start], error) {
	dir, err := os.MkdirTemp("", "start-up")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := writeIdentity(dir); err != nil {
		return nil, err
	}
	loader, env, err := loaderOf(librun)
	if err != nil {
		return nil, err
	}
	run := func(_ int, program string) (Start, error) {
		return start(slices.Concat(loader, []string{program, dir}), env)
	}
	seed := rand.Uint64()
	if _, err := rounds.Take(1, seed, [][]string{programs}, run); err != nil { // fills the system's caches
		return nil, err
	}
	return rounds.Take(n, seed, [][]string{programs}, run)
}

func start(command, env []string) (s Start, err error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = env
	var output bytes.Buffer // one pipe for both, as without an output
	cmd.Stdout, cmd.Stderr = &output, &output
	begin := time.Now()
	if err := cmd.Run(); err != nil {
		return s, fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, &output)
	}
	s.Elapsed = time.Since(begin)
	s.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return s, nil
}

// loaderOf returns the command and the environment with which librun starts a program, so that its
// own time is not measured: it is a script that ends in a call of a program loader.
func loaderOf(librun string) (command, env []string, err error) {
	if librun == "" {
		return nil, os.Environ(), nil
	}
	ask := func(file string) ([]string, error) {
		out, err := exec.Command(librun, "cat", "/proc/self/"+file).Output()
		return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"), err
	}
	command, commandErr := ask("cmdline")
	env, envErr := ask("environ")
	if err := errors.Join(commandErr, envErr); err != nil || len(command) < 2 {
		return nil, nil, fmt.Errorf("%s starts no program: %w", librun, err)
	}
	return command[:len(command)-2], env, nil // without cat and its argument
}

func writeIdentity(dir string) error {
	id, err := identityOf(P256)
	if err != nil {
		return err
	}
	key, err := x509.MarshalPKCS8PrivateKey(id.server.PrivateKey)
	if err != nil {
		return err
	}
	for file, block := range map[string]*pem.Block{
		startup.CertFile: {Type: "CERTIFICATE", Bytes: id.server.Certificate[0]},
		startup.KeyFile:  {Type: "PRIVATE KEY", Bytes: key},
		startup.RootFile: {Type: "CERTIFICATE", Bytes: id.root.Raw},
	} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			return err
		}
	}
	return nil
}
