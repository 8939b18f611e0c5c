//go:build linux

package httptls_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/httptls"
)

// ci/kernel-tls sets OSSL_TEST_KERNEL in its virtual machines, whose kernels have TLS and which
// have strace. Otherwise these tests may skip.
const envTestKernel = "OSSL_TEST_KERNEL"

var withKernel = &stack{
	name: "kernel TLS",
	server: func(s *http.Server) server {
		return &httptls.Server{Server: s, Options: []ossl.Option{ossl.WithKernelTLS()}}
	},
	transport: func(t *http.Transport) (transport, error) { return httptls.NewTransport(t, ossl.WithKernelTLS()) },
}

// eachKernelVersion runs a test with the configuration of a client for each version that the kernel
// seals.
func eachKernelVersion(t *testing.T, test func(t *testing.T, config *tls.Config)) {
	t.Helper()
	versions := ossl.KernelTLS()
	if len(versions) == 0 {
		if os.Getenv(envTestKernel) != "" {
			t.Fatal("the kernel has no TLS")
		}
		t.Skip("this kernel has no TLS; ci/kernel-tls runs it")
	}
	for _, version := range versions {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			config := clientConfig()
			config.MaxVersion = version
			test(t, config)
		})
	}
}

// sealedByKernel returns the number of connections whose sending side the kernel has got.
func sealedByKernel(t *testing.T) int {
	t.Helper()
	stat, err := os.ReadFile("/proc/net/tls_stat")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(stat)) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == "TlsTxSw" {
			n, _ := strconv.Atoi(fields[1])
			return n
		}
	}
	t.Fatalf("no TlsTxSw in %q", stat)
	return 0
}

// TestKernelTLSFiles compares the answers of file servers over kernel TLS, and without it if the
// kernel doesn't seal for the client's version.
func TestKernelTLSFiles(t *testing.T) {
	dir := writeFiles(t)
	eachKernelVersion(t, func(t *testing.T, config *tls.Config) {
		before := sealedByKernel(t)
		compareFiles(t, fileHandler(t, dir), config, withKernel)
		if n := sealedByKernel(t) - before; n != 1 {
			t.Errorf("the kernel seals for %d connections more", n)
		}
	})
}

// systemCalls are the calls of a kind for one file.
type systemCalls struct{ calls, bytes int64 }

var (
	traced     = regexp.MustCompile(`^(\d+) +(\w+)\((.*)$`)
	resumed    = regexp.MustCompile(`^(\d+) +<\.\.\. (\w+) resumed>(.*)$`)
	tracedOkay = regexp.MustCompile(`\) += (\d+)$`)
)

// parseTrace returns the successful calls that have name in their arguments, by their names, from a
// trace of strace -f -y.
func parseTrace(trace []byte, name string) map[string]systemCalls {
	counts := make(map[string]systemCalls)
	pending := make(map[string]string) // the arguments of the call that is under way, by its thread
	scanner := bufio.NewScanner(bytes.NewReader(trace))
	for scanner.Scan() {
		line := scanner.Text()
		var call, rest string
		if m := resumed.FindStringSubmatch(line); m != nil {
			call, rest = m[2], pending[m[1]]+m[3]
		} else if m := traced.FindStringSubmatch(line); m != nil {
			call, rest = m[2], m[3]
			if args, ok := strings.CutSuffix(rest, "<unfinished ...>"); ok {
				pending[m[1]] = args
				continue
			}
		}
		if m := tracedOkay.FindStringSubmatch(rest); m != nil && strings.Contains(rest, name) {
			n, _ := strconv.ParseInt(m[1], 10, 64)
			c := counts[call]
			counts[call] = systemCalls{c.calls + 1, c.bytes + n}
		}
	}
	return counts
}

// envTraced and envTracedVersion give a process of TestKernelTLSSystemCalls the directory with the
// files to serve, and the TLS version.
const envTraced, envTracedVersion = "OSSL_TEST_TRACED", "OSSL_TEST_TRACED_VERSION"

// TestKernelTLSSystemCalls counts the system calls that serve a large file: sendfile(2) sends all
// but its first 512 bytes, which net/http reads.
func TestKernelTLSSystemCalls(t *testing.T) {
	if dir := os.Getenv(envTraced); dir != "" {
		serveTraced(t, dir)
		return
	}
	strace, err := exec.LookPath("strace")
	if err != nil && os.Getenv(envTestKernel) == "" {
		t.Skip("strace is not installed; ci/kernel-tls has it")
	}
	if err != nil {
		t.Fatal(err)
	}
	eachKernelVersion(t, func(t *testing.T, config *tls.Config) {
		trace := filepath.Join(t.TempDir(), "trace")
		cmd := exec.CommandContext(t.Context(), strace, "-f", "-y", "-e", "trace=read,pread64,sendfile,splice,copy_file_range,mmap",
			"-e", "signal=none", "-o", trace, os.Args[0], "-test.run=^TestKernelTLSSystemCalls$")
		cmd.Env = append(os.Environ(), fmt.Sprint(envTraced, "=", writeFiles(t)), fmt.Sprint(envTracedVersion, "=", config.MaxVersion))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		lines, err := os.ReadFile(trace)
		if err != nil {
			t.Fatal(err)
		}
		const sent, sniffed = 3*largeSize + 599_000, 4 * 512
		counts := parseTrace(lines, "large.bin")
		for call, c := range counts {
			t.Logf("%s: %d calls, %d bytes", call, c.calls, c.bytes)
		}
		if got := counts["sendfile"]; got.bytes != sent-sniffed {
			t.Errorf("sendfile(2) sent %d bytes of %d", got.bytes, sent)
		}
		if got := counts["read"]; got.bytes != sniffed {
			t.Errorf("read(2) got %d bytes", got.bytes)
		}
		delete(counts, "read")
		delete(counts, "sendfile")
		if len(counts) > 0 {
			t.Errorf("other calls: %v", counts)
		}
	})
}

