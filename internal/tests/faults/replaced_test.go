//go:build cgo && ossl_faults

package faults_test

import (
	"crypto/tls"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// envReplaced names the environment variable with the allocations that fail in a process of
// TestReplacedContext: the first, and the number of them.
const envReplaced = "OSSL_TEST_REPLACED"

// TestReplacedContext makes allocations fail in the second handshake of a process, in which the slim
// library context is made, and the Context gets another SSL_CTX there, with the key of its certificate.
func TestReplacedContext(t *testing.T) {
	run := func(n int) string {
		program := tlstest.Self()
		cmd := exec.Command(program[0], program[1:]...)
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d", envReplaced, n, *span))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("allocation %d: %v\n%s", n, err, out)
		}
		return string(out)
	}
	total, err := strconv.Atoi(strings.TrimSpace(run(1 << 40)))
	if err != nil {
		t.Fatal(err)
	}
	step, tried, harmed := 1, 0, 0
	if *most > 0 {
		step = max(1, total / *most)
	}
	for n := 1; n <= total; n += step {
		tried++
		if out := run(n); strings.HasPrefix(out, "then") {
			t.Logf("allocation %d: %s", n, out)
			harmed++
		}
	}
	t.Logf("%d allocations, %d tried, of which %d do harm that lasts", total, tried, harmed)
	// OpenSSL 3.2 and later keep the decoders that they found for a type of key, even if memory was short then.
	if harmed*100 > tried {
		t.Error("more than one in a hundred do harm that lasts")
	}
}

// replace is the process of TestReplacedContext. It prints the number of allocations, or the harm.
func replace(allocations string) error {
	var n, span int
	if _, err := fmt.Sscan(allocations, &n, &span); err != nil {
		return err
	}
	config := tlstest.ServerConfig(tlstest.Certificates(tlstest.ServerCert(tlstest.RSA2048)),
		tlstest.AskClient(tls.RequireAndVerifyClientCert))
	config.SessionTicketsDisabled = false
	ctx, err := ossl.NewContext(config)
	if err != nil {
		return err
	}
	client := tlstest.ClientConfig(tlstest.SendCertificate(tlstest.ClientCert(tlstest.P256)))
	whole := serve(ctx, client)
	libssl.FailAllocations(n, n+span)
	serve(ctx, client)
	total := libssl.CountAllocations()
	next := serve(ctx, client)
	contexts, slim := libssl.Made()
	switch {
	case whole.err != nil:
		return whole.err
	case n > total && (contexts != 2 || !slim):
		return fmt.Errorf("there are %d SSL_CTXs, slim: %t", contexts, slim)
	case next.err != nil || next.state != whole.state:
		fmt.Printf("then %s, %v, peer: %v, not %s\n", next.state, next.err, next.peer, whole.state)
	default:
		fmt.Println(total)
	}
	return nil
}
