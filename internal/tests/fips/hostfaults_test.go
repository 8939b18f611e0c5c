//go:build (cgo || ossl_nocgo) && linux

package fips

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// envFault is set for a process of TestFIPSHostFaults: the number of times that it tries.
const envFault = "OSSL_TEST_FIPS_FAULT"

// The outcomes of a Context for a plain configuration.
const (
	inFIPS  = "in FIPS mode"
	inForce = "with the policy"
	plain   = "without both"
	refused = "refused"
)

// A faultReport is the result of a process whose host has a fault.
type faultReport struct {
	Tries           []faultTry
	Asked, Unknown  string
	Policy          string // its error
	IgnoringPolicy  string // the outcome of a Context with WithoutHostPolicy
	ModuleAvailable bool
}

type faultTry struct{ Outcome, DropIn, Err string }

func outcome() (o, text string) {
	ctx, err := ossl.NewContext(tlstest.ClientConfig(ossltest.Approved))
	switch {
	case err != nil:
		return refused, err.Error()
	case ctx.FIPS() != nil:
		return inFIPS, ""
	}
	info, err := ossl.Library()
	if err != nil {
		return refused, err.Error()
	}
	if len(info.HostPolicy.Commands) > 0 && info.HostPolicy.Err == nil {
		return inForce, ""
	}
	return plain, ""
}

