package inspect_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"slices"
)

// A section is one of a file that a test makes.
type section struct {
	name  string
	kind  elf.SectionType
	flags elf.SectionFlag
	data  []byte
}

// base is the address of the beginning of a made file.
const base = 0x400000

// makeELF makes a program of 64 bits with sections, all of which are loaded. The last one has the names.
// edit, if there is one, changes the headers.
func makeELF(kind elf.Type, sections []section, progs []elf.Prog64, edit func(*elf.Header64, []elf.Section64)) []byte {
	order := binary.LittleEndian
	names := []byte{0}
	sections = append(slices.Clone(sections), section{name: ".shstrtab", kind: elf.SHT_STRTAB})
	headers := make([]elf.Section64, len(sections)+1)
	for i, s := range sections {
		headers[i+1] = elf.Section64{Name: uint32(len(names)), Type: uint32(s.kind), Flags: uint64(s.flags)}
		names = append(append(names, s.name...), 0)
	}
	sections[len(sections)-1].data = names
	progs = append([]elf.Prog64{{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R), Vaddr: base}}, progs...)
	at := uint64(64 + 56*len(progs))
	var body []byte
	for i, s := range sections {
		h := &headers[i+1]
		body = append(body, make([]byte, -(int(at)+len(body))&15)...)
		h.Off, h.Size = at+uint64(len(body)), uint64(len(s.data))
		h.Addr = base + h.Off
		body = append(body, s.data...)
		for j := range progs {
			if p := &progs[j]; p.Filesz == 0 && elf.ProgType(p.Type) == elf.PT_DYNAMIC && s.name == ".dynamic" {
				p.Off, p.Filesz = h.Off, h.Size
			}
		}
	}
	progs[0].Filesz = at + uint64(len(body))
	progs[0].Memsz = progs[0].Filesz
	header := elf.Header64{Type: uint16(kind), Machine: uint16(elf.EM_X86_64), Version: 1, Phoff: 64,
		Shoff: progs[0].Filesz, Ehsize: 64, Phentsize: 56, Phnum: uint16(len(progs)), Shentsize: 64, Shnum: uint16(len(headers)),
		Shstrndx: uint16(len(headers) - 1)}
	copy(header.Ident[:], elf.ELFMAG+"\x02\x01\x01")
	if edit != nil {
		edit(&header, headers)
	}
	var file bytes.Buffer
	for _, part := range []any{header, progs, body, headers} {
		if err := binary.Write(&file, order, part); err != nil {
			panic(err)
		}
	}
	return file.Bytes()
}

// functions is a section with the names of functions, as Go's linker writes them.
func functions(names ...string) section {
	data := []byte{0}
	for _, name := range names {
		data = append(append(data, name...), 0)
	}
	return section{".gopclntab", elf.SHT_PROGBITS, elf.SHF_ALLOC, data}
}

// constants is a section with strings.
func constants(texts ...string) section {
	return section{".rodata", elf.SHT_PROGBITS, elf.SHF_ALLOC, []byte("text" + join(texts) + "text")}
}

func join(texts []string) (all string) {
	for _, text := range texts {
		all += text
	}
	return all
}

// buildInfo is a section with build information: package debug/buildinfo.
func buildInfo(version, modules string) section {
	data := append([]byte("\xff Go buildinf:\x00\x02"), make([]byte, 16)...)
	data = append(binary.AppendUvarint(data, uint64(len(version))), version...)
	if modules != "" {
		modules = "0123456789abcdef" + modules + "\n0123456789abcdef"[:17]
	}
	data = append(binary.AppendUvarint(data, uint64(len(modules))), modules...)
	return section{".go.buildinfo", elf.SHT_PROGBITS, elf.SHF_ALLOC | elf.SHF_WRITE, data}
}

// dynamic is the table with the names of libraries: pairs of tags and values.
func dynamic(pairs ...uint64) section {
	var data []byte
	for _, v := range pairs {
		data = binary.LittleEndian.AppendUint64(data, v)
	}
	return section{".dynamic", elf.SHT_DYNAMIC, elf.SHF_ALLOC, data}
}

var (
	dynamicProg = elf.Prog64{Type: uint32(elf.PT_DYNAMIC)}
	interpreter = elf.Prog64{Type: uint32(elf.PT_INTERP), Filesz: 1}
)
