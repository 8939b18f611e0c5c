package doctor_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/cmd/ossl/internal/doctor"
)

// host makes a root folder of files and their texts.
func host(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// examine returns the items of a host by their IDs.
func examine(t *testing.T, o doctor.Options) map[string]doctor.Item {
	t.Helper()
	r, err := doctor.Examine(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	items := map[string]doctor.Item{}
	for _, item := range r.Items {
		if item.Do == "" || item.Title == "" || item.Found == nil {
			t.Errorf("%s is not complete: %+v", item.ID, item)
		}
		items[item.ID] = item
	}
	return items
}

func TestHostsFiles(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		id    string
		state doctor.State
		found string // a line of Found has it
		do    string
	}{
		"no files: kernel TLS": {nil, "kernel-tls", doctor.Unknown, "no upper layer protocols", "nothing"},
		"no files: limits":     {nil, "limits", doctor.Unknown, "", "nothing"},
		"no files: sysctl":     {nil, "sysctl", doctor.Unknown, "", "nothing"},
		"no files: processes":  {nil, "processes", doctor.Unknown, "", "nothing"},
		"no files: libraries":  {nil, "libraries", "", "no libssl.so", ""},
		"kernel TLS not loaded": {map[string]string{"proc/sys/net/ipv4/tcp_available_ulp": "espintcp mptcp\n"},
			"kernel-tls", doctor.OK, "not loaded", "modprobe tls"},
		"kernel TLS loaded": {map[string]string{"proc/sys/net/ipv4/tcp_available_ulp": "espintcp tls\n",
			"proc/net/tls_stat": "TlsCurrTxSw \t0\nTlsTxSw                                 \t91967\n"},
			"kernel-tls", doctor.OK, "/proc/net/tls_stat: TlsTxSw 91967", "WithKernelTLS"},
		"few files": {map[string]string{"proc/self/limits": "Limit  Soft Limit  Hard Limit  Units\n" +
			"Max open files            1024                 524288               files     \n"},
			"limits", doctor.Advice, "open files: 1024, at most 524288", "LimitNOFILE"},
		"timer slack": {map[string]string{"proc/self/limits": "Max open files            65536  65536  files\n",
			"proc/self/timerslack_ns": "50000\n"}, "limits", doctor.OK, "timer slack: 50µs (for a Go server", "nothing"},
		"many files": {map[string]string{"proc/self/limits": "Max open files            65536  65536  files\n"},
			"limits", doctor.OK, "open files: 65536", "nothing"},
		"limits of another form": {map[string]string{"proc/self/limits": "nofile=3\n"}, "limits", doctor.Unknown, "", "nothing"},
		"short queue": {map[string]string{"proc/sys/net/core/somaxconn": "128\n"}, "sysctl", doctor.Advice,
			"net.core.somaxconn = 128", "somaxconn=4096"},
		"fine queue": {map[string]string{"proc/sys/net/core/somaxconn": "4096\n", "proc/sys/net/ipv4/tcp_syncookies": "1\n"},
			"sysctl", doctor.OK, "net.ipv4.tcp_syncookies = 1", "nothing"},
		"no SYN cookies": {map[string]string{"proc/sys/net/ipv4/tcp_syncookies": "0\n"}, "sysctl", doctor.Advice,
			"= 0", "tcp_syncookies=1"},
		"replaced libssl": {map[string]string{"proc/17/comm": "nginx\n", "proc/17/maps": "" +
			"7f00-7f01 r-xp 00000000 08:01 1   /usr/lib/x86_64-linux-gnu/libssl.so.3 (deleted)\n" +
			"7f01-7f02 r--p 00000000 08:01 1   /usr/lib/x86_64-linux-gnu/libssl.so.3 (deleted)\n" +
			"7f02-7f03 r--p 00000000 08:01 2   /usr/lib/x86_64-linux-gnu/libz.so.1 (deleted)\n"},
			"processes", doctor.Problem, "nginx (17): /usr/lib/x86_64-linux-gnu/libssl.so.3", "restart"},
		"libssl as it is": {map[string]string{"proc/17/comm": "nginx\n",
			"proc/17/maps": "7f00-7f01 r-xp 00000000 08:01 1   /usr/lib/x86_64-linux-gnu/libssl.so.3\n"},
			"processes", doctor.OK, "1 processes looked at", "nothing"},
		"hidden processes": {map[string]string{"proc/sys/kernel/pid_max": "4194304\n"}, "processes", doctor.Unknown,
			"0 processes looked at", "no processes"},
		"not processes": {map[string]string{"proc/self/maps": "x (deleted)", "proc/17x/maps": "/libssl.so (deleted)",
			"proc/18/maps": "libssl.so (deleted)\n\n"},
			"processes", doctor.OK, "1 processes looked at", "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			item := examine(t, doctor.Options{Root: host(t, c.files), NoSpeed: true})[c.id]
			if c.state != "" && item.State != c.state {
				t.Errorf("state %s, want %s: %+v", item.State, c.state, item)
			}
			if c.found != "" && !slices.ContainsFunc(item.Found, func(l string) bool { return strings.Contains(l, c.found) }) {
				t.Errorf("found %q, want a line with %q", item.Found, c.found)
			}
			if !strings.Contains(item.Do, c.do) {
				t.Errorf("do %q, want %q", item.Do, c.do)
			}
		})
	}
}