// reportFault runs in a process of its own.
func reportFault(t *testing.T) {
	var r faultReport
	var times int
	fmt.Sscan(os.Getenv(envFault), &times)
	for range times {
		var try faultTry
		try.Outcome, try.Err = outcome()
		a, _ := net.Pipe()
		conn := ossl.Client(a, tlstest.ClientConfig(ossltest.Approved))
		a.Close() // else it waits for the server
		err := conn.Handshake()
		switch {
		case conn.FIPS() != nil:
			try.DropIn = inFIPS
		case errors.As(err, new(*ossl.ConfigError)) || errors.Is(err, ossl.ErrNotFIPS) || errors.Is(err, ossl.ErrUnavailable):
			try.DropIn = refused
		default:
			try.DropIn = plain
		}
		r.Tries = append(r.Tries, try)
	}
	if info, err := ossl.Library(); err != nil {
		r.Policy = err.Error()
	} else {
		r.Asked, r.ModuleAvailable = info.FIPSRequired, info.FIPS
		if info.FIPSUnknown != nil {
			r.Unknown = info.FIPSUnknown.Error()
		}
		if info.HostPolicy.Err != nil {
			r.Policy = info.HostPolicy.Err.Error()
		}
	}
	r.IgnoringPolicy = refused
	if ctx, err := ossl.NewContext(tlstest.ClientConfig(ossltest.Approved), ossl.WithoutHostPolicy()); err == nil {
		r.IgnoringPolicy = plain
		if ctx.FIPS() != nil {
			r.IgnoringPolicy = inFIPS
		}
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("report %s\n", text)
}

// underFault runs reportFault with this folder's openssl.cnf. before are the words of a command that
// starts the process.
func underFault(t *testing.T, dir string, times int, before, env []string) (r faultReport) {
	t.Helper()
	args := append(append(before, tlstest.Self()...), "-test.run=^TestFIPSHostFaults$", "-test.timeout=1m")
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Env = append(append(os.Environ(), fmt.Sprintf("%s=%d", envFault, times), "GORACE=atexit_sleep_ms=0",
		"OPENSSL_CONF="+filepath.Join(dir, "openssl.cnf"), "OSSL_FIPS="), env...)
	if len(before) > 0 { // the search for leaks doesn't work under strace
		cmd.Env = append(cmd.Env, "ASAN_OPTIONS="+os.Getenv("ASAN_OPTIONS")+":detect_leaks=0")
	}
	out, err := cmd.CombinedOutput()
	_, text, found := strings.Cut(string(out), "report ")
	if err != nil || !found {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&r); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return r
}

// fault is a way in which a file can be at fault.
type fault func(file string) error

func missing(file string) error { return os.Remove(file) }
func empty(file string) error   { return os.Truncate(file, 0) }

func linkTo(target string) fault {
	return func(file string) error { return errors.Join(os.Remove(file), os.Symlink(target, file)) }
}

var (
	dangling   = linkTo("nothing")
	loop       = func(file string) error { return linkTo(filepath.Base(file))(file) } // can't be opened, by root either
	unreadable = linkTo("/proc/self/mem")                                             // can be opened; a read fails with EIO
)

func folder(file string) error { return errors.Join(os.Remove(file), os.Mkdir(file, 0o755)) }

func content(text string) fault {
	return func(file string) error { return os.WriteFile(file, []byte(text), 0o644) }
}

// danglingBesideFIPS makes a folder with a dangling link, and with a file that asks for FIPS mode.
func danglingBesideFIPS(file string) error {
	folder := filepath.Dir(file)
	asks := strings.ReplaceAll(asksIgnored, "DIR", filepath.Dir(folder))
	return errors.Join(os.Mkdir(folder, 0o755), os.Symlink("nothing", file),
		os.WriteFile(filepath.Join(folder, "asks.cnf"), []byte(asks), 0o644))
}

// asksFIPS is an openssl.cnf that asks for FIPS mode. DIR stands for its folder.
const (
	asksFIPS = "openssl_conf = init\n.include DIR/fipsmodule.cnf\n[init]\nproviders = prov\nalg_section = alg\n" +
		"[prov]\nfips = fips_sect\nbase = base_sect\n[base_sect]\nactivate = 1\n[alg]\ndefault_properties = fips=yes\n"
	// asksIgnored asks for FIPS mode after a line at which OpenSSL stops.
	asksIgnored = "openssl_conf = init\n.include DIR/fipsmodule.cnf\n[init]\nnone = none\nalg_section = alg\n" +
		"[alg]\ndefault_properties = fips=yes\n"
	// asksPolicy is one with a policy, in a file that it includes.
	asksPolicy = "openssl_conf = init\n[init]\nssl_conf = tls\n[tls]\nsystem_default = system\n[system]\n.include DIR/policy.cnf\n"
	provides   = "openssl_conf = init\n[init]\nproviders = prov\nssl_conf = tls\n[tls]\nsystem_default = system\n[system]\n" +
		"MinProtocol = TLSv1.3\n[prov]\ndefault = default_sect\n[default_sect]\nactivate = 1\n"
	engines = "openssl_conf = init\n[init]\nengines = eng\n[eng]\nfoo = foo_sect\n"
)

// hostFiles makes the folder of a host: openssl.cnf, and the files that it includes.
func hostFiles(t *testing.T, conf string) string {
	t.Helper()
	dir := t.TempDir()
	module, err := os.ReadFile(filepath.Join(filepath.Dir(os.Getenv("OPENSSL_CONF")), "fipsmodule.cnf")) // ci/openssl-versions
	if err != nil {
		module = []byte("[fips_sect]\nactivate = 1\nmodule-mac = 00\n")
	}
	for name, text := range map[string]string{
		"openssl.cnf":    strings.ReplaceAll(conf, "DIR", dir),
		"fipsmodule.cnf": string(module),
		"policy.cnf":     "MinProtocol = TLSv1.3\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestFIPSHostFaults uses host configurations that ask for FIPS mode, or for a policy, and have
// faulty files. OpenSSL continues without an error. A Context is in FIPS mode or has the policy, or
// can't be made.
func TestFIPSHostFaults(t *testing.T) {
	if os.Getenv(envFault) != "" {
		reportFault(t)
		return
	}
	const module, host, policy = "fipsmodule.cnf", "openssl.cnf", "policy.cnf"
	algorithms := func(lines string) string { return with(provides, "[init]", "alg_section = alg\n") + "[alg]\n" + lines }
	legacy := func(lines string) string { return with(provides, "[prov]", "legacy = sect\n[sect]\n"+lines+"[prov]\n") }
	for _, test := range []struct {
		name  string
		conf  string
		file  string // that is at fault, or ""
		fault fault
		want  string
		says  string // in the error
	}{
		{"FIPS", asksFIPS, "", nil, inFIPS, ""},
		{"FIPS by fips_mode", with(asksFIPS, "[alg]", "fips_mode = yes\n[rest]\n"), "", nil, inFIPS, ""},
		{"FIPS not required", provides + "[init]\nalg_section = alg\n[alg]\ndefault_properties = ?fips=yes\n", "", nil, inForce, ""},
		{"FIPS, module missing", asksFIPS, module, missing, refused, "fipsmodule.cnf, which is missing"},
		{"FIPS, module empty", asksFIPS, module, empty, refused, ""},
		{"FIPS, module a dangling link", asksFIPS, module, dangling, refused, "fipsmodule.cnf, which is missing"},
		{"FIPS, module can't be opened", asksFIPS, module, loop, refused, "fipsmodule.cnf, which can't be read: too many levels"},
		{"FIPS, module can't be read", asksFIPS, module, unreadable, refused, "fipsmodule.cnf, which can't be read: input"},
		{"FIPS, module a folder", asksFIPS, module, folder, refused, ""},
		{"FIPS, module without its section", asksFIPS, module, content("[other]\nactivate = 1\n"), refused, ""},
		{"FIPS, module malformed", asksFIPS, module, content("[fips_sect\n"), refused, "can't be read: missing close square bracket"},
		{"FIPS, no fips.so", asksFIPS + "[fips_sect]\nmodule = DIR/fips.so\n", "", nil, refused, since3("fips.so: no such file")},
		{"all in a missing file", ".include DIR/all.cnf\n", "", nil, ignorable, "all.cnf, which is missing"},
		{"FIPS, a missing folder", asksFIPS + ".include DIR/more.d\n", "", nil, refused, "more.d, which is missing"},
		{"FIPS, a folder with a dangling link", ".include DIR/all.d\n", "all.d/more.cnf", danglingBesideFIPS, refused,
			"more.cnf, which is missing"},
		{"FIPS behind a long line", ".include DIR/policy.cnf # " + strings.Repeat("x", 1<<20) + "\n" + asksIgnored, "", nil, refused,
			"it is longer than"},
		{"FIPS, a relative name", ".pragma abspath:true\n.include more.cnf\n" + asksFIPS, "", nil, refused, since3("relative")},
		{"FIPS, includes itself", ".include DIR/openssl.cnf\n" + asksFIPS, "", nil, refused, "includes itself"},
		{"FIPS, no section of algorithms", strings.Replace(asksFIPS, "[alg]", "[other]", 1), "", nil, refused, "section alg"},
		{"FIPS behind unknown algorithms", with(asksFIPS, "[alg]", "rh-allow-sha1-signatures = no\n"), "", nil, inFIPS, ""},
		{"FIPS, wrong fips_mode", with(asksFIPS, "[alg]", "fips_mode = perhaps\n"), "", nil, refused, since3("perhaps")},
		{"FIPS, wrong properties", strings.Replace(asksFIPS, "fips=yes", "fips=,", 1), "", nil, refused, since3("fips=,")},
		{"FIPS behind an unknown line", asksIgnored, "", nil, inFIPS, ""},
		{"FIPS behind a missing section", with(asksFIPS, "[init]", "oid_section = none\n"), "", nil, inFIPS, ""},
		{"host missing", asksFIPS, host, missing, plain, ""},
		{"host empty", asksFIPS, host, empty, plain, ""},
		{"host a dangling link", asksFIPS, host, dangling, ignorable, "a link to a file that is missing"},
		{"host can't be opened", asksFIPS, host, loop, refused, "too many levels"},
		{"host can't be read", asksFIPS, host, unreadable, refused, "input/output error"},
		{"host a folder", asksFIPS, host, folder, refused, "is a directory"},
		{"host malformed", asksFIPS + "[broken\n", "", nil, refused, "missing close square bracket"},

		{"policy", asksPolicy, "", nil, inForce, ""},
		{"policy missing", asksPolicy, policy, missing, ignorable, "policy.cnf, which is missing"},
		{"policy a dangling link", asksPolicy, policy, dangling, ignorable, "policy.cnf, which is missing"},
		{"policy can't be opened", asksPolicy, policy, loop, refused, "too many levels"},
		{"policy can't be read", asksPolicy, policy, unreadable, refused, "input/output error"},
		{"policy malformed", asksPolicy, policy, content("MinProtocol\n"), ignorable, "missing equal sign"},
		{"policy, default_properties behind an unknown line", with(provides, "[init]", "none = none\nalg_section = alg\n") +
			"[alg]\ndefault_properties = provider=default\n", "", nil, ignorable, since3("stops at none")},
		{"policy, default_properties behind unknown algorithms", algorithms("other = no\ndefault_properties = provider=default\n"),
			"", nil, ignorable, since3("stops at other")},
		{"policy, default_properties behind Red Hat's algorithms", algorithms("rh-allow-sha1-signatures = no\n" +
			"default_properties = provider=default\n"), "", nil, inForce, ""},
		{"policy, unknown algorithms", algorithms("other = no\n"), "", nil, inForce, ""},
		{"policy, Red Hat's algorithms", algorithms("rh-allow-sha1-signatures = no\n"), "", nil, inForce, ""},
		{"providers", provides, "", nil, inForce, ""},
		{"no section of providers", with(provides, "[prov]", "[other]\n"), "", nil, inForce, ""}, // empty, not missing
		{"no section of some providers", with(provides, "[init]", "providers.1 = no\n"), "", nil, ignorable, since3("section no,")},
		{"a missing section of a provider", with(provides, "[prov]", "legacy = none\n"), "", nil, ignorable, since3("section none")},
		{"a missing provider", legacy("activate = 1\nmodule = DIR/legacy.so\n"), "", nil, ignorable, since3("legacy is not active (")},
		{"a provider that may be missing", legacy("activate = 1\nsoft_load = yes\nmodule = DIR/legacy.so\n"), "", nil, inForce, ""},
		{"a provider that is not activated", legacy("module = DIR/legacy.so\n"), "", nil, inForce, ""},
		{"a missing section of an engine", engines, "", nil, ignorable, before4("section foo_sect")},
		{"a missing engine", engines + "[foo_sect]\ndynamic_path = DIR/foo.so\n", "", nil, ignorable, before4("foo is not loaded (")},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.says == notHere {
				t.Skipf("OpenSSL %s doesn't have that", ossltest.Version())
			}
			dir := hostFiles(t, test.conf)
			if test.fault != nil {
				if err := test.fault(filepath.Join(dir, test.file)); err != nil {
					t.Fatal(err)
				}
			}
			r := underFault(t, dir, 1, nil, nil)
			want, ignoring, try := test.want, test.want, r.Tries[0]
			switch {
			case want == inFIPS && !r.ModuleAvailable:
				want, ignoring = refused, refused
			case want == ignorable:
				want, ignoring = refused, plain
			case want == inForce:
				ignoring = plain
			}
			if try.Outcome != want || (try.DropIn == refused) != (want == refused) || !strings.Contains(try.Err, test.says) {
				t.Errorf("%+v, want %s and %q", try, want, test.says)
			}
			if r.IgnoringPolicy != ignoring || strings.Contains(try.Err, "WithoutHostPolicy") != (test.want == ignorable) {
				t.Errorf("WithoutHostPolicy: %s, want %s: %s", r.IgnoringPolicy, ignoring, try.Err)
			}
			if want == refused && r.Asked+r.Unknown+r.Policy == "" {
				t.Error("Library() tells nothing")
			}
		})
	}
}

// ignorable is refused, unless there is WithoutHostPolicy.
const ignorable = "refused but for WithoutHostPolicy"

// notHere is the text of an error that this version doesn't have.
const notHere = "\x00"

func since3(says string) string {
	if !ossltest.AtLeast("3.0") {
		return notHere
	}
	return says
}

func before4(says string) string {
	if ossltest.AtLeast("4.0") {
		return notHere
	}
	return says
}

// with inserts lines after the first line of a configuration that is section.
func with(conf, section, lines string) string {
	return strings.Replace(conf, section+"\n", section+"\n"+lines, 1)
}

// TestFIPSPassingFaults makes one system call on a file of the host's configuration fail, in each
// thread: the first open or read, the second, and so on, by OpenSSL or by ossl. No Context is made
// without the mode or policy that the file asks for, and Contexts are made as usual once the fault
// has passed.
func TestFIPSPassingFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("starts 80 processes: only without -short")
	}
	strace, err := exec.LookPath("strace")
	if err == nil {
		err = exec.Command(strace, "-f", "-o", os.DevNull, "-e", "trace=openat", "true").Run()
	}
	if err != nil {
		t.Skip("strace is missing, or can't trace here: ", err)
	}
	healthy := underFault(t, hostFiles(t, asksFIPS), 1, nil, nil)
	faults := []string{"openat:error=EMFILE", "openat:error=ENOMEM", "openat:error=EINTR", "openat:error=EACCES", "read:error=EIO"}
	for _, test := range []struct{ name, conf, want string }{
		{"FIPS", asksFIPS, healthy.Tries[0].Outcome}, // refused for want of a module
		{"policy", asksPolicy, inForce},
	} {
		for _, file := range []string{"openssl.cnf", "fipsmodule.cnf", "policy.cnf"} {
			for _, inject := range faults {
				if !strings.Contains(test.conf, file) && file != "openssl.cnf" {
					continue
				}
				call, fails, _ := strings.Cut(inject, ":")
				t.Run(test.name+"/"+file+"/"+inject, func(t *testing.T) {
					t.Parallel()
					for n := 1; n <= 4; n++ {
						dir := hostFiles(t, test.conf)
						r := underFault(t, dir, 20, []string{strace, "-f", "-qq", "-o", os.DevNull, "-P", filepath.Join(dir, file),
							"-e", "trace=" + call, "-e", fmt.Sprintf("inject=%s:%s:when=%d", call, fails, n)}, nil)
						for i, try := range r.Tries {
							last := i == len(r.Tries)-1
							if try.Outcome != test.want && (last || try.Outcome != refused) {
								t.Errorf("%d: attempt %d: %+v, want %s", n, i+1, try, test.want)
							}
							if try.Outcome == refused && test.want != refused && strings.Contains(try.Err, "WithoutHostPolicy") {
								t.Errorf("%d: attempt %d: bad advice: %s", n, i+1, try.Err)
							}
						}
					}
				})
			}
		}
	}
}
