//go:build cgo || ossl_nocgo

package libssl_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"fmt"
	"hash"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

const slimReportEnv = "OSSL_TEST_SLIM_REPORT"

// TestMain runs a separate process for slimReport: a library reads its configuration once.
func TestMain(m *testing.M) {
	if os.Getenv(slimReportEnv) == "" {
		os.Exit(m.Run())
	}
	if err := printSlimReport(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// printSlimReport prints whether the slim library context is used, and the parameters of a context
// with libssl's own settings.
func printSlimReport() error {
	if _, err := libssl.Load(""); err != nil {
		return err
	}
	slim := libssl.UseSlim()
	ctx, err := libssl.NewContext(&libssl.ContextConfig{
		MinVersion:    tls.VersionTLS12,
		MaxVersion:    tls.VersionTLS13,
		SecurityLevel: -1,
	})
	if err != nil {
		return err
	}
	fmt.Printf("slim=%t level=%d ciphers=", slim, ctx.SecurityLevel())
	for id := range 0x10000 {
		if ctx.HasCipher(uint16(id)) {
			fmt.Printf("%04x,", id)
		}
	}
	fmt.Print(" groups=")
	for _, group := range []string{
		"P-256", "P-384", "P-521", "X25519", "X448", "brainpoolP256r1", "secp256k1", "ffdhe2048", "ffdhe8192",
	} {
		if libssl.HasGroupName(group) {
			fmt.Print(group, ",")
		}
	}
	fmt.Println()
	return nil
}

// slimLibrary returns the library if its version supports the slim library context, else nil.
func slimLibrary(t *testing.T) *libssl.Library {
	t.Helper()
	lib := load(t)
	if lib.Number >= libssl.Version3_0 {
		return lib
	}
	if libssl.UseSlim() {
		t.Errorf("OpenSSL %s uses the slim library context", lib.Version())
	}
	return nil
}

// slimReport returns printSlimReport's output with a configuration file of this content, and with
// these variables: whether the slim library context is used, and the rest.
func slimReport(t *testing.T, lib *libssl.Library, conf string, env ...string) (slim bool, rest string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "openssl.cnf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	return slimReportOf(t, lib, append([]string{"OPENSSL_CONF=" + file}, env...)...)
}

func slimReportOf(t *testing.T, lib *libssl.Library, env ...string) (slim bool, rest string) {
	t.Helper()
	program := tlstest.Self()
	cmd := exec.Command(program[0], program[1:]...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, libssl.EnvSlim+"=") || strings.HasPrefix(v, "OPENSSL_CONF=")
	}), slimReportEnv+"=1", libssl.EnvLibrary+"="+lib.Path, "GORACE=atexit_sleep_ms=0") // else each sleeps a second
	cmd.Env = append(cmd.Env, env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, &stderr)
	}
	first, rest, ok := strings.Cut(strings.TrimSpace(string(out)), " ")
	if !ok || !strings.HasPrefix(first, "slim=") {
		t.Fatalf("no report: %s", out)
	}
	return first == "slim=true", rest
}

const (
	slimMain = "openssl_conf = main\n[main]\n"
	slimTLS  = "[tls]\nsystem_default = system\n[system]\n"
)

