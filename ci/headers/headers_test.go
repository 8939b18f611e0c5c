package main

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

func TestNumber(t *testing.T) {
	for text, want := range map[string]uint64{
		"0x1010117fL":                          0x1010117f,
		"0x30000000L":                          0x30000000,
		"( (3<<28) |(5<<20) |(9<<4) |0x0L )":   0x30500090,
		"( (4 << 28) | (0 << 20) | (3 << 4) )": 0x40000030,
	} {
		if got, err := number(text); err != nil || got != want {
			t.Errorf("number(%q) = %#x, %v, want %#x", text, got, err, want)
		}
	}
	for _, text := range []string{"", "OSSL_V3_0", "-1", `"3"`, "1.5"} {
		if got, err := number(text); err == nil {
			t.Errorf("number(%q) = %#x, want an error", text, got)
		}
	}
	for text, want := range map[string]uint64{"1.1.1": 0x10101000, "3.0": 0x30000000, "3.0.8": 0x30000080, "4.0": 0x40000000} {
		if got, err := release(text); err != nil || got != want {
			t.Errorf("release(%q) = %#x, %v, want %#x", text, got, err, want)
		}
	}
}

func TestGoConstants(t *testing.T) {
	for line, want := range map[string][]entry{
		"A = 1":                                         nil,
		"A = 1 // the first":                            nil,
		"A = 1 // X509 or PKCS":                         nil,
		"A = 10 // X509_V_ERR_EXPIRED":                  {{name: "X509_V_ERR_EXPIRED", value: "10"}},
		"A T = 1 << 3 // SSL_R_B: alert":                {{name: "SSL_R_B", value: "8"}},
		"A = -1 // SSL_R_B, since 3.2":                  {{name: "SSL_R_B", value: "-1", since: 0x30200000}},
		"A = 2 // SSL_R_B, before 3.0":                  {{name: "SSL_R_B", value: "2", before: 0x30000000}},
		"A = 2 // SSL_R_B, since 3.0.8; another before": {{name: "SSL_R_B", value: "2", since: 0x30000080}},
	} {
		got, err := goConstants(writeGo(t, line))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, want %+v", line, got, err, want)
		}
	}
	for _, line := range []string{"A = B // SSL_R_B", "A, B = 1, 2 // SSL_R_B", "A // SSL_R_B", "A = 1 // SSL_R_B, since 3",
		"A = 1 // SSL_R_B of 3.0", "A = 1 // SSL_R_B, from 3.0"} {
		if got, err := goConstants(writeGo(t, line)); err == nil {
			t.Errorf("%s: %+v, want an error", line, got)
		}
	}
}

// writeGo returns a folder with a package that has one constant, in a group after another one.
func writeGo(t *testing.T, line string) string {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "a.go"), "package p\n\nconst (\n\tZ = 0\n\t"+line+"\n)\n")
	writeFile(t, filepath.Join(dir, "a_test.go"), "not Go")
	return dir
}

