package inspect

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
)

// maxHeaders bounds the bytes that packages elf and buildinfo read of a file.
const maxHeaders = 64 << 20

// bounded reads a bounded number of bytes.
type bounded struct {
	r    io.ReaderAt
	left int64
}

func (b *bounded) ReadAt(p []byte, off int64) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, fmt.Errorf("its headers have more than %d bytes", maxHeaders)
	}
	return b.r.ReadAt(p, off)
}

// An elfFile is an ELF file whose headers were read.
type elfFile struct{ *elf.File }

// readELF reads the headers of a file, and refuses other formats by their names.
func readELF(r io.ReaderAt) (elfFile, error) {
	head := make([]byte, 64) // of ELF; others are shorter
	n, err := r.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return elfFile{}, reason(err)
	}
	head = head[:n]
	for _, f := range []struct{ name, magic string }{
		{"a program for Windows", "MZ"},
		{"a program for macOS", "\xcf\xfa\xed\xfe"}, {"a program for macOS", "\xce\xfa\xed\xfe"},
		{"a program for macOS, or a Java class", "\xca\xfe\xba\xbe"},
		{"a program for WebAssembly", "\x00asm"}, {"a program for AIX", "\x01\xf7"},
		{"a library of object files", "!<arch>\n"}, {"a script", "#!"},
	} {
		if bytes.HasPrefix(head, []byte(f.magic)) {
			return elfFile{}, fmt.Errorf("%s: only ELF files are read, as Linux and the BSDs have them", f.name)
		}
	}
	if !bytes.HasPrefix(head, []byte(elf.ELFMAG)) {
		return elfFile{}, errors.New("not a program: it isn't an ELF file")
	}
	if err := checkNames(r, head); err != nil {
		return elfFile{}, fmt.Errorf("a damaged ELF file: %w", reason(err))
	}
	f, err := elf.NewFile(&bounded{r, maxHeaders})
	if err != nil {
		return elfFile{}, fmt.Errorf("a damaged ELF file: %w", err)
	}
	if f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN {
		return elfFile{}, errors.New("not a program: an ELF file that isn't linked, or a core dump")
	}
	return elfFile{f}, nil
}

// checkNames refuses tables that package elf would take much memory for: it decompresses the names of
// the sections, and there may be billions of sections if their number isn't in the file's header.
func checkNames(r io.ReaderAt, head []byte) error {
	if len(head) < 64 { // shorter than any program of 32 or 64 bits
		return io.ErrUnexpectedEOF
	}
	var order binary.ByteOrder = binary.LittleEndian
	if elf.Data(head[elf.EI_DATA]) == elf.ELFDATA2MSB {
		order = binary.BigEndian
	}
	is32 := elf.Class(head[elf.EI_CLASS]) == elf.ELFCLASS32
	var h elf.Header64
	var err error
	if is32 {
		var h32 elf.Header32
		_, err = binary.Decode(head, order, &h32)
		h.Shoff, h.Shnum, h.Shentsize, h.Shstrndx = uint64(h32.Shoff), h32.Shnum, h32.Shentsize, h32.Shstrndx
	} else {
		_, err = binary.Decode(head, order, &h)
	}
	switch {
	case err != nil:
		return err
	case h.Shoff == 0 && h.Shnum == 0: // stripped
		return nil
	case h.Shnum == 0:
		return errors.New("it has too many sections")
	}
	var names elf.Section64
	in := io.NewSectionReader(r, int64(h.Shoff+uint64(h.Shstrndx)*uint64(h.Shentsize)), 1<<10)
	if is32 {
		var names32 elf.Section32
		err = binary.Read(in, order, &names32)
		names.Flags = uint64(names32.Flags)
	} else {
		err = binary.Read(in, order, &names)
	}
	if err == nil && elf.SectionFlag(names.Flags)&elf.SHF_COMPRESSED != 0 {
		err = errors.New("the names of its sections are compressed")
	}
	return err
}

// An extent is a part of a file.
type extent struct{ start, end int64 }

// extentOf returns the part of a file of a size that a header describes.
func extentOf(offset, length uint64, size int64) extent {
	start := min(offset, uint64(size))
	return extent{int64(start), int64(start + min(length, uint64(size)-start))}
}

// sections returns the parts of the file that the sections with a name have, unless they are compressed.
func (f elfFile) sections(name string, size int64) (parts []extent) {
	for _, s := range f.Sections {
		if s.Name == name && s.Type == elf.SHT_PROGBITS && s.Flags&elf.SHF_COMPRESSED == 0 {
			parts = append(parts, extentOf(s.Offset, s.FileSize, size))
		}
	}
	return merge(parts)
}

// loads returns the parts of the file that a process has in its memory.
func (f elfFile) loads(size int64) (parts []extent) {
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			parts = append(parts, extentOf(p.Off, p.Filesz, size))
		}
	}
	return merge(parts)
}

// merge returns the parts without overlaps, so that each byte is read once.
func merge(parts []extent) (merged []extent) {
	slices.SortFunc(parts, func(a, b extent) int { return cmp.Compare(a.start, b.start) })
	for _, p := range parts {
		switch last := len(merged) - 1; {
		case p.start == p.end:
		case last >= 0 && p.start <= merged[last].end:
			merged[last].end = max(merged[last].end, p.end)
		default:
			merged = append(merged, p)
		}
	}
	return merged
}

// maxDynamic bounds the bytes that are read of the table of libraries: DT_NEEDED in elf(5).
const maxDynamic = 64 << 10

// linkage sets how the program was linked.
func (p *Program) linkage(f elfFile) {
	is := func(kind elf.ProgType) func(*elf.Prog) bool {
		return func(prog *elf.Prog) bool { return prog.Type == kind }
	}
	interpreter, pie, libraries := slices.ContainsFunc(f.Progs, is(elf.PT_INTERP)), false, false
	if i := slices.IndexFunc(f.Progs, is(elf.PT_DYNAMIC)); i >= 0 { // a program has one at most
		table := make([]byte, min(f.Progs[i].Filesz, maxDynamic))
		n, _ := f.Progs[i].ReadAt(table, 0)
		for tag, value := range f.dynamic(table[:n]) {
			libraries = libraries || tag == elf.DT_NEEDED
			pie = pie || tag == elf.DT_FLAGS_1 && elf.DynFlag1(value)&elf.DF_1_PIE != 0
		}
	}
	p.Static = !interpreter && !libraries
	p.PIE = f.Type == elf.ET_DYN && (interpreter || pie)
}

// dynamic returns the entries of a dynamic section.
func (f elfFile) dynamic(table []byte) iter.Seq2[elf.DynTag, uint64] {
	return func(yield func(elf.DynTag, uint64) bool) {
		for {
			var tag, value uint64
			if f.Class == elf.ELFCLASS32 {
				if len(table) < 8 {
					return
				}
				tag, value, table = uint64(f.ByteOrder.Uint32(table)), uint64(f.ByteOrder.Uint32(table[4:])), table[8:]
			} else {
				if len(table) < 16 {
					return
				}
				tag, value, table = f.ByteOrder.Uint64(table), f.ByteOrder.Uint64(table[8:]), table[16:]
			}
			if elf.DynTag(tag) == elf.DT_NULL || !yield(elf.DynTag(tag), value) {
				return
			}
		}
	}
}
