package libssl

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
)

// checkWhole returns an error for an ELF file that ends before the end of its segments, such as an
// incomplete copy. The program loader doesn't check this, and the process ends with SIGBUS. Other
// errors in a file are left to the loader. The format: System V Application Binary Interface,
// chapters 4 and 5.
func checkWhole(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	header := make([]byte, 64)
	if _, err := f.ReadAt(header, 0); err != nil || string(header[:4]) != "\x7fELF" {
		return nil
	}
	var order binary.ByteOrder = binary.LittleEndian
	if header[5] == 2 {
		order = binary.BigEndian
	}
	is64 := header[4] == 2
	word := func(b []byte, at64, at32 int) uint64 {
		if is64 {
			return order.Uint64(b[at64:])
		}
		return uint64(order.Uint32(b[at32:]))
	}
	start := word(header, 32, 28)
	step, count := order.Uint16(header[42:]), order.Uint16(header[44:])
	entry := make([]byte, 32)
	if is64 {
		step, count = order.Uint16(header[54:]), order.Uint16(header[56:])
		entry = make([]byte, 56)
	}
	const segment = 1 // PT_LOAD
	for i := range uint64(count) {
		at := start + i*uint64(step)
		if start > math.MaxInt32 { // far beyond the size of any library
			return fmt.Errorf("damaged: the offset of its program headers is %d", start)
		}
		if _, err := f.ReadAt(entry, int64(at)); err != nil {
			return fmt.Errorf("cut short: %w", err)
		}
		if order.Uint32(entry) != segment {
			continue
		}
		offset, size := word(entry, 8, 4), word(entry, 32, 16)
		if end := offset + size; end < offset || end > uint64(info.Size()) {
			return fmt.Errorf("cut short: it has only %d of %d bytes", info.Size(), end)
		}
	}
	return nil
}
