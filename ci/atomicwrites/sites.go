//go:build linux && amd64

package main

import (
	"cmp"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// A site is an atomic instruction in a file or in memory. The address of its operand is disp + base + index * scale.
type site struct {
	at          uint64
	code        byte // the byte that the breakpoint replaces
	ours        bool
	disp        uint64
	base, index string
	scale       uint64
	static      bool // disp is an address in the file
}

var (
	instruction = regexp.MustCompile(`^ *([0-9a-f]+):\t` +
		`(?:lock (?:x?add|cmpxchg|sub|inc|dec|and|x?or|bt[src]|neg|not)|xchg)\S* +` +
		`[^(:]*?(-?0x[0-9a-f]+)?\((?:%(\w+))?(?:,%(\w+),(\d))?\)(?:.*# ([0-9a-f]+))?`) // %fs:0x10(%rax) is a thread's own
	frame = regexp.MustCompile(` FDE cie=\S+ pc=([0-9a-f]+)\.\.([0-9a-f]+)`)
)

func newSite(f []string) *site {
	s := &site{at: hex(f[1]), base: f[3], index: f[4]}
	disp, _ := strconv.ParseInt(f[2], 0, 64)
	s.disp = uint64(disp)
	s.scale, _ = strconv.ParseUint(f[5], 10, 64)
	if s.base == "rip" {
		s.base, s.disp, s.static = "", hex(f[6]), true
	}
	return s
}

func hex(s string) uint64 {
	n, _ := strconv.ParseUint(s, 16, 64) // the expressions match only digits
	return n
}

// address returns the address of the operand.
func (s *site) address(r *syscall.PtraceRegs) uint64 {
	register := func(name string) uint64 {
		if name == "" {
			return 0
		}
		return reflect.ValueOf(r).Elem().FieldByName(strings.ToUpper(name[:1]) + name[1:]).Uint()
	}
	return s.disp + register(s.base) + register(s.index)*s.scale
}

// A span is a range of addresses.
type span struct{ from, to uint64 }

// A file is an executable or a library. Its addresses are the file's own.
type file struct {
	sites []*site
	span
}

var known = map[string]*file{}

func newFile(path string, ours bool) (*file, error) {
	if known[path] != nil {
		return known[path], nil
	}
	f := &file{span: span{from: 1 << 63}}
	opened, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	for _, p := range opened.Progs {
		if p.Type == elf.PT_LOAD {
			f.from, f.to = min(f.from, p.Vaddr&^(p.Align-1)), max(f.to, p.Vaddr+p.Memsz)
		}
	}
	var functions []span
	if ours {
		functions, err = oursIn(opened)
	} else {
		// Between libcrypto's functions are tables, which objdump disassembles too. The unwind tables list the functions.
		err = objdump(frame, func(f []string) { functions = append(functions, span{hex(f[1]), hex(f[2])}) }, "--dwarf=frames", path)
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(functions, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	err = objdump(instruction, func(match []string) {
		s := newSite(match)
		i, _ := slices.BinarySearchFunc(functions, s.at, func(f span, at uint64) int { return cmp.Compare(f.from, at+1) })
		if i > 0 && s.at < functions[i-1].to {
			s.ours = ours
			f.sites = append(f.sites, s)
		}
	}, "-d", "--no-show-raw-insn", path)
	known[path] = f
	return f, err
}

// objdump runs objdump, and calls do for each line that matches.
func objdump(pattern *regexp.Regexp, do func([]string), args ...string) error {
	out, err := exec.Command("objdump", args...).Output()
	for line := range strings.Lines(string(out)) {
		if match := pattern.FindStringSubmatch(line); match != nil {
			do(match)
		}
	}
	return err
}

// oursIn returns the functions of ossl, in Go and C, and of package sync, except pools, which each processor has its own of.
func oursIn(f *elf.File) ([]span, error) {
	symbols, err := f.Symbols()
	var inGo span
	for _, s := range symbols {
		switch s.Name {
		case "runtime.text":
			inGo.from = s.Value
		case "runtime.etext":
			inGo.to = s.Value
		}
	}
	named := regexp.MustCompile(`^(github\.com/ossl-go/ossl|(internal/)?sync[./])`)
	except := regexp.MustCompile(`^(sync\.\(\*(pool|Pool)|x?_cgo)`)
	var ours []span
	for _, s := range symbols {
		inC := s.Value < inGo.from || s.Value >= inGo.to
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && (inC || named.MatchString(s.Name)) && !except.MatchString(s.Name) {
			ours = append(ours, span{s.Value, s.Value + s.Size})
		}
	}
	return ours, err
}

// sitesOf returns the atomic instructions of a process by address, and the range of the program itself, whose file is self.
func sitesOf(pid int, self string) (found map[uint64]*site, image span, err error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	library := regexp.MustCompile(`^lib(ssl|crypto|c|pthread)[.-]`)
	found = map[uint64]*site{}
	for line := range strings.Lines(string(maps)) {
		f := strings.Fields(line)
		if len(f) != 6 || hex(f[2]) != 0 || f[5] != self && !library.MatchString(filepath.Base(f[5])) {
			continue // each file has several mappings, the first at offset 0
		}
		file, err := newFile(f[5], f[5] == self)
		if err != nil {
			return nil, image, err
		}
		start, _, _ := strings.Cut(f[0], "-")
		base := hex(start) - file.from
		if f[5] == self {
			image = span{base + file.from, base + file.to}
		}
		for _, s := range file.sites {
			moved := *s
			moved.at += base
			if s.static {
				moved.disp += base
			}
			found[moved.at] = &moved
		}
	}
	return found, image, err
}
