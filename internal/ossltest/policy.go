package ossltest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// envPolicy is set for a process that UnderPolicy has started.
const envPolicy = "OSSL_TEST_HOST_POLICY"

// PolicyMain is the head of an openssl.cnf whose further lines are the commands of a policy.
const PolicyMain = "openssl_conf = main\n[main]\nssl_conf = tls\n[tls]\nsystem_default = system\n[system]\n"

// UnderPolicy runs a test in a process of its own whose openssl.cnf is conf: this test program
// again. A process reads the host's policy once. A test must do nothing else.
func UnderPolicy(t *testing.T, conf string, check func(t *testing.T), env ...string) {
	if os.Getenv(envPolicy) != "" {
		check(t)
		return
	}
	file := filepath.Join(t.TempDir(), "openssl.cnf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	// The test's name as -test.run takes it, each part on its own.
	var parts []string
	for _, part := range strings.Split(t.Name(), "/") {
		parts = append(parts, "^"+regexp.QuoteMeta(part)+"$")
	}
	program := tlstest.Self()
	cmd := exec.CommandContext(t.Context(), program[0], append(program[1:],
		"-test.v", "-test.run="+strings.Join(parts, "/"), "-test.timeout=1m")...)
	// The race detector's default is to sleep for a second before a process exits.
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"), envPolicy+"=1", "OPENSSL_CONF="+file)
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name()+" (")) {
		t.Errorf("%v\n%s", err, out)
	}
}