// serveTraced serves the large file in four ways, once as a part. TestKernelTLSFiles checks such
// answers.
func serveTraced(t *testing.T, dir string) {
	version, err := strconv.Atoi(os.Getenv(envTracedVersion))
	if err != nil {
		t.Fatal(err)
	}
	s := withKernel.start(t, &http.Server{Handler: fileHandler(t, dir)})
	config := clientConfig()
	config.MaxVersion = uint16(version)
	client := netHTTP.client(t, &http.Transport{TLSClientConfig: config}, false)
	for _, r := range []fileRequest{
		{"GET", "/dir/large.bin", nil}, {"GET", "/file/large.bin", nil}, {"GET", "/copy/large.bin", nil},
		{"GET", "/content/large.bin", map[string]string{"Range": "bytes=1000-599999"}},
	} {
		if summary, body := r.ask(t, client, s.url("")); len(body) < 599_000 {
			t.Error(summary)
		}
	}
}

// TestKernelTLSLargeFile asks for a part behind 4 GB.
func TestKernelTLSLargeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sparse")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const size, at = 7 << 30, 5<<30 + 12_345
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("text in a hole"), at); err != nil {
		t.Fatal(err)
	}
	eachKernelVersion(t, func(t *testing.T, config *tls.Config) {
		s := withKernel.start(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.ServeFile(w, r, path)
		})})
		client := netHTTP.client(t, &http.Transport{TLSClientConfig: config}, false)
		r := fileRequest{"GET", "/", map[string]string{"Range": fmt.Sprintf("bytes=%d-%d", at-300_000, at+299_999)}}
		summary, body := r.ask(t, client, s.url(""))
		if len(body) != 600_000 || string(body[300_000:300_014]) != "text in a hole" ||
			!strings.Contains(summary, fmt.Sprintf("bytes %d-%d/%d", at-300_000, at+299_999, size)) {
			t.Errorf("%d bytes: %s", len(body), summary)
		}
	})
}

// TestKernelTLSBrokenFiles cuts answers short. The client gets an error, never other bytes, and the
// handler returns.
func TestKernelTLSBrokenFiles(t *testing.T) {
	const size, cut = 24 << 20, 16<<20 + 77
	for name, test := range map[string]struct {
		timeout time.Duration // for writes
		during  func(t *testing.T, f *os.File, resp *http.Response)
	}{
		"truncated": {during: func(t *testing.T, f *os.File, _ *http.Response) {
			if err := f.Truncate(cut); err != nil {
				t.Error(err)
			}
		}},
		"write timeout":   {timeout: 3 * time.Second}, // an emulated kernel is slow
		"the client ends": {during: func(_ *testing.T, _ *os.File, resp *http.Response) { _ = resp.Body.Close() }},
	} {
		t.Run(name, func(t *testing.T) {
			eachKernelVersion(t, func(t *testing.T, config *tls.Config) {
				f, err := os.Create(filepath.Join(t.TempDir(), "file"))
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				if err := f.Truncate(size); err != nil {
					t.Fatal(err)
				}
				returned, closed := make(chan struct{}), make(chan struct{}, 10)
				hs := &http.Server{WriteTimeout: test.timeout}
				hs.ConnState = func(_ net.Conn, state http.ConnState) {
					if state == http.StateClosed {
						closed <- struct{}{}
					}
				}
				hs.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					defer close(returned)
					http.ServeContent(w, r, "file.bin", time.Time{}, f)
				})
				s := withKernel.start(t, hs)
				client := netHTTP.client(t, &http.Transport{TLSClientConfig: config}, false)
				resp, err := client.Get(s.url("/"))
				if err != nil || resp.ContentLength != size {
					t.Fatalf("%v, %v", resp, err)
				}
				defer resp.Body.Close()
				if _, err := io.CopyN(io.Discard, resp.Body, 1<<20); err != nil {
					t.Fatal(err)
				}
				if test.during != nil {
					test.during(t, f, resp)
				}
				if name != "truncated" { // the server waits for the client, which doesn't read
					await(t, "the handler to return", returned)
				}
				rest, err := io.ReadAll(resp.Body)
				if err == nil || name != "the client ends" && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("%d bytes more, error %v", len(rest), err)
				}
				if len(rest) > 0 && bytes.Count(rest, []byte{0}) != len(rest) {
					t.Error("other bytes than the file's")
				}
				if name == "truncated" && len(rest) != cut-1<<20 {
					t.Errorf("%d bytes more", len(rest))
				}
				await(t, "the handler to return", returned)
				await(t, "the connection to be closed", closed)
			})
		})
	}
}

// TestKernelTLSShutdown calls Shutdown while a file is on its way: Shutdown must wait for it.
func TestKernelTLSShutdown(t *testing.T) {
	dir := writeFiles(t)
	eachKernelVersion(t, func(t *testing.T, config *tls.Config) {
		s := withKernel.start(t, &http.Server{Handler: fileHandler(t, dir)})
		client := netHTTP.client(t, &http.Transport{TLSClientConfig: config}, false)
		resp, err := client.Get(s.url("/dir/large.bin"))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		done := make(chan error, 1)
		go func() { done <- s.Shutdown(context.Background()) }()
		if n, err := io.Copy(io.Discard, resp.Body); n != largeSize || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
		if err := await(t, "Shutdown", done); err != nil {
			t.Error(err)
		}
	})
}