// TestCheck checks lists that differ from an OpenSSL that the test makes.
func TestCheck(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skipf("%s is not installed: libraries here are not ELF's", "Linux")
	}
	cc := strings.Fields(cmp.Or(os.Getenv("CC"), "cc"))
	if _, err := exec.LookPath(cc[0]); err != nil {
		t.Skipf("%s is not installed", cc[0])
	}
	v32, list := writeVersion(t, cc), filepath.Join(t.TempDir(), "api.h")
	const (
		newSSL  = "X(SSL, V30, REQUIRED, SSL *, SSL_new, (OSSL_CONST_SINCE_4_0 void *ctx, int n))"
		freeMem = "X(CRYPTO, V30, OPTIONAL, void, CRYPTO_free, (void *p))"
		mode    = "K(V30, SSL_MODE, 5)"
	)
	tests := []struct {
		name                 string
		functions, constants string
		more                 []entry
		want                 []string // parts of the problems
		compared             [2]int
	}{
		{name: "alike", compared: [2]int{2, 1}},
		{name: "prototype", functions: "X(SSL, V30, REQUIRED, SSL *, SSL_new, (const void *ctx, int n))",
			want: []string{"SSL_new: our prototype differs"}, compared: [2]int{2, 1}},
		{name: "return type", functions: "X(SSL, V30, REQUIRED, void *, SSL_new, (void *ctx, int n))",
			want: []string{"SSL_new: our prototype differs"}, compared: [2]int{2, 1}},
		{name: "other library", functions: "X(CRYPTO, V30, REQUIRED, SSL *, SSL_new, (void *ctx, int n))",
			want: []string{"SSL_new is not exported by libcrypto"}, compared: [2]int{2, 1}},
		{name: "not exported", functions: newSSL + " X(SSL, V30, REQUIRED, int, SSL_hidden, (void))",
			want: []string{"SSL_hidden is not exported by libssl"}, compared: [2]int{3, 1}},
		{name: "not declared", functions: newSSL + " X(SSL, V30, REQUIRED, int, SSL_undeclared, (void))",
			want: []string{"SSL_undeclared"}, compared: [2]int{3, 1}},
		{name: "exported before", functions: "X(SSL, V40, REQUIRED, SSL *, SSL_new, (void *ctx, int n))",
			want: []string{"SSL_new is exported already"}, compared: [2]int{1, 1}},
		{name: "later", functions: newSSL + " X(SSL, V40, REQUIRED, int, SSL_later, (void))", compared: [2]int{2, 1}},
		{name: "earlier", functions: newSSL + " X(SSL, V111, ONLY_1_1_1, int, SSL_gone, (void))", compared: [2]int{2, 1}},
		{name: "value", constants: "K(V30, SSL_MODE, 6)", want: []string{"SSL_MODE: our value differs"}, compared: [2]int{2, 1}},
		{name: "value unknown", constants: mode + "K(V30, SSL_M, 6)", want: []string{"SSL_M"}, compared: [2]int{2, 2}},
		{name: "value later", constants: mode + "K(V40, SSL_M, 6)", compared: [2]int{2, 1}},
		{name: "value of Go", more: []entry{{name: "SSL_MODE", value: "6"}},
			want: []string{"SSL_MODE: our value differs"}, compared: [2]int{2, 2}},
		{name: "value gone", more: []entry{{name: "SSL_MODE", value: "6", before: 0x30200000}}, compared: [2]int{2, 1}},
		{name: "nothing", constants: " ", want: []string{"nothing was checked"}, compared: [2]int{2, 0}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			writeFile(t, list, `
typedef struct ssl_st SSL;
#ifndef OSSL_CONST_SINCE_4_0
#define OSSL_CONST_SINCE_4_0 const
#endif
#define V111 0x10101000L
#define V30 0x30000000L
#define V40 0x40000000L
#define TEST_API(X) \
	`+freeMem+` \
	`+cmp.Or(test.functions, newSSL)+`
#define TEST_CONSTANTS(K) `+cmp.Or(test.constants, mode)+"\n")
			lists := []cList{{list, "TEST_API", "TEST_CONSTANTS"}}
			v, err := openVersion(v32, lists)
			if err != nil {
				t.Fatal(err)
			}
			if v.number != 0x30200010 || v.text != "OpenSSL 3.2.1 of a test" {
				t.Errorf("the version is %#x, %q", v.number, v.text)
			}
			entries, err := readCLists(lists, v.flags)
			if err != nil {
				t.Fatal(err)
			}
			functions, constants, problems, err := v.check(lists, append(entries, test.more...))
			if err != nil {
				t.Fatal(err)
			}
			if got := [2]int{functions, constants}; got != test.compared {
				t.Errorf("%d functions and constants were compared, want %d", got, test.compared)
			}
			if len(test.want) == 0 && len(problems) > 0 {
				t.Errorf("problems: %q", problems)
			}
			for _, want := range test.want {
				if !strings.Contains(strings.Join(problems, "\n"), want) {
					t.Errorf("problems: %q, want %q", problems, want)
				}
			}
		})
	}
}

// writeVersion makes a tree of headers and libraries that claims to be OpenSSL 3.2.1.
func writeVersion(t *testing.T, cc []string) string {
	tree := t.TempDir()
	include := filepath.Join(tree, "usr", "include", "openssl")
	for _, name := range regexp.MustCompile(`\w+\.h`).FindAllString(headers, -1) {
		writeFile(t, filepath.Join(include, name), "")
	}
	writeFile(t, filepath.Join(include, "opensslv.h"), `
#define OPENSSL_VERSION_NUMBER ( (3<<28) |(2<<20) |(1<<4) |0x0L )
#define OPENSSL_VERSION_TEXT "OpenSSL 3.2.1 of a test"`)
	writeFile(t, filepath.Join(include, "ssl.h"), `
#include <openssl/opensslv.h>
typedef struct ssl_st SSL;
SSL *SSL_new(void *ctx, int n);
int SSL_hidden(void);
void CRYPTO_free(void *p);
#define SSL_MODE 5`)
	for lib, source := range map[string]string{
		"ssl": "void SSL_new(void) {}\nvoid SSL_undeclared(void) {}\nextern int SSL_hidden(void);\n" +
			"void call(void) { SSL_hidden(); }",
		"crypto": "void CRYPTO_free(void) {}",
	} {
		file := filepath.Join(tree, "usr", "lib", "processor-linux-gnu", "lib"+lib+".so.3")
		writeFile(t, file, "")
		cmd := exec.Command(cc[0], append(cc[1:], "-shared", "-fPIC", "-nostdlib", "-o", file, "-x", "c", "-")...)
		cmd.Stdin = strings.NewReader(source)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return tree
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestLists checks that the lists can be read, without an OpenSSL.
func TestLists(t *testing.T) {
	t.Chdir("../..")
	entries, err := readCLists(cLists, nil)
	if err != nil {
		if _, missing := exec.LookPath(cmp.Or(os.Getenv("CC"), "cc")); missing != nil {
			t.Skip("cc is not installed")
		}
		t.Fatal(err)
	}
	functions := 0
	for _, e := range entries {
		if e.isFunction() {
			functions++
		}
		if e.name == "" || e.since < 0x10101000 {
			t.Errorf("%+v has no name, or is from before 1.1.1", e)
		}
	}
	if constants := len(entries) - functions; functions < 100 || constants < 100 {
		t.Errorf("%d functions and %d constants", functions, constants)
	}
	if constants, err := goConstants(filepath.FromSlash(goLists[0])); err != nil || len(constants) == 0 {
		t.Errorf("%s: %d constants, %v", goLists[0], len(constants), err)
	}
}
