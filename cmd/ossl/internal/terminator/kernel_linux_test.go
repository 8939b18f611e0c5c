package terminator_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// ci/kernel-tls sets envTestKernel in its virtual machines, whose kernels have TLS and which have
// strace. envTraced gives a process of TestKernelTLSServe the TLS version.
const envTestKernel, envTraced = "OSSL_TEST_KERNEL", "OSSL_TEST_TRACED_SERVE"

// TestKernelTLSServe: a server with kernel-tls and http1 sends a file of 10 MB by sendfile(2), as
// records that the kernel seals.
func TestKernelTLSServe(t *testing.T) {
	if version := os.Getenv(envTraced); version != "" {
		n, err := strconv.Atoi(version)
		if err != nil {
			t.Fatal(err)
		}
		serveTraced(t, uint16(n))
		return
	}
	versions := ossl.KernelTLS()
	strace, err := exec.LookPath("strace")
	switch inMachine := os.Getenv(envTestKernel) != ""; {
	case len(versions) == 0 && inMachine:
		t.Fatal("the kernel has no TLS")
	case len(versions) == 0:
		t.Skip("this kernel has no TLS; ci/kernel-tls runs it")
	case err != nil && inMachine:
		t.Fatal(err)
	case err != nil:
		t.Skip("strace is not installed; ci/kernel-tls has it")
	}
	for _, version := range versions {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			trace := filepath.Join(t.TempDir(), "trace")
			cmd := exec.CommandContext(t.Context(), strace, "-f", "-y", "-e", "trace=sendfile", "-e", "signal=none", "-o", trace,
				os.Args[0], "-test.run=^TestKernelTLSServe$")
			cmd.Env = append(os.Environ(), fmt.Sprint(envTraced, "=", version))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			text, err := os.ReadFile(trace)
			if err != nil {
				t.Fatal(err)
			}
			sent := 0
			for _, m := range sentFile.FindAllSubmatch(text, -1) {
				n, _ := strconv.Atoi(string(m[1])) // digits
				sent += n
			}
			if sent < tracedSize-512 || sent > tracedSize { // net/http reads 512 for the type
				t.Errorf("sendfile(2) has sent %d bytes of %d", sent, tracedSize)
			}
		})
	}
}

const tracedSize = 10 << 20

// sentFile finds the result of a sendfile(2), whose line another thread's may have interrupted.
var sentFile = regexp.MustCompile(`sendfile(?:64)?(?:\(| resumed>).*\) += (\d+)\n`)

// serveTraced serves the file.
func serveTraced(t *testing.T, version uint16) {
	w := newWorld(t)
	data := cutData()[:tracedSize]
	config := w.config("ossl", terminator.Site{Root: w.folder(map[string]string{"file": string(data)})})
	config.KernelTLS, config.HTTP1, config.Admin = true, true, "127.0.0.1:0"
	r := w.start(config)
	client := r.client(false, func(config *tls.Config) { config.MaxVersion = version })
	response, err := client.Get("https://localhost/file")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if got, err := io.ReadAll(response.Body); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	_, admin := r.Addrs()
	_, text := get(t, http.DefaultClient, "http://"+admin.String()+"/metrics")
	kernel := regexp.MustCompile(`(?m)^ossl_tls_kernel_connections_total(?:\{.*\})? (\d+)$`).FindAllStringSubmatch(text, -1)
	if !strings.Contains(fmt.Sprint(kernel), " 1]") {
		t.Errorf("no connection of the kernel's is counted: %q", kernel)
	}
	http.DefaultClient.CloseIdleConnections()
}
