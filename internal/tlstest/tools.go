package tlstest

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// FileText is the text of [Files]: some kilobytes of lines.
var FileText = strings.Repeat("the quick brown fox jumps over the lazy dog 0123456789 abcdefgh\n", 64)

// Tool returns the path of a program, or skips the test if the program isn't installed.
func Tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	return path
}

// HostEnv returns the environment without the variables by which this process uses another OpenSSL
// or C library than the host's programs.
func HostEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "LD_LIBRARY_PATH", "LD_PRELOAD", "OPENSSL_MODULES", "OPENSSL_CONF", "OSSL_LIBRARY":
			return true
		}
		return false
	})
}

// Child prepares a program that is killed when the test has finished or takes too long.
func Child(t *testing.T, path string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = HostEnv()
	cmd.WaitDelay = Patience
	return cmd
}

// Files are paths of files: certificates and keys in PEM, and a text.
type Files struct{ CA, ServerCert, ServerKey, ClientCert, ClientKey, Text string }

// WriteFiles writes Files to a folder that is removed when the test has finished.
func WriteFiles(t *testing.T) (f Files) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, kind string, der ...[]byte) string {
		var b []byte
		for _, d := range der {
			b = append(b, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: d})...)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pair := func(name string, c tls.Certificate) (cert, key string) {
		der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
		if err != nil {
			t.Fatal(err)
		}
		return write(name+".crt", "CERTIFICATE", c.Certificate...), write(name+".key", "PRIVATE KEY", der)
	}
	f.CA = write("ca.crt", "CERTIFICATE", CA().Cert.Raw)
	f.ServerCert, f.ServerKey = pair("server", ServerCert(P256))
	f.ClientCert, f.ClientKey = pair("client", ClientCert(RSA2048))
	f.Text = filepath.Join(dir, "text")
	if err := os.WriteFile(f.Text, []byte(FileText), 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

// ServeTool starts a program that is a server. It returns the rest of the first line of output that
// begins with prefix: the address on which the program listens.
func ServeTool(t *testing.T, cmd *exec.Cmd, prefix string) (addr string) {
	t.Helper()
	pr, pw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = pw, pw
	in, err := cmd.StdinPipe() // open as long as it runs
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pw.Close()
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		in.Close()
		pr.Close()
	})
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(pr); s.Scan(); {
			select {
			case lines <- s.Text():
			case <-time.After(Patience): // nobody listens any more; the rest would only fill the pipe
			}
		}
	}()
	var all []string
	for line := range lines {
		all = append(all, line)
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			go func() {
				for range lines {
				}
			}()
			return strings.TrimSpace(rest)
		}
	}
	t.Fatalf("%s: %s", cmd, strings.Join(all, "\n"))
	return ""
}