func TestProcessor(t *testing.T) {
	flags := map[string][2]string{
		"amd64": {"flags\t\t: fpu aes pclmulqdq avx2\n", "flags\t\t: fpu avx2\n"},
		"arm64": {"Features\t: fp asimd aes pmull sha2\n", "Features\t: fp asimd\n"},
	}[runtime.GOARCH]
	if flags[0] == "" {
		flags = [2]string{"", ""}
	}
	t.Setenv("OPENSSL_ia32cap", "")
	with := examine(t, doctor.Options{Root: host(t, map[string]string{"proc/cpuinfo": flags[0]}), NoSpeed: true})["processor"]
	without := examine(t, doctor.Options{Root: host(t, map[string]string{"proc/cpuinfo": flags[1]}), NoSpeed: true})["processor"]
	if flags[0] == "" {
		if with.State != doctor.Unknown {
			t.Errorf("a processor of another kind: %+v", with)
		}
		return
	}
	if with.State != doctor.OK || !strings.Contains(strings.Join(with.Found, "\n"), "has aes (AES)") {
		t.Errorf("with AES: %+v", with)
	}
	if without.State != doctor.Advice || !strings.Contains(without.Do, "ChaCha20") {
		t.Errorf("without AES: %+v", without)
	}
	t.Setenv("OPENSSL_ia32cap", "~0x200000200000000")
	masked := examine(t, doctor.Options{NoSpeed: true})["processor"]
	if masked.State != doctor.Unknown && !strings.Contains(masked.Do, "OPENSSL_ia32cap") {
		t.Errorf("with a mask: %+v", masked)
	}
}

// TestLibraries: each libssl is tried once, even if several links lead to it.
func TestLibraries(t *testing.T) {
	root := host(t, map[string]string{"usr/lib/x86_64-linux-gnu/libssl.so.3": "", "usr/lib/x86_64-linux-gnu/libssl.so.1.0.0": "",
		"opt/openssl-3.5/lib64/libssl.so.3": "", "usr/lib/libz.so.1": ""})
	if err := os.Symlink("libssl.so.3", filepath.Join(root, "usr/lib/x86_64-linux-gnu/libssl.so")); err != nil {
		t.Skip("links need another tool on this system: ", err)
	}
	if err := os.Symlink("usr/lib", filepath.Join(root, "lib")); err != nil {
		t.Fatal(err)
	}
	var tried []string
	items := examine(t, doctor.Options{Root: root, NoSpeed: true, Try: func(_ context.Context, path string) (string, error) {
		tried = append(tried, path)
		if strings.HasSuffix(path, "1.0.0") {
			return "", errors.New("too old\ntried: nothing")
		}
		return "3.5.7", nil
	}})
	if len(tried) != 3 {
		t.Errorf("tried %q, want each of three once", tried)
	}
	libraries := items["libraries"].Libraries
	if len(libraries) != 3 {
		t.Fatalf("libraries are %+v", libraries)
	}
	for _, l := range libraries {
		if old := strings.HasSuffix(l.Path, "1.0.0"); l.InUse || old != (l.Refused == "too old") || old == (l.Version == "3.5.7") {
			t.Errorf("library %+v", l)
		}
	}
}

// TestThisHost examines the real host, with measurements.
func TestThisHost(t *testing.T) {
	var progress []string
	items := examine(t, doctor.Options{Progress: func(id string) { progress = append(progress, id) }})
	if len(progress) != len(items) || progress[0] != "library" {
		t.Errorf("progress is %q", progress)
	}
	lib, err := ossl.Library()
	if err != nil {
		if items["library"].State != doctor.Problem {
			t.Errorf("without OpenSSL: %+v", items["library"])
		}
	} else if !slices.Contains(items["library"].Found, "libssl: "+lib.Path) {
		t.Errorf("the library is %+v", items["library"])
	}
	engines := map[string]int{}
	for _, s := range items["ciphers"].Speed {
		engines[s.Engine+" "+s.Cipher]++
		if s.MBs <= 0 || s.NanosPerRecord <= 0 {
			t.Errorf("not a speed: %+v", s)
		}
	}
	want := map[string]int{"Go AES-256-GCM": 6, "Go ChaCha20-Poly1305": 6}
	if err == nil && lib.FIPSRequired == "" {
		want["OpenSSL AES-256-GCM"], want["OpenSSL ChaCha20-Poly1305"] = 6, 6
	}
	for name, n := range want {
		if engines[name] != n {
			t.Errorf("%d speeds of %s, want %d: %v", engines[name], name, n, items["ciphers"].Found)
		}
	}
}

// TestCancelled: the items so far are returned when the context is done, also during a measurement.
func TestCancelled(t *testing.T) {
	for _, last := range []string{"library", "ciphers", "processes"} {
		ctx, cancel := context.WithCancel(context.Background())
		r, err := doctor.Examine(ctx, doctor.Options{Progress: func(id string) {
			if id == last {
				cancel()
			}
		}})
		if !errors.Is(err, context.Canceled) || r == nil {
			t.Fatalf("cancelled in %s: %v, %v", last, r, err)
		}
		for _, item := range r.Items {
			if item.ID == last {
				t.Errorf("%s is in the report", last)
			}
		}
		cancel()
	}
}

func TestWorst(t *testing.T) {
	for want, states := range map[doctor.State][]doctor.State{
		doctor.OK: {doctor.OK, doctor.Unknown}, doctor.Advice: {doctor.Advice, doctor.OK},
		doctor.Problem: {doctor.Advice, doctor.Problem, doctor.OK},
	} {
		r := &doctor.Report{}
		for _, s := range states {
			r.Items = append(r.Items, doctor.Item{State: s})
		}
		if got := r.Worst(); got != want {
			t.Errorf("worst of %v is %s", states, got)
		}
	}
}
