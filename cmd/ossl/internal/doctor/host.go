package doctor

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ossl-go/ossl"
)

// maxProcFile bounds the bytes that are read of one file of /proc.
const maxProcFile = 4 << 20

// read returns the text of a file below the root, without white space around it.
func (o *Options) read(name string) (string, error) {
	f, err := os.Open(o.path(name))
	if err != nil {
		return "", err
	}
	defer f.Close()
	b := make([]byte, 0, 4096)
	for len(b) < maxProcFile {
		if len(b) == cap(b) {
			b = slices.Grow(b, len(b))
		}
		n, err := f.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err != nil {
			break // the end, or a failure; the text before it is good
		}
	}
	return strings.TrimSpace(string(b)), nil
}

// kernelTLS reports whether Linux can seal records.
func kernelTLS(_ context.Context, o *Options, item *Item) {
	ulp, err := o.read("proc/sys/net/ipv4/tcp_available_ulp")
	if err != nil {
		item.find("/proc/sys/net/ipv4/tcp_available_ulp isn't there: this kernel has no upper layer protocols for TCP, or hides them")
		item.judge(Unknown, "nothing: programs encrypt themselves")
		return
	}
	if !slices.Contains(strings.Fields(ulp), "tls") {
		item.find("the module tls is not loaded")
		item.Do = "nothing for most servers, which gain little; to try it: modprobe tls"
		return
	}
	item.find("the module tls is loaded")
	var versions []string
	for _, v := range ossl.KernelTLS() {
		versions = append(versions, tls.VersionName(v))
	}
	item.find("versions for which ossl uses it: " + strings.Join(versions, ", "))
	if stat, err := o.read("proc/net/tls_stat"); err == nil {
		for line := range strings.Lines(stat) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			if value = strings.TrimSpace(value); value != "0" && value != "" {
				item.find("/proc/net/tls_stat: " + name + " " + value)
			}
			if strings.HasSuffix(name, "Device") && strings.HasPrefix(name, "TlsTx") && value != "0" && value != "" {
				item.find("a network card seals records: keep it so")
			}
		}
	}
	item.Do = "nothing: ossl.WithKernelTLS uses it; other servers have switches of their own"
}

// features are the processor's features that make TLS fast, by their names in Linux's /proc/cpuinfo,
// and the purpose of each.
var features = map[string][][2]string{
	"amd64": {{"aes", "AES"}, {"pclmulqdq", "AES-GCM"}, {"vaes", "AES-GCM, several blocks at once"}, {"avx2", "ChaCha20-Poly1305"},
		{"avx512f", "ChaCha20-Poly1305 and AES-GCM, wider"},
		{"sha_ni", "SHA-256"}, {"adx", "RSA and P-256"}, {"bmi2", "RSA and P-256"}},
	"arm64": {{"aes", "AES"}, {"pmull", "AES-GCM"}, {"asimd", "ChaCha20-Poly1305"}, {"sha2", "SHA-256"}, {"sha512", "SHA-384"},
		{"sve2", "wider vectors"}},
}

// processor reports the instructions that TLS uses.
func processor(_ context.Context, o *Options, item *Item) {
	text, err := o.read("proc/cpuinfo")
	known := features[runtime.GOARCH]
	if err != nil || known == nil {
		item.judge(Unknown, "nothing: 'ciphers' has measurements")
		return
	}
	var has []string
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(name) {
		case "model name":
			if len(item.Found) == 0 {
				item.find(strings.TrimSpace(value))
			}
		case "flags", "Features":
			if has == nil {
				has = strings.Fields(value)
			}
		}
	}
	item.find(fmt.Sprintf("processors for this program: %d", runtime.GOMAXPROCS(0)))
	var there, missing []string
	for _, f := range known {
		if slices.Contains(has, f[0]) {
			there = append(there, f[0]+" ("+f[1]+")")
		} else {
			missing = append(missing, f[0]+" ("+f[1]+")")
		}
	}
	item.find("has " + orNone(there))
	if len(missing) > 0 {
		item.find("lacks " + strings.Join(missing, ", "))
	}
	if mask := os.Getenv("OPENSSL_ia32cap"); mask != "" {
		item.find("OPENSSL_ia32cap=" + mask + " hides features from OpenSSL")
		item.judge(Advice, "unset OPENSSL_ia32cap, unless you measure")
	}
	if !slices.Contains(has, "aes") {
		item.judge(Advice, "put ChaCha20-Poly1305 first: the processor has no instructions for AES. In virtual machines, "+
			"let the host pass them on")
	}
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// wantedFiles is the number of open files below which a busy server fails. Each connection is one.
const wantedFiles = 4096

// limits reports the limits that servers reach first.
func limits(_ context.Context, o *Options, item *Item) {
	text, err := o.read("proc/self/limits")
	if err != nil {
		item.judge(Unknown, "nothing: this system has no /proc/self/limits")
		return
	}
	for line := range strings.Lines(text) {
		for _, name := range []string{"Max open files", "Max processes", "Max locked memory"} {
			rest, ok := strings.CutPrefix(line, name)
			if !ok {
				continue
			}
			columns := strings.Fields(rest)
			if len(columns) < 2 {
				continue
			}
			item.find(fmt.Sprintf("%s: %s, at most %s", strings.ToLower(strings.TrimPrefix(name, "Max ")), columns[0], columns[1]))
			if n, err := strconv.Atoi(columns[0]); err == nil && name == "Max open files" && n < wantedFiles {
				item.judge(Advice, fmt.Sprintf("raise the open files above %d for servers, one for each connection: LimitNOFILE= of "+
					"systemd, or ulimit -n. Go programs raise their own to the maximum, %s", n, columns[1]))
			}
		}
	}
	if len(item.Found) == 0 {
		item.judge(Unknown, "nothing: /proc/self/limits has another form")
	}
	if text, err := o.read("proc/self/timerslack_ns"); err == nil {
		if ns, err := strconv.ParseInt(text, 10, 64); err == nil {
			item.find(fmt.Sprintf("timer slack: %v (for a Go server under load, TimerSlackNSec=2ms in its systemd unit saves 7 to "+
				"15 %% of the processor time: docs/PERFORMANCE.md)", time.Duration(ns)))
		}
	}
}

