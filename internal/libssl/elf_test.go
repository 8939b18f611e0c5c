package libssl

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestELFWithoutItsHeaders opens a file that is too short for the program headers that it
// announces: no memory is allocated for them.
func TestELFWithoutItsHeaders(t *testing.T) {
	for _, class := range []byte{1, 2} { // of 32 and of 64 bits
		header := make([]byte, 64)
		copy(header, "\x7fELF")
		header[4], header[5] = class, 1
		start, counts := 28, 42
		if class == 2 {
			start, counts = 32, 54
		}
		header[start] = 64
		binary.LittleEndian.PutUint16(header[counts:], 0xffff)
		binary.LittleEndian.PutUint16(header[counts+2:], 0xffff)
		name := filepath.Join(t.TempDir(), "libshort.so")
		if err := os.WriteFile(name, header, 0o644); err != nil {
			t.Fatal(err)
		}
		const times = 10
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range times {
			e, err := openELF(name)
			e.close()
			if err == nil || !strings.HasPrefix(err.Error(), "cut short") {
				t.Fatalf("class %d: %v", class, err)
			}
		}
		runtime.ReadMemStats(&after)
		if n := (after.TotalAlloc - before.TotalAlloc) / times; n > 1<<16 {
			t.Errorf("class %d: %d bytes of memory", class, n)
		}
	}
}
