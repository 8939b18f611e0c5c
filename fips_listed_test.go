//go:build (cgo || ossl_nocgo) && linux

package ossl_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// A standIn is OpenSSL's FIPS module under another name: testdata/fips.
type standIn struct {
	name, title, property, core string
}

const (
	symcrypt     = "provider=symcryptprovider,fips=yes"
	wolf         = "provider=wolfprov,fips=yes"
	symcryptCore = "SymCryptModuleInit"
	wolfCore     = "wolfCrypt_GetStatus_fips"
)

func ccOrSkip(t *testing.T) string {
	t.Helper()
	cc, err := exec.LookPath(cmp.Or(os.Getenv("CC"), "cc"))
	if err != nil {
		t.Skip("cc, or what CC names, is not installed")
	}
	return cc
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// build compiles the stand-in, copies OpenSSL's module into the same folder, and returns the lines
// of its section.
func (s standIn) build(t *testing.T, dir string) string {
	t.Helper()
	cc := ccOrSkip(t)
	module := ossltest.FIPSClient(t).FIPS().Path
	code, err := os.ReadFile(module)
	if err != nil {
		t.Fatal(err)
	}
	behind := filepath.Join(dir, "behind.so")
	if err := os.WriteFile(behind, code, 0o755); err != nil {
		t.Fatal(err)
	}
	args := []string{"-shared", "-fPIC", "-o", filepath.Join(dir, s.name+".so"), "testdata/fips/standin.c",
		`-DTITLE="` + s.title + `"`, `-DPROPERTY="` + s.property + `"`}
	if s.core != "" {
		source, core := filepath.Join(dir, "core.c"), filepath.Join(dir, "libcore.so.103.8.0")
		if err := os.WriteFile(source, []byte("void "+s.core+"(void) {}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, cc, "-shared", "-fPIC", "-o", core, source)
		args = append(args, "-DCORE="+s.core, core)
	}
	run(t, cc, args...)
	// The checksum and what else fipsinstall wrote for the module.
	_, lines, ok := strings.Cut(libssl.FIPSConfiguration(), "[ossl_fips_mode_module]\nactivate = 1\n")
	if !ok {
		t.Fatal("the module's section is not where it is expected")
	}
	return "behind = " + behind + "\n" + lines
}

// hostWith makes a host's openssl.cnf with these providers, besides the default one, in a folder
// that holds their modules.
func hostWith(t *testing.T, dir, sections string) {
	t.Helper()
	conf := filepath.Join(dir, "openssl.cnf")
	text := "openssl_conf = init\n[init]\nproviders = prov\n[prov]\ndefault = default_sect\n" + sections +
		"\n[default_sect]\nactivate = 1\n"
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OPENSSL_CONF", conf)
	t.Setenv("OPENSSL_MODULES", dir)
}

func needProviderFIPS(t *testing.T) {
	t.Helper()
	ossltest.NeedFIPS(t)
	if strings.HasPrefix(ossltest.Version(), "1.") {
		t.Skipf("OpenSSL %s has its module in libcrypto", ossltest.Version())
	}
}

// TestFIPSListedRefused uses an openssl.cnf that activates providers under the names of modules
// that they are not.
func TestFIPSListedRefused(t *testing.T) {
	needProviderFIPS(t)
	for _, test := range []struct {
		name     string
		s        standIn
		inactive bool
		want     string // "": accepted
	}{
		{"SymCrypt", standIn{"symcryptprovider", "symcryptprovider", symcrypt, symcryptCore}, false, ""},
		{"wolfProvider", standIn{"libwolfprov", "wolfSSL Provider FIPS", wolf, wolfCore}, false, ""},
		{"wolfProvider without FIPS", standIn{"libwolfprov", "wolfSSL Provider", wolf, wolfCore}, false,
			`says that it is "wolfSSL Provider", not`},
		{"another title", standIn{"symcryptprovider", "OpenSSL FIPS Provider", symcrypt, symcryptCore}, false, "says that it is"},
		{"another's property", standIn{"symcryptprovider", "symcryptprovider", wolf, symcryptCore}, false, "has no SHA2-256 with"},
		{"not fips=yes", standIn{"symcryptprovider", "symcryptprovider", "provider=symcryptprovider", symcryptCore}, false,
			"has no SHA2-256 with"},
		{"fips=no", standIn{"symcryptprovider", "symcryptprovider", "provider=symcryptprovider,fips=no", symcryptCore}, false,
			"has no SHA2-256 with"},
		{"no module behind it", standIn{"symcryptprovider", "symcryptprovider", symcrypt, ""}, false, "calls no library that has"},
		{"another's module", standIn{"symcryptprovider", "symcryptprovider", symcrypt, wolfCore}, false, "calls no library that has"},
		{"not on the list", standIn{"acmeprov", "symcryptprovider", symcrypt, symcryptCore}, false,
			"activates acmeprov, which ossl does not know as a FIPS module"},
		{"not activated", standIn{"symcryptprovider", "symcryptprovider", symcrypt, symcryptCore}, true, "install the FIPS module"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			lines := test.s.build(t, dir)
			if !test.inactive {
				lines = "activate = 1\n" + lines
			}
			hostWith(t, dir, "vendor = vendor_sect\n[vendor_sect]\nidentity = "+test.s.name+"\n"+lines)
			err := ossl.TryFIPS()
			if test.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, ossl.ErrNotFIPS) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q in it", err, test.want)
			}
		})
	}
	t.Run("OpenSSL's own under its name", func(t *testing.T) {
		dir := t.TempDir()
		lines := standIn{"symcryptprovider", "", "", ""}.build(t, dir)
		code, err := os.ReadFile(filepath.Join(dir, "behind.so"))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "symcryptprovider.so"), code, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		hostWith(t, dir, "symcryptprovider = vendor_sect\n[vendor_sect]\nactivate = 1\n"+lines)
		if err := ossl.TryFIPS(); !errors.Is(err, ossl.ErrNotFIPS) || !strings.Contains(err.Error(), "OpenSSL FIPS Provider") {
			t.Errorf("%v; want its own name for itself in it", err)
		}
	})
}

