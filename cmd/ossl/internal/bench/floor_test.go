package bench_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/cmd/ossl/internal/bench"
)

// cantRun is the exit status of the floor without a suitable OpenSSL.
const cantRun = 3

// runFloor runs the floor's program and returns its exit status and output.
func runFloor(t *testing.T, env []string, program string, args ...string) (status int, stdout, stderr string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// buildFloor compiles the program in floor.
func buildFloor(t *testing.T) string {
	program := filepath.Join(t.TempDir(), "floor")
	cc := strings.Fields(cmp.Or(os.Getenv("CC"), "cc"))
	if _, err := exec.LookPath(cc[0]); err != nil {
		t.Skipf("there is no C compiler: %v is not installed", err)
	}
	sources, err := filepath.Glob("floor/*.c")
	if err != nil {
		t.Fatal(err)
	}
	args := slices.Concat(cc[1:], []string{"-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", program}, sources,
		[]string{"../../../../internal/libssl/load.c", "../../../../internal/libssl/dl_unix.c", "-ldl"})
	if status, _, stderr := runFloor(t, nil, cc[0], args...); status != 0 {
		t.Fatalf("%s: status %d: %s", cc[0], status, stderr)
	}
	// With no other variables in the environment, as in ci/bench.
	if status, _, stderr := runFloor(t, nil, program, "-bench", "none"); status == cantRun {
		lib, err := ossl.Library()
		if err == nil && !strings.HasPrefix(lib.Version, "1.") {
			t.Fatalf("ossl has OpenSSL %s, and the floor says: %s", lib.Version, stderr)
		}
		t.Skipf("the floor needs OpenSSL 3.0 or later: %s", stderr)
	}
	return program
}

func TestFloor(t *testing.T) {
	program := buildFloor(t)
	t.Run("Rows", func(t *testing.T) { testFloorRows(t, program) })
	t.Run("Checks", func(t *testing.T) { testFloorChecks(t, program) })
	t.Run("Picks", func(t *testing.T) { testFloorPicks(t, program) })
}

// testFloorRows checks that the program in C measures the same as the benchmarks of the same names,
// and prints it in the same form.
func testFloorRows(t *testing.T, program string) {
	want := map[string]bool{}
	for _, cert := range []bench.Cert{bench.P256, bench.RSA2048} {
		pair := bench.Pair{Server: "c", Client: "c", Cert: cert, Kex: tls.X25519}
		for _, pair.Mutual = range []bool{false, true} {
			want["BenchmarkHandshake/"+handshakeName(pair, "hit")] = true
		}
		for _, pair.Version = range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			for _, pair.Resume = range []string{"", "ticket"} {
				want["BenchmarkResumption/"+resumptionName(pair)] = true
			}
		}
	}

	status, stdout, stderr := runFloor(t, nil, program, "-benchtime", "2x")
	if status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	head, rows, _ := strings.Cut(stdout, "\n")
	if !regexp.MustCompile(`^libssl: [34]\.\d+\.\d+`).MatchString(head) {
		t.Errorf("the first line is %q", head)
	}
	got := map[string]bool{}
	for line := range strings.Lines(rows) {
		fields := strings.Fields(line)
		if len(fields) != 8 || fields[1] != "2" || fields[3] != "ns/op" || fields[5] != "client-ns/op" || fields[7] != "server-ns/op" {
			t.Errorf("not a result of 2 operations: %q", line)
			continue
		}
		got[strings.TrimSuffix(fields[0], "-2")] = true
		for _, value := range []string{fields[2], fields[4], fields[6]} {
			if v, err := strconv.ParseFloat(value, 64); err != nil || v <= 0 {
				t.Errorf("%q: %q is no time", line, value)
			}
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("rows are %q, want %q", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

// testFloorChecks checks that the program fails if a row would measure something other than its name.
func testFloorChecks(t *testing.T, program string) {
	config := filepath.Join(t.TempDir(), "openssl.cnf")
	const noTickets = "openssl_conf = a\n[a]\nssl_conf = b\n[b]\nsystem_default = c\n[c]\nOptions = -SessionTicket\n"
	if err := os.WriteFile(config, []byte(noTickets), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"1.2", "1.3"} {
		status, stdout, stderr := runFloor(t, []string{"OPENSSL_CONF=" + config}, program, "-benchtime", "1x",
			"-bench", "Resumption/c/c/P256/version="+version+"/ticket")
		if status != 1 || strings.Contains(stdout, "ns/op") || !strings.Contains(stderr, "session") {
			t.Errorf("TLS %s: tickets are off, and the status is %d, after %q and %q", version, status, stdout, stderr)
		}
	}
	for _, args := range [][]string{{"-bench"}, {"-benchtime", "5"}, {"-benchtime", "0x"}, {"-bench", "(/"}, {"-count", "1"}} {
		if status, stdout, _ := runFloor(t, nil, program, args...); status != 2 || strings.Contains(stdout, "ns/op") {
			t.Errorf("%q: status %d and %q", args, status, stdout)
		}
	}
}

// testFloorPicks checks that -bench selects rows as go test's does.
func testFloorPicks(t *testing.T, program string) {
	for pattern, want := range map[string]int{
		"Handshake/server=std|Latency":                                                                          0,
		"^BenchmarkHandshake$/server=c/client=c/cert=P256/mutual=false/kex=X25519$":                             1,
		"Handshake/server=c/client=c/cert=P256/mutual=/kex=X25519$|Resumption/c/c/P256/version=1.3/resume=full": 3,
		"Resumption////version=1.2/[a-t]icket":                                                                  2,
		"Resumption/(server|x/y)=c/./cert=P/1.3/full":                                                           1,
		"Handshake/c/c/P256/true/X25519/hit/more":                                                               0,
		"Handshake/^c/": 0,
	} {
		status, stdout, stderr := runFloor(t, nil, program, "-benchtime", "1x", "-bench", pattern)
		if n := strings.Count(stdout, " ns/op"); status != 0 || n != want {
			t.Errorf("%q: %d rows, want %d; status %d, %s%s", pattern, n, want, status, stdout, stderr)
		}
	}
}