// A setting is a sysctl that matters for TLS servers.
type setting struct {
	name, why string
	bad       func(value string) bool
	do        string
}

func below(n int) func(string) bool {
	return func(value string) bool { v, err := strconv.Atoi(value); return err == nil && v < n }
}

func is(bad string) func(string) bool { return func(value string) bool { return value == bad } }

var settings = []setting{
	{"net.core.somaxconn", "connections that wait for accept", below(1024), "sysctl -w net.core.somaxconn=4096"},
	{"net.ipv4.tcp_max_syn_backlog", "connections that are being opened", below(512), "sysctl -w net.ipv4.tcp_max_syn_backlog=4096"},
	{"net.ipv4.tcp_syncookies", "1 keeps a flood of connections out", is("0"), "sysctl -w net.ipv4.tcp_syncookies=1"},
	{"net.ipv4.tcp_slow_start_after_idle", "1 makes kept connections slow again after a pause", is("1"),
		"sysctl -w net.ipv4.tcp_slow_start_after_idle=0 if clients keep connections"},
	{"net.ipv4.tcp_fastopen", "1 and 2 are bits for clients and servers", nil, ""},
	{"net.ipv4.tcp_congestion_control", "", nil, ""},
	{"net.core.default_qdisc", "", nil, ""},
	{"kernel.randomize_va_space", "2 places code and memory at random addresses", below(2), "sysctl -w kernel.randomize_va_space=2"},
	{"crypto.fips_enabled", "1 puts all of ossl's contexts into FIPS mode", nil, ""},
}

// sysctls reports the kernel's settings that matter.
func sysctls(_ context.Context, o *Options, item *Item) {
	for _, s := range settings {
		value, err := o.read("proc/sys/" + strings.ReplaceAll(s.name, ".", "/"))
		if err != nil {
			continue
		}
		text := s.name + " = " + value
		if s.why != "" {
			text += " (" + s.why + ")"
		}
		item.find(text)
		if s.bad != nil && s.bad(value) {
			item.judge(Advice, s.do)
		}
	}
	if len(item.Found) == 0 {
		item.judge(Unknown, "nothing: this system has no /proc/sys")
	}
}

// A Process is one that has a libssl or libcrypto whose file was replaced.
type Process struct {
	PID   int      `json:"pid"`
	Name  string   `json:"name"`
	Files []string `json:"files"`
}

// processes lists the processes that still have an OpenSSL whose file was replaced or removed, after
// an update for example.
func processes(ctx context.Context, o *Options, item *Item) {
	entries, err := os.ReadDir(o.path("proc"))
	if err != nil {
		item.judge(Unknown, "nothing: this system has no /proc")
		return
	}
	seen, hidden := 0, 0
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if ctx.Err() != nil {
			return
		}
		maps, err := o.read(filepath.Join("proc", e.Name(), "maps"))
		if os.IsNotExist(err) {
			continue // it has exited
		}
		if err != nil || maps == "" { // a process of another user's; kernel threads have no maps either
			if err != nil {
				hidden++
			}
			continue
		}
		seen++
		if files := replaced(maps); files != nil {
			name, _ := o.read(filepath.Join("proc", e.Name(), "comm"))
			item.Processes = append(item.Processes, Process{pid, name, files})
		}
	}
	for _, p := range item.Processes {
		item.find(fmt.Sprintf("%s (%d): %s", p.Name, p.PID, strings.Join(p.Files, ", ")))
	}
	item.find(fmt.Sprintf("%d processes looked at", seen))
	if seen+hidden == 0 {
		item.judge(Unknown, "nothing: /proc shows no processes here")
	}
	if len(item.Processes) > 0 {
		item.judge(Problem, "restart these processes: they run the OpenSSL of before the update, faults included")
	}
	if hidden > 0 {
		item.find(fmt.Sprintf("%d more can't be looked at", hidden))
		if os.Geteuid() == 0 { // of another container, for example
			item.judge(Unknown, "nothing: the kernel shows these not even to root here")
		} else {
			item.judge(Unknown, "run it as root to see the processes of other users")
		}
	}
}

// replaced returns OpenSSL's files in /proc/PID/maps that don't exist any more.
func replaced(maps string) []string {
	var files []string
	for line := range strings.Lines(maps) {
		line, ok := strings.CutSuffix(strings.TrimRight(line, "\n"), " (deleted)")
		if !ok {
			continue
		}
		at := strings.IndexByte(line, '/')
		if at < 0 {
			continue
		}
		path := line[at:]
		base := filepath.Base(path)
		if (strings.HasPrefix(base, "libssl") || strings.HasPrefix(base, "libcrypto")) && strings.Contains(base, ".so") &&
			!slices.Contains(files, path) {
			files = append(files, path)
		}
	}
	return files
}