// TestSlimWhen checks that the host's configuration turns the slim library context off, unless it
// makes no difference.
func TestSlimWhen(t *testing.T) {
	lib := slimLibrary(t)
	if lib == nil {
		return
	}
	const providers = "providers = list\n[list]\n"
	for _, test := range []struct {
		name, conf string
		env        []string
		want       bool
	}{
		{name: "empty file", want: true},
		{name: "empty sections", conf: slimMain + "providers = a\nalg_section = a\n[a]\n", want: true},
		{name: "default provider", conf: slimMain + providers + "default = a\n[a]\nactivate = 1\n", want: true},
		{name: "names of objects", conf: slimMain + "oid_section = oids\n[oids]\nmine = 1.2.3.4.5\n", want: true},
		{name: "policy", conf: slimMain + "ssl_conf = tls\n" + slimTLS + "CipherString = DEFAULT\n", want: true},
		{name: "turned off", env: []string{libssl.EnvSlim + "=off"}},
		{name: "another provider too", conf: slimMain + providers + "default = a\nbase = a\n[a]\nactivate = 1\n"},
		{name: "default properties", conf: slimMain + "alg_section = a\n[a]\ndefault_properties = provider=default\n"},
		{name: "not fips by name", conf: slimMain + "alg_section = a\n[a]\nfips_mode = no\n"},
		{name: "random generators", conf: slimMain + "random = a\n[a]\nrandom = HASH-DRBG\ndigest = SHA2-512\n"},
		{name: "a module of someone's", conf: slimMain + "stbl_section = a\n[a]\nname = min:1\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got, _ := slimReport(t, lib, test.conf, test.env...); got != test.want {
				t.Errorf("slim is %t", got)
			}
		})
	}
	t.Run("no file", func(t *testing.T) {
		if got, _ := slimReportOf(t, lib, "OPENSSL_CONF="+filepath.Join(t.TempDir(), "none")); !got {
			t.Error("slim is false")
		}
	})
}

// TestSlimKeepsPolicy checks that the host's policy, and all other parameters of a context, are the
// same in the slim library context.
func TestSlimKeepsPolicy(t *testing.T) {
	lib := slimLibrary(t)
	if lib == nil {
		return
	}
	for _, test := range []struct{ name, policy, want string }{
		{name: "none"},
		{name: "level", policy: "CipherString = DEFAULT:@SECLEVEL=4\n", want: "level=4"},
		{
			name:   "suites",
			policy: "CipherString = ECDHE-RSA-AES256-GCM-SHA384:@SECLEVEL=3\nCiphersuites = TLS_AES_256_GCM_SHA384\n",
			want:   "level=3 ciphers=1302,c030, ",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			conf := ""
			if test.policy != "" {
				conf = slimMain + "ssl_conf = tls\n" + slimTLS + test.policy
			}
			on, got := slimReport(t, lib, conf)
			off, want := slimReport(t, lib, conf, libssl.EnvSlim+"=off")
			if !on || off {
				t.Errorf("slim is %t, and %t when turned off", on, off)
			}
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if !strings.HasPrefix(got, test.want) {
				t.Errorf("%s does not begin with %s", got, test.want)
			}
		})
	}
}

// TestSlimHMAC compares the slim library context's HMAC with crypto/hmac: with the hashes that it
// computes itself and with others, also if it is not trusted.
func TestSlimHMAC(t *testing.T) {
	lib := slimLibrary(t)
	if lib == nil || !libssl.UseSlim() {
		return
	}
	t.Cleanup(func() { libssl.DistrustSchedules(false) })
	data := make([]byte, 400)
	for i := range data {
		data[i] = byte(i * 11)
	}
	for _, distrust := range []bool{false, true} {
		libssl.DistrustSchedules(distrust)
		for name, hash := range map[string]func() hash.Hash{
			"SHA256": sha256.New, "SHA2-256": sha256.New, "SHA384": sha512.New384, "SHA-384": sha512.New384,
			"SHA1": sha1.New, "SHA512": sha512.New, "SHA2-224": sha256.New224, "sha256": sha256.New,
		} {
			for _, keyLen := range []int{1, 16, 32, 63, 64, 65, 128, 129, 300} {
				for _, n := range []int{0, 1, 31, 55, 56, 64, 111, 112, 128, 400} {
					want := hmac.New(hash, data[:keyLen])
					want.Write(data[:n])
					if got := libssl.SlimHMAC(name, data[:keyLen], data[:n]); !bytes.Equal(got, want.Sum(nil)) {
						t.Fatalf("distrust=%t %s, key of %d, %d bytes: %x", distrust, name, keyLen, n, got)
					}
				}
			}
		}
		if got := libssl.SlimHMAC("none", data[:16], data); len(got) != 0 {
			t.Errorf("an HMAC with an unknown hash: %x", got)
		}
	}
}
