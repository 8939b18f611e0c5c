package main

import (
	"debug/elf"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// A version is an unpacked OpenSSL: headers and libraries.
type version struct {
	tree    string
	flags   []string                   // the compiler's, for the version's headers and the form that the lists have with them
	number  uint64                     // OPENSSL_VERSION_NUMBER
	text    string                     // OPENSSL_VERSION_TEXT
	exports map[string]map[string]bool // by "ssl" and "crypto"
}

func openVersion(tree string, lists []cList) (*version, error) {
	v := &version{tree: tree, flags: []string{"-I" + filepath.Join(tree, "usr", "include")}, exports: map[string]map[string]bool{}}
	// Debian has some headers in a folder for each processor.
	if own, _ := filepath.Glob(filepath.Join(tree, "usr", "include", "*-linux-*", "openssl")); len(own) == 1 {
		v.flags = append(v.flags, "-I"+filepath.Dir(own[0]))
	}
	const source = "#include <openssl/opensslv.h>\n@@ OPENSSL_VERSION_NUMBER @@ OPENSSL_VERSION_TEXT"
	out, err := compile(source, v.flags, preprocess)
	if err != nil {
		return nil, err
	}
	fields := strings.Split(out, "@@")
	if len(fields) != 3 {
		return nil, fmt.Errorf("%s: no version in opensslv.h: %q", tree, out)
	}
	if v.number, err = number(strings.TrimSpace(fields[1])); err != nil {
		return nil, err
	}
	if v.text, err = strconv.Unquote(strings.TrimSpace(fields[2])); err != nil {
		return nil, err
	}
	different, err := differences(lists, v.number)
	if err != nil {
		return nil, err
	}
	v.flags = append(v.flags, different...)
	for _, lib := range []string{"ssl", "crypto"} {
		if v.exports[lib], err = exported(filepath.Join(tree, "usr", "lib", "*", "lib"+lib+".so.*")); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// exported returns the names of the symbols that a library defines for others.
func exported(pattern string) (map[string]bool, error) {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no library is %s", pattern)
	}
	file, err := elf.Open(files[0])
	if err != nil {
		return nil, err
	}
	defer file.Close()
	symbols, err := file.DynamicSymbols()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", files[0], err)
	}
	names := map[string]bool{}
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF {
			names[s.Name] = true
		}
	}
	return names, nil
}

// headers are the OpenSSL headers that declare the lists' names.
const headers = `
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ocsp.h>
#include <openssl/store.h>
#include <openssl/ui.h>
#include <openssl/x509v3.h>
#if OPENSSL_VERSION_NUMBER < 0x30000000L
#include <openssl/engine.h>
#else
#include <openssl/kdf.h>
#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/core_object.h>
#include <openssl/decoder.h>
#include <openssl/provider.h>
#endif
#define SAME(text, condition) _Static_assert(condition, text)
`

// check compares the entries with the version, and returns how many were compared, and the
// differences.
func (v *version) check(lists []cList, entries []entry) (functions, constants int, problems []string, err error) {
	var source strings.Builder
	source.WriteString(headers + includes(lists))
	for _, e := range entries {
		if e.isFunction() {
			if e.only111 && v.number >= 0x30000000 {
				continue
			}
			switch has := v.exports[e.lib][e.name]; {
			case has && e.since > v.number:
				problems = append(problems, fmt.Sprintf("%s is exported already, the list says from %#x on", e.name, e.since))
			case !has && e.since <= v.number:
				problems = append(problems, fmt.Sprintf("%s is not exported by lib%s", e.name, e.lib))
			}
		}
		if e.since > v.number || e.before != 0 && e.before <= v.number {
			continue
		}
		if e.isFunction() {
			functions++
			fmt.Fprintf(&source, "SAME(\"%[1]s: our prototype differs\", "+
				"__builtin_types_compatible_p(__typeof__(&%[1]s), %[2]s (*)%[3]s));\n", e.name, e.ret, e.params)
		} else {
			constants++
			fmt.Fprintf(&source, "SAME(\"%[1]s: our value differs\", (%[1]s) == (%[2]s));\n", e.name, e.value)
		}
	}
	if functions == 0 || constants == 0 {
		problems = append(problems, "nothing was checked: has the form of the lists changed?")
	}
	// Deprecated functions are still functions, and we look up a pointer.
	_, err = compile(source.String(), v.flags, []string{"-std=gnu11", "-fsyntax-only", "-Wall", "-Wno-deprecated-declarations"})
	if err != nil {
		found := compilerSays.FindAllStringSubmatch(err.Error(), -1)
		if found == nil {
			return 0, 0, nil, err
		}
		for _, f := range found {
			problems = append(problems, f[1])
		}
	}
	return functions, constants, problems, nil
}

var compilerSays = regexp.MustCompile(`(?m)\berror: (.*)$`)
