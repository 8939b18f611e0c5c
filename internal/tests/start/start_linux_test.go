//go:build cgo || ossl_nocgo

// Package start counts the objects that a process makes before and during its first connection.
package start

import (
	"crypto/tls"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// envRole names the environment variable that makes the test program one of roles.
const envRole = "OSSL_TEST_START"

var roles = map[string]func() error{
	"import": importOnly, "connect": connectTwice, "many": connectMany, "resume": connectAndResume,
}

func TestMain(m *testing.M) {
	role := roles[os.Getenv(envRole)]
	if role == nil {
		os.Exit(m.Run())
	}
	if err := role(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run runs a role in a process of its own, and returns its output and its errors. The process has no
// host policy, with which more SSL_CTXs are made, and no FIPS mode, in which none is replaced.
func run(t *testing.T, role string, env ...string) (out, stderr string) {
	t.Helper()
	config := filepath.Join(t.TempDir(), "openssl.cnf")
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	program := tlstest.Self()
	cmd := exec.Command(program[0], program[1:]...)
	cmd.Env = append(os.Environ(), envRole+"="+role, "OPENSSL_CONF="+config, "OSSL_FIPS=", "GORACE=atexit_sleep_ms=0")
	cmd.Env = append(cmd.Env, env...)
	var errs strings.Builder
	cmd.Stderr = &errs
	all, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, all, &errs)
	}
	return strings.TrimSpace(string(all)), errs.String()
}

// importOnly prints the number of OpenSSL's mappings in a process that only imports ossl.
func importOnly() error {
	maps, err := os.ReadFile("/proc/self/maps")
	fmt.Println(strings.Count(string(maps), "libssl") + strings.Count(string(maps), "libcrypto"))
	return err
}

// initLine is a line of GODEBUG=inittrace=1 about a package that programs import.
var initLine = regexp.MustCompile(`(?m)^init (github\.com/ossl-go/ossl(?:/[a-z/]+)?) @.* (\d+) bytes, (\d+) allocs$`)

// TestImport checks that a program that imports ossl and doesn't use it loads no library, and
// allocates next to nothing: crypto/tls's own initialization takes 2 KB.
func TestImport(t *testing.T) {
	out, trace := run(t, "import", "GODEBUG=inittrace=1")
	if out != "0" {
		t.Errorf("%s mappings of OpenSSL", out)
	}
	packages, bytes, allocs := 0, 0, 0
	for _, m := range initLine.FindAllStringSubmatch(trace, -1) {
		if strings.Contains(m[1], "test") {
			continue
		}
		b, _ := strconv.Atoi(m[2])
		a, _ := strconv.Atoi(m[3])
		t.Logf("%s: %d bytes, %d allocations", m[1], b, a)
		packages, bytes, allocs = packages+1, bytes+b, allocs+a
	}
	if packages == 0 {
		t.Fatalf("no package of ossl is initialized:\n%s", trace)
	}
	if bytes > 16<<10 || allocs > 150 { // more than there are, for those of ASan and of later Go releases
		t.Errorf("%d bytes in %d allocations", bytes, allocs)
	}
}

// connectTwice connects a client twice and prints what the process has made: before the first
// connection, after it, and after the second. The last line is whether a slim library context can be
// used.
func connectTwice() error {
	server := tlstest.PlainServer(tls.VersionTLS13)
	server.Certificates = []tls.Certificate{tlstest.ServerCert(tlstest.P256)}
	ctx, err := ossl.NewContext(tlstest.PlainClient(tls.VersionTLS13))
	if err != nil {
		return err
	}
	for i := range 3 {
		if i > 0 {
			if _, _, err := tlstest.TryVisit(ossltest.ClientOf(ctx), tlstest.StdServer(server)); err != nil {
				return err
			}
		}
		contexts, slim := libssl.Made()
		fmt.Println(contexts, slim)
	}
	fmt.Println(libssl.UseSlim())
	return nil
}

// TestFirstConnection checks that a client's first connection takes one SSL_CTX, in the default library
// context, and that the second connection makes one in the slim library context.
func TestFirstConnection(t *testing.T) {
	out, _ := run(t, "connect")
	want := "1 false\n1 false\n1 false\nfalse"
	if strings.HasSuffix(out, "true") {
		want = "1 false\n1 false\n2 true\ntrue"
	}
	if out != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
}

// connectMany connects from several goroutines with Contexts that get other SSL_CTXs meanwhile.
func connectMany() error {
	visit, err := resuming()
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	errs := make(chan error, 8)
	for range cap(errs) {
		all.Go(func() {
			for range 20 {
				if _, err := visit(); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(errs)
	return <-errs
}

// connectAndResume connects twice, and prints whether the second connection was resumed.
func connectAndResume() error {
	visit, err := resuming()
	if err != nil {
		return err
	}
	if _, err := visit(); err != nil {
		return err
	}
	state, err := visit()
	fmt.Println(state.DidResume)
	return err
}

// resuming returns a function that connects a client and a server whose connections can be resumed.
func resuming() (visit func() (tls.ConnectionState, error), err error) {
	clientConfig, serverConfig := tlstest.Resuming(tls.VersionTLS13)
	client, err := ossl.NewContext(clientConfig)
	if err != nil {
		return nil, err
	}
	server, err := ossl.NewContext(serverConfig)
	if err != nil {
		return nil, err
	}
	return func() (tls.ConnectionState, error) {
		state, _, err := tlstest.TryVisit(ossltest.ClientOf(client), ossltest.ServerOf(server))
		return state, err
	}, nil
}

// TestReplacedContexts checks that connections succeed while their Contexts get other SSL_CTXs, and that
// the second connection resumes with the ticket of the first, which another SSL_CTX has made.
func TestReplacedContexts(t *testing.T) {
	run(t, "many")
	if out, _ := run(t, "resume"); out != "true" {
		t.Errorf("resumed: %s", out)
	}
}
