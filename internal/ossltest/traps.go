package ossltest

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/libssl"
)

// envTraps names an environment variable with the path of a file of lines as testdata/traps/list.c
// prints them: offsets in libcrypto at which the tests put an instruction that aborts the process.
// ci/fips-traps uses it to show that in FIPS mode no thread runs that code.
const envTraps = "OSSL_TEST_TRAPS"

// trap is a sequence of bytes that is not an instruction, by processor. It raises SIGILL.
var trap = map[string]string{"amd64": "0f0b"}[runtime.GOARCH] // ud2

// setTraps sets the traps when the library is loaded and slim.c has tried its functions, which it
// does once. No other code runs yet.
func setTraps(file string) error {
	if _, err := ossl.Library(); err != nil {
		return err
	}
	lib, err := libssl.Load("")
	if err != nil {
		return err
	}
	slim := libssl.UseSlim()
	if err := libssl.AskNames(false); err != nil { // which makes a ClientHello that nobody sends
		return err
	}
	base, err := mappedAt(lib.CryptoPath)
	if err != nil {
		return err
	}
	code, err := hex.DecodeString(trap)
	if err != nil || len(code) == 0 {
		return fmt.Errorf("no trap known for %s", runtime.GOARCH)
	}
	list, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	// Through this file the kernel writes even to code, into a copy of the page for this process.
	memory, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer memory.Close()
	set := map[int64]bool{}
	for line := range strings.Lines(string(list)) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return fmt.Errorf("%q is not a line of a kind, an offset and a name", line)
		}
		offset, err := strconv.ParseInt(fields[1], 0, 64)
		if err != nil {
			return err
		}
		if _, err := memory.WriteAt(code, base+offset); err != nil {
			return fmt.Errorf("%s: %w", fields[2], err)
		}
		set[offset] = true
	}
	if len(set) == 0 {
		return fmt.Errorf("%s has none", file)
	}
	fmt.Printf("traps: %d functions of %s at %#x, slim %v\n", len(set), lib.CryptoPath, base, slim)
	return nil
}

// mappedAt returns the address at which a library begins in this process.
func mappedAt(path string) (int64, error) {
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return 0, err
	}
	defer maps.Close()
	for s := bufio.NewScanner(maps); s.Scan(); {
		// from-to rights offset device inode path
		fields := strings.Fields(s.Text())
		if len(fields) == 6 && fields[5] == path && strings.Trim(fields[2], "0") == "" {
			from, _, _ := strings.Cut(fields[0], "-")
			return strconv.ParseInt(from, 16, 64)
		}
	}
	return 0, fmt.Errorf("%s is not mapped", path)
}
