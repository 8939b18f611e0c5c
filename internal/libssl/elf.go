package libssl

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"unsafe"
)

// An elfFile is a shared library on disk, read by its program headers alone, as the program loader
// does. The format: System V Application Binary Interface, chapters 4 and 5.
type elfFile struct {
	name     string
	file     *os.File
	size     uint64
	is64     bool
	order    binary.ByteOrder
	machine  uint16
	segments []segment // those that are mapped
	dynamic  segment   // or the zero value
}

type segment struct{ offset, address, size uint64 }

// openELF opens a library. It returns nil if there is no regular file in the ELF format, which is
// for the program loader to report, and an error if the file is shorter than its program headers or
// segments require. The caller must call close, which takes nil.
func openELF(name string) (*elfFile, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, nil
	}
	e := &elfFile{name: name, file: f, order: binary.LittleEndian}
	header := make([]byte, 64)
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() {
		_, err = f.ReadAt(header, 0)
	}
	if err != nil || string(header[:4]) != "\x7fELF" {
		e.close()
		return nil, nil
	}
	e.size = uint64(info.Size())
	e.is64 = header[4] == 2
	if header[5] == 2 {
		e.order = binary.BigEndian
	}
	e.machine = e.order.Uint16(header[18:])
	return e, e.readSegments(header)
}

func (e *elfFile) close() {
	if e != nil {
		e.file.Close()
	}
}

// word reads a number of the file's word size, whose offset depends on that.
func (e *elfFile) word(b []byte, at64, at32 int) uint64 {
	if e.is64 {
		return e.order.Uint64(b[at64:])
	}
	return uint64(e.order.Uint32(b[at32:]))
}

func (e *elfFile) readSegments(header []byte) error {
	start := e.word(header, 32, 28)
	step, count := e.order.Uint16(header[42:]), e.order.Uint16(header[44:])
	least := uint16(32)
	if e.is64 {
		step, count = e.order.Uint16(header[54:]), e.order.Uint16(header[56:])
		least = 56
	}
	if start > math.MaxInt32 { // far beyond the size of any library
		return fmt.Errorf("damaged: the offset of its program headers is %d", start)
	}
	if step < least { // the program loader refuses it
		return nil
	}
	size := uint64(step) * uint64(count)
	if start+size > e.size { // checked before memory is taken for it
		return fmt.Errorf("cut short: it has only %d of %d bytes", e.size, start+size)
	}
	table := make([]byte, size)
	if _, err := e.file.ReadAt(table, int64(start)); err != nil {
		return fmt.Errorf("cut short: %w", err)
	}
	const load, dynamic = 1, 2 // PT_LOAD, PT_DYNAMIC
	for ; len(table) > 0; table = table[step:] {
		s := segment{e.word(table, 8, 4), e.word(table, 16, 8), e.word(table, 32, 16)}
		switch e.order.Uint32(table) {
		case load:
			if end := s.offset + s.size; end < s.offset || end > e.size {
				return fmt.Errorf("cut short: it has only %d of %d bytes", e.size, end)
			}
			e.segments = append(e.segments, s)
		case dynamic:
			e.dynamic = s
		}
	}
	return nil
}

// machines are the numbers of the processors in ELF headers. The program loader ignores libraries
// for other ones when it searches.
var machines = map[string]uint16{
	"386": 3, "mips": 8, "mipsle": 8, "mips64": 8, "mips64le": 8, "ppc64": 21, "ppc64le": 21, "s390x": 22, "arm": 40,
	"amd64": 62, "arm64": 183, "riscv64": 243, "loong64": 258,
}

// isForHost reports whether the library is for this process's processor and word size.
func (e *elfFile) isForHost() bool {
	machine, known := machines[runtime.GOARCH]
	return e.is64 == (unsafe.Sizeof(uintptr(0)) == 8) && (!known || machine == e.machine)
}

// A linkage is the information about other libraries in a library's dynamic section.
type linkage struct {
	soname         string
	needed         []string
	rpath, runpath string
}

// linkage reads the dynamic section. It omits the entries that it can't read, because the program
// loader can't read them either.
func (e *elfFile) linkage() (l linkage) {
	const needed, strtab, soname, rpath, runpath = 1, 5, 14, 15, 29 // DT_NEEDED, …
	step := 8
	if e.is64 {
		step = 16
	}
	section := make([]byte, min(e.dynamic.size, 1<<16)/uint64(step)*uint64(step))
	if _, err := e.file.ReadAt(section, int64(e.dynamic.offset)); err != nil {
		return l
	}
	names := map[uint64][]uint64{}
	for ; len(section) > 0; section = section[step:] {
		tag := e.word(section, 0, 0)
		if tag == 0 {
			break
		}
		names[tag] = append(names[tag], e.word(section, 8, 4))
	}
	if len(names[strtab]) == 0 {
		return l
	}
	table, ok := e.fileOffset(names[strtab][0])
	if !ok {
		return l
	}
	last := func(tag uint64) (s string) {
		if all := names[tag]; len(all) > 0 {
			s, _ = e.text(table + all[len(all)-1])
		}
		return s
	}
	for _, at := range names[needed] {
		if s, err := e.text(table + at); err == nil {
			l.needed = append(l.needed, s)
		}
	}
	l.soname, l.rpath, l.runpath = last(soname), last(rpath), last(runpath)
	return l
}

// fileOffset returns the place in the file of an address.
func (e *elfFile) fileOffset(address uint64) (uint64, bool) {
	for _, s := range e.segments {
		if address >= s.address && address-s.address < s.size {
			return address - s.address + s.offset, true
		}
	}
	return 0, false
}

// text reads a string that ends with a zero.
func (e *elfFile) text(at uint64) (string, error) {
	if at >= e.size {
		return "", io.ErrUnexpectedEOF
	}
	for _, longest := range []uint64{64, 4096} { // few names are long; Linux's PATH_MAX
		b := make([]byte, min(e.size-at, longest))
		if _, err := e.file.ReadAt(b, int64(at)); err != nil {
			return "", err
		}
		if end := bytes.IndexByte(b, 0); end >= 0 {
			return string(b[:end]), nil
		}
	}
	return "", errors.New("no end of the string")
}
