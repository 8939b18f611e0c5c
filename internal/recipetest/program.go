package recipetest

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// Program returns the path of a program, which may be in the folders of daemons, or skips the test.
func Program(t *testing.T, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
		if path := filepath.Join("/usr/sbin", name); exists(path) {
			return path
		}
	}
	t.Skipf("%s is not installed: ci/recipes installs it", names[0])
	return ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Serve starts a server's program, and waits for a line of its output that contains ready. The
// program and its children are killed when the test has finished.
func Serve(t *testing.T, ready string, env []string, path string, args ...string) {
	t.Helper()
	// The shell kills the program even if this process is killed, since the shell's input is closed
	// then.
	const script = `setsid "$@" </dev/null & read _; kill -s KILL -- "-$!"; wait`
	cmd := exec.Command("/bin/sh", append([]string{"-c", script, "sh", path}, args...)...)
	cmd.Env = append(tlstest.HostEnv(), env...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	drained := make(chan struct{})
	t.Cleanup(func() {
		stdin.Close()
		<-drained
		cmd.Wait()
	})
	tooLong := time.AfterFunc(2*tlstest.Patience, func() { stdin.Close() }) // which makes the program exit and close its output
	defer tooLong.Stop()
	lines := bufio.NewScanner(output)
	var said []string
	for lines.Scan() {
		said = append(said, lines.Text())
		if strings.Contains(lines.Text(), ready) {
			go func() {
				defer close(drained)
				io.Copy(io.Discard, output)
			}()
			return
		}
	}
	close(drained)
	t.Fatalf("%s doesn't start:\n%s", path, strings.Join(said, "\n"))
}
