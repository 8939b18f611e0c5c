//go:build unix

package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// at names the version that -at adds.
const at = "at"

// known are the versions with rows of their own, by the number that each begins with. "system" is
// taken to be 3.0, as in ci/openssl-versions.
var known = []struct{ number, name string }{
	{"1.1", "1.1"}, {"3.0", "system"}, {"3.5", "3.5"}, {"3.6", "new"}, {"4.0", "4.0"},
}

// majors are the numbers in the names of OpenSSL's libraries, the newest first, in ossl's order of
// preference.
var majors = []string{"4", "3", "1.1"}

// folders are the folders that may contain libssl, relative to the one that OpenSSL was installed to
// or a package was unpacked into.
var folders = []string{".", "lib64", "lib", "lib/*-linux-*", "usr/lib64", "usr/lib", "usr/lib/*-linux-*"}

// versionAt returns the version for an OpenSSL in dir. It is tested like the nearest version among
// known, and must be the version that its libcrypto reports.
func versionAt(dir string) (version, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return version{}, err
	}
	v := version{name: at, tree: dir}
	for _, libraries := range v.glob(folders...) {
		for _, major := range majors {
			if !isFile(filepath.Join(libraries, "libssl.so."+major)) {
				continue
			}
			v.number, err = numberIn(filepath.Join(libraries, "libcrypto.so."+major))
			if err != nil {
				return version{}, err
			}
			v.libraries, v.major = libraries, major
			v.like, err = nearest(v.number)
			return v, err
		}
	}
	return version{}, fmt.Errorf("no libssl.so.%s in %s or in %s below it",
		strings.Join(majors, ", .so."), dir, strings.Join(folders[1:], ", "))
}

// versionText matches the text in each libcrypto that OpenSSL_version(3) returns.
var versionText = regexp.MustCompile(`\x00OpenSSL (\d+\.\d+\.\d+[^\s\x00]*) `)

// numberIn reads the version from a libcrypto's file, without loading it.
func numberIn(libcrypto string) (string, error) {
	content, err := os.ReadFile(libcrypto)
	if err != nil {
		return "", err
	}
	numbers := map[string]bool{}
	for _, found := range versionText.FindAllSubmatch(content, -1) {
		numbers[string(found[1])] = true
	}
	if len(numbers) != 1 {
		return "", fmt.Errorf("%s: %d OpenSSL versions in its text, one expected", libcrypto, len(numbers))
	}
	return slices.Collect(maps.Keys(numbers))[0], nil
}

// nearest returns the newest of the known versions that is not newer than number.
func nearest(number string) (string, error) {
	for _, k := range slices.Backward(known) {
		if compareNumbers(number, k.number) >= 0 {
			return k.name, nil
		}
	}
	return "", fmt.Errorf("OpenSSL %s is older than %s", number, known[0].number)
}

// compareNumbers compares the first two parts of two versions.
func compareNumbers(a, b string) int {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range 2 {
		m, _ := strconv.Atoi(x[i]) // the versions have digits only in these parts
		n, _ := strconv.Atoi(y[i])
		if m != n {
			return cmp.Compare(m, n)
		}
	}
	return 0
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}
