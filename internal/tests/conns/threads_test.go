//go:build (cgo || ossl_nocgo) && linux

package conns

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// envThreads makes a separate process count the threads that handshakes start.
const envThreads = "OSSL_TEST_THREADS"

// TestThreads: handshakes don't hold a thread each while they wait for Go to verify a server's
// certificate or a client's, or to sign. The limit is far above the number of threads that Go
// starts because others wait for a lock in C: 8 to 13 with glibc, 25 to 60 with musl, whose malloc
// has one lock, however many handshakes there are. OSSL_SOAK is their number.
func TestThreads(t *testing.T) {
	const limit = 100
	handshakes := 10 * limit
	if testing.Short() {
		handshakes = 2 * limit
	}
	if n, err := strconv.Atoi(os.Getenv("OSSL_SOAK")); err == nil {
		handshakes = n
	}
	if what := os.Getenv(envThreads); what != "" {
		makeThreads(t, what, handshakes)
		return
	}
	if libssl.PausesHoldThreads() {
		t.Skipf("OpenSSL %s: on this processor a handshake that waits for Go holds a thread", ossltest.Version())
	}
	if ossltest.InFIPS {
		t.Skipf("OpenSSL %s: FIPS mode refuses keys that are a crypto.Signer", ossltest.Version())
	}
	for _, kind := range []string{"server certificate", "mutual", "signer"} {
		t.Run(kind, func(t *testing.T) {
			own := threadsOf(t, "ossl/"+kind)
			t.Logf("%d handshakes at once: ossl makes %d threads", handshakes, own)
			if !testing.Short() { // nothing but this line needs the number
				t.Logf("crypto/tls makes %d", threadsOf(t, "std/"+kind))
			}
			if own > limit {
				t.Errorf("more than %d threads", limit)
			}
		})
	}
}

func threadsOf(t *testing.T, what string) int {
	t.Helper()
	program := tlstest.Self()
	args := append(program[1:], "-test.v", "-test.run=^TestThreads$", fmt.Sprint("-test.short=", testing.Short()))
	cmd := exec.CommandContext(t.Context(), program[0], args...)
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"), envThreads+"="+what)
	out, err := cmd.CombinedOutput()
	found := regexp.MustCompile(`made (\d+) threads`).FindSubmatch(out)
	if err != nil || found == nil || !bytes.Contains(out, []byte("--- PASS")) {
		t.Fatalf("%v\n%s", err, out)
	}
	n, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// makeThreads makes handshakes and prints the number of the process's threads while all handshakes
// wait for Go.
func makeThreads(t *testing.T, what string, handshakes int) {
	name, kind, _ := strings.Cut(what, "/")
	impl := tlstest.Std
	if name == "ossl" {
		impl = ossltest.UnderTest
	}
	var all, waiting sync.WaitGroup
	waiting.Add(handshakes)
	counted := make(chan struct{})
	wait := func() {
		waiting.Done()
		<-counted
	}
	verify := func([][]byte, [][]*x509.Certificate) error {
		wait()
		return nil
	}
	cc, sc := tlstest.ClientConfig(), tlstest.ServerConfig()
	switch kind {
	case "server certificate":
		cc.VerifyPeerCertificate = verify
	case "mutual":
		cc.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
		sc.ClientAuth = tls.RequireAnyClientCert
		sc.VerifyPeerCertificate = verify
	case "signer":
		sc.Certificates = []tls.Certificate{tlstest.ServerCert(tlstest.P256)}
		sc.Certificates[0].PrivateKey = &tlstest.LookingSigner{Signer: sc.Certificates[0].PrivateKey.(crypto.Signer), Before: wait}
	}
	var failed sync.Map
	run := func(c tlstest.Conn) {
		if err := c.Handshake(); err != nil {
			failed.Store(err.Error(), true)
		}
	}
	for range handshakes {
		a, b := tlstest.Buffered()
		all.Go(func() { run(impl.Client(a, cc)) })
		all.Go(func() { run(impl.Server(b, sc)) })
	}
	waiting.Wait()
	fmt.Printf("made %d threads\n", tlstest.Threads(t))
	close(counted)
	all.Wait()
	failed.Range(func(err, _ any) bool {
		t.Error(err)
		return true
	})
}
