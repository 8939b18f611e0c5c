//go:build cgo || ossl_nocgo

package ossl_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestFIPSRequired sets OSSL_FIPS and the kernel's FIPS mode.
func TestFIPSRequired(t *testing.T) {
	t.Setenv("OSSL_FIPS", "on")
	var refused *ossl.ConfigError
	if _, err := ossl.NewContext(&tls.Config{}); !errors.As(err, &refused) || refused.Field != "OSSL_FIPS" {
		t.Errorf("OSSL_FIPS=on: %v", err)
	}
	t.Setenv("OSSL_FIPS", "require")
	ctx, err := ossl.NewContext(&tls.Config{})
	if ossltest.Library().FIPS {
		if err != nil || ctx.FIPS() == nil {
			t.Errorf("OSSL_FIPS=require: %v", err)
		}
		return
	}
	if !errors.Is(err, ossl.ErrNotFIPS) || !strings.Contains(err.Error(), "OSSL_FIPS=require") {
		t.Errorf("OSSL_FIPS=require without a module: %v", err)
	}
	t.Setenv("OSSL_FIPS", "")
	kernel := filepath.Join(t.TempDir(), "fips_enabled")
	if err := os.WriteFile(kernel, []byte("1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	ossl.SetKernelFIPS(t, kernel)
	if _, err := ossl.NewContext(&tls.Config{}); !errors.Is(err, ossl.ErrNotFIPS) || !strings.Contains(err.Error(), kernel) {
		t.Errorf("a kernel in FIPS mode: %v", err)
	}
	os.WriteFile(kernel, []byte("0\n"), 0o644)
	ossl.SetKernelFIPS(t, kernel)
	if _, err := ossl.NewContext(&tls.Config{}); err != nil {
		t.Errorf("a kernel that is not: %v", err)
	}
	if why, err := ossl.HostInFIPS(filepath.Join(t.TempDir(), "none")); why != "" || err != nil {
		t.Errorf("a kernel without FIPS mode: %q, %v", why, err)
	}
	if why, err := ossl.HostInFIPS(t.TempDir()); !errors.As(err, &refused) { // a folder can't be read
		t.Errorf("a kernel that doesn't say: %q, %v", why, err)
	}
}

// TestFIPSFaults breaks the module and its configuration. FIPS mode fails with the cause, and
// nothing else fails.
func TestFIPSFaults(t *testing.T) {
	ossltest.NeedFIPS(t)
	if strings.HasPrefix(ossltest.Version(), "1.") {
		t.Skipf("OpenSSL %s has its module in libcrypto", ossltest.Version())
	}
	module := ossltest.FIPSClient(t).FIPS().Path
	code, err := os.ReadFile(module)
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(code)
	// Change a byte of a constant, the initial values of SHA-512, which is read and never run.
	at := bytes.LastIndex(damaged, []byte("OpenSSL FIPS Provider"))
	if at < 0 {
		t.Fatal("the module doesn't hold its name")
	}
	damaged[at] ^= 1
	for _, test := range []struct {
		name, conf string
		code       []byte
		want       string
	}{
		{"as it is", "", code, ""},
		{"no module", "", nil, "install the FIPS module"},
		{"damaged", "", damaged, "the module has refused itself"},
		{"cut off early", "", code[:100], "reinstall the FIPS module"},
		{"cut off", "", code[:len(code)/2], "cut short"}, // the loader would crash
		{"empty", "", []byte{}, "could not load"},
		{"no configuration", "/nonexistent/openssl.cnf", code, "no checksum"},
		{"another checksum", "[fips_sect]\nactivate = 1\nmodule-mac = 00:11:22\n", code, "the module has refused itself"},
		{"no checksum", "[fips_sect]\nactivate = 1\n", code, "no checksum"},
		{"a broken configuration", "[fips_sect\n", code, "no checksum"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir() // another path each time: a file that is loaded stays so
			t.Setenv("OPENSSL_MODULES", dir)
			if test.code != nil {
				if err := os.WriteFile(filepath.Join(dir, "fips.so"), test.code, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			switch {
			case strings.HasPrefix(test.conf, "/"):
				t.Setenv("OPENSSL_CONF", test.conf)
			case test.conf != "":
				conf := filepath.Join(dir, "openssl.cnf")
				text := "openssl_conf = init\n[init]\nproviders = prov\n[prov]\nfips = fips_sect\n" + test.conf
				if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				t.Setenv("OPENSSL_CONF", conf)
			}
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
			t.Log(err)
			tlstest.Visit(t, ossltest.ClientOf(ossltest.FIPSClient(t)),
				ossltest.ServerOf(ossltest.FIPSServer(t))) // Contexts that were made before go on
		})
	}
}

// TestFIPSModuleCutShort finds the module's file as OpenSSL does. OpenSSL must not come to load it:
// the loader would crash.
func TestFIPSModuleCutShort(t *testing.T) {
	ossltest.NeedFIPS(t)
	if strings.HasPrefix(ossltest.Version(), "1.") {
		t.Skipf("OpenSSL %s has its module in libcrypto", ossltest.Version())
	}
	code, err := os.ReadFile(ossltest.FIPSClient(t).FIPS().Path)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ file, line string }{
		"by a name":           {"modules/other", "module = other"},
		"by a relative path":  {"modules/below/other.so", "module = below/other.so"},
		"by a path":           {"other.so", "module = DIR/other.so"},
		"by a numbered line":  {"other.so", "1.module = DIR/other.so"},
		"by the last of some": {"other.so", "1.module = nothing\n2.module = DIR/other.so"},
		"by its usual name":   {"modules/fips.so", "conditional-errors = 1"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, test.file)
			conf := filepath.Join(dir, "openssl.cnf")
			text := "openssl_conf = init\n[init]\nproviders = prov\n[prov]\nfips = fips_sect\n[fips_sect]\n" +
				strings.ReplaceAll(test.line, "DIR", dir) + "\n"
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, code[:len(code)/2], 0o755),
				os.WriteFile(conf, []byte(text), 0o644)); err != nil {
				t.Fatal(err)
			}
			t.Setenv("OPENSSL_MODULES", filepath.Join(dir, "modules"))
			t.Setenv("OPENSSL_CONF", conf)
			if err := ossl.TryFIPS(); !errors.Is(err, ossl.ErrNotFIPS) || !strings.Contains(err.Error(), file+": cut short") {
				t.Error(err)
			}
		})
	}
}