// envListed tells a copy of this test that its host has a stand-in.
const envListed = "OSSL_TEST_FIPS_LISTED"

// TestFIPSListed connects in FIPS mode on a host whose module is not OpenSSL's, and looks at the
// evidence.
func TestFIPSListed(t *testing.T) {
	if os.Getenv(envListed) != "" {
		client, server := ossltest.FIPSClient(t), ossltest.FIPSServer(t)
		tlstest.Visit(t, ossltest.ClientOf(client), ossltest.ServerOf(server))
		out, err := json.Marshal(client.FIPS())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(os.Getenv(envListed), out, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	needProviderFIPS(t)
	own := ossltest.FIPSClient(t).FIPS()
	if own.Provider != "fips" || own.Library != "" {
		t.Errorf("OpenSSL's own: %+v", own)
	}
	for _, both := range []bool{false, true} {
		dir, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		lines := standIn{"symcryptprovider", "symcryptprovider", symcrypt, symcryptCore}.build(t, dir)
		sections := "symcryptprovider = vendor_sect\n"
		if both { // OpenSSL's own is set up, too
			sections += "fips = own_sect\n[own_sect]\n" + lines + "module = " + own.Path + "\n"
		}
		hostWith(t, dir, sections+"[vendor_sect]\nactivate = 1\n"+lines)
		result := filepath.Join(dir, "result")
		cmd := exec.Command(os.Args[0], "-test.run=^TestFIPSListed$")
		cmd.Env = append(os.Environ(), envListed+"="+result)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var got ossl.FIPSModule
		text, err := os.ReadFile(result)
		if err == nil {
			err = json.Unmarshal(text, &got)
		}
		if err != nil {
			t.Fatal(err)
		}
		want := *own
		if !both {
			want.Name, want.Provider = "symcryptprovider", "symcryptprovider"
			want.Path, want.Library = filepath.Join(dir, "symcryptprovider.so"), filepath.Join(dir, "libcore.so.103.8.0")
		}
		if got != want {
			t.Errorf("the evidence is\n%+v; want\n%+v", got, want)
		}
		t.Log(got.String())
	}
}
