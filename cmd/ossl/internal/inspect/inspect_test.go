package inspect_test

import (
	"debug/elf"
	"encoding/binary"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/cmd/ossl/internal/inspect"
)

const (
	magic     = "\xffOSSL\xffunchanged\xff"
	clientTLS = "crypto/tls.(*Conn).clientHandshake"
	farm      = "crypto/tls/internal/ossl.(*Conn).Read"
	library   = "github.com/ossl-go/ossl.(*Conn).Read"
	withCGO   = "path\texample.org/a\nmod\texample.org/a\tv1.2.3\t\nbuild\tCGO_ENABLED=1\n"
)

// mark returns a marker with a mode.
func mark(mode string) string {
	return magic + `{"format":1,"version":"v0.1.0","build":"3f2a","mode":"` + mode + `","go":"go1.26.8","settings":"a=b"}` +
		"\x00"
}

// TestEngines: the engine of made programs, and the verdicts.
func TestEngines(t *testing.T) {
	info, libc := buildInfo("go1.26.8", withCGO), dynamic(uint64(elf.DT_NEEDED), 1)
	withoutCGO := buildInfo("go1.26.8", "path\ta\nbuild\tCGO_ENABLED=0\n")
	usual := func(sections ...section) []section { return append(sections, info, libc) }
	for _, c := range []struct {
		name     string
		sections []section
		require  string
		engine   string
		ok       bool
		reason   string // a part of it
	}{
		{"none", usual(functions("main.main")), "", inspect.None, false, "no TLS"},
		{"crypto/tls", usual(functions("main.main", clientTLS)), "", inspect.Go, false, "crypto/tls"},
		{"a client, ossl lost", usual(functions("crypto/tls/internal/core.(*Conn).clientHandshake")), "", inspect.Go, false,
			"crypto/tls"},
		{"a server", usual(functions("crypto/tls.(*Conn).serverHandshake-fm")), "", inspect.Go, false, "crypto/tls"},
		{"a name that a string has", usual(functions("main.main"), constants("\x00"+clientTLS+"\x00")), "",
			inspect.None, false, "no TLS"},
		{"a longer name", usual(functions("a/" + clientTLS)), "", inspect.None, false, "no TLS"},
		{"prefer", usual(functions(farm), constants(mark("prefer"))), "", inspect.OSSL, true, ""},
		{"require", usual(functions(farm), constants(mark("require"))), "require", inspect.OSSL, true, ""},
		{"more than required", usual(functions(farm), constants(mark("require"))), "prefer", inspect.OSSL, true, ""},
		{"less than required", usual(functions(farm), constants(mark("prefer"))), "require", inspect.OSSL, false,
			"prefer, not require"},
		{"off", usual(functions(farm), constants(mark("off"))), "", inspect.OSSL, false, "off"},
		{"an unknown mode", usual(functions(farm), constants(mark("maybe"))), "", inspect.OSSL, false, `"maybe"`},
		{"an embedded program", usual(functions(clientTLS), constants(mark("require"))), "", inspect.Go, false, "embeds"},
		{"a program that embeds another", usual(functions(farm), constants(mark("require"), mark("prefer"))), "",
			inspect.OSSL, false, "embeds"},
		{"a program that embeds its like", usual(functions(farm), constants(mark("require"), mark("require"))), "",
			inspect.OSSL, true, ""},
		{"another format", usual(functions(farm), constants(magic+`{"format":2}`+"\x00")), "", inspect.OSSL, false,
			"format 2"},
		{"a marker that is cut", usual(functions(farm), constants(magic+`{"format":1`)), "", inspect.OSSL, false, "damaged"},
		{"a marker without an end", usual(functions(farm), constants(magic+"{"+strings.Repeat(" ", 5000)+"}\x00")), "",
			inspect.OSSL, false, "damaged"},
		{"no marker", usual(functions(farm)), "", inspect.OSSL, false, "not its mark"},
		{"no marker, and the library", usual(functions(farm, library)), "", inspect.Twice, false, "not its mark"},
		{"the magic alone", usual(functions(farm), constants(magic, mark("prefer"), magic)), "", inspect.OSSL, true, ""},
		{"the library", usual(functions(clientTLS, library)), "", inspect.Library, true, ""},
		{"the library has no mode", usual(functions(library)), "prefer", inspect.Library, false, "wasn't built by"},
		{"both", usual(functions(farm, library), constants(mark("require"))), "require", inspect.Twice, true, ""},
		{"without cgo", []section{withoutCGO, libc, functions(farm), constants(mark("prefer"))}, "",
			inspect.OSSL, false, "without cgo"},
		{"static", []section{info, functions(library)}, "", inspect.Library, false, "statically"},
		{"no build information", []section{libc, functions(farm), constants(mark("prefer"))}, "", inspect.OSSL, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := inspect.Read(makeELF(elf.ET_EXEC, c.sections, []elf.Prog64{dynamicProg}, nil))
			if err != nil {
				t.Fatal(err)
			}
			v := p.Judge(c.require)
			if p.Engine != c.engine || v.OK != c.ok || (v.Reason == "") != c.ok || !strings.Contains(v.Reason, c.reason) {
				t.Errorf("engine %s, %+v; want %s, %v, %q", p.Engine, v, c.engine, c.ok, c.reason)
			}
		})
	}
}

// TestFields: the fields of a made program.
func TestFields(t *testing.T) {
	modules := withCGO + "dep\tgithub.com/ossl-go/ossl\tv0.2.0\th1:a\ndep\tb\tv1.0.0\n=>\t./c\t\t\n" +
		"build\tGOOS=linux\nbuild\tGOARCH=arm64\nbuild\t-tags=a,b\nbuild\t-race=true\n"
	file := makeELF(elf.ET_DYN, []section{buildInfo("go1.26.8", modules), functions(farm, library), constants(mark("prefer"))},
		[]elf.Prog64{interpreter}, nil)
	got, err := inspect.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	yes := true
	want := &inspect.Program{Engine: inspect.Twice, Library: "v0.2.0", GoVersion: "go1.26.8", GOOS: "linux", GOARCH: "arm64",
		CGO: &yes, Tags: []string{"a", "b"}, Race: true, PIE: true, Package: "example.org/a",
		Unchanged: &inspect.Marker{Format: 1, Version: "v0.1.0", Build: "3f2a", Mode: "prefer", Go: "go1.26.8", Settings: "a=b"},
		Main:      inspect.Module{Path: "example.org/a", Version: "v1.2.3"},
		Modules: []inspect.Module{{Path: "github.com/ossl-go/ossl", Version: "v0.2.0"},
			{Path: "b", Version: "v1.0.0", Replaced: "./c"}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// TestLinkage: static programs, position-independent ones, and libraries.
func TestLinkage(t *testing.T) {
	const pie = uint64(elf.DF_1_PIE)
	for _, c := range []struct {
		name        string
		kind        elf.Type
		progs       []elf.Prog64
		table       section
		static, pie bool
	}{
		{"static", elf.ET_EXEC, nil, dynamic(), true, false},
		{"static PIE", elf.ET_DYN, []elf.Prog64{dynamicProg}, dynamic(uint64(elf.DT_FLAGS_1), pie, 0, 0), true, true},
		{"dynamic", elf.ET_EXEC, []elf.Prog64{interpreter}, dynamic(), false, false},
		{"PIE", elf.ET_DYN, []elf.Prog64{interpreter}, dynamic(), false, true},
		{"a shared library", elf.ET_DYN, []elf.Prog64{dynamicProg}, dynamic(uint64(elf.DT_NEEDED), 1, 0, 0), false, false},
		{"entries after the last", elf.ET_DYN, []elf.Prog64{dynamicProg}, dynamic(0, 0, uint64(elf.DT_NEEDED), 1), true, false},
		{"half an entry", elf.ET_DYN, []elf.Prog64{dynamicProg}, dynamic(uint64(elf.DT_NEEDED)), true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := inspect.Read(makeELF(c.kind, []section{functions("a"), c.table}, c.progs, nil))
			if err != nil {
				t.Fatal(err)
			}
			if p.Static != c.static || p.PIE != c.pie {
				t.Errorf("static: %v, PIE: %v; want %v, %v", p.Static, p.PIE, c.static, c.pie)
			}
		})
	}
}

// TestChunks: markers and names are found across the edges of the chunks in which files are read, and in
// programs without a table of sections.
func TestChunks(t *testing.T) {
	for before := 1<<20 - 600; before < 1<<20+100; before += 31 {
		space := section{".space", elf.SHT_PROGBITS, elf.SHF_ALLOC, make([]byte, before)}
		sections := []section{space, buildInfo("go1.26.8", withCGO), constants(mark("prefer"), "\x00"+farm+"\x00")}
		file := makeELF(elf.ET_EXEC, sections, nil,
			func(h *elf.Header64, _ []elf.Section64) { h.Shoff, h.Shnum, h.Shstrndx = 0, 0, 0 })
		binary.LittleEndian.PutUint32(file[64+4:], uint32(elf.PF_R|elf.PF_W)) // package buildinfo searches data
		p, err := inspect.Read(file)
		if err != nil || p.Engine != inspect.OSSL || p.Unchanged == nil || p.Unchanged.Mode != "prefer" {
			t.Fatalf("after %d bytes: %+v, %v", before, p, err)
		}
	}
}

// TestRefused: files that are no Go programs, and damaged ones, are refused without much memory.
func TestRefused(t *testing.T) {
	program := []section{buildInfo("go1.26.8", withCGO), functions(farm), constants(mark("prefer"))}
	made := func(edit func(*elf.Header64, []elf.Section64)) []byte {
		return makeELF(elf.ET_EXEC, program, nil, edit)
	}
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "ELF"},
		{"text", []byte("hello"), "ELF"},
		{"Windows", append([]byte("MZ"), make([]byte, 100)...), "Windows"},
		{"macOS", append([]byte("\xcf\xfa\xed\xfe"), make([]byte, 100)...), "macOS"},
		{"macOS, several architectures", append([]byte("\xca\xfe\xba\xbe\x00\x00\x00\x02"), make([]byte, 100)...), "macOS"},
		{"a script", []byte("#!/bin/sh\n"), "script"},
		{"a part of a header", made(nil)[:40], "damaged"},
		{"a part of the sections", made(nil)[:len(made(nil))-1], "damaged"},
		{"no Go", makeELF(elf.ET_EXEC, []section{constants(mark("prefer"))}, nil, nil), "not a Go program"},
		{"an object file", makeELF(elf.ET_REL, program, nil, nil), "linked"},
		{"a core dump", makeELF(elf.ET_CORE, program, nil, nil), "core"},
		{"compressed names",
			made(func(_ *elf.Header64, s []elf.Section64) { s[len(s)-1].Flags = uint64(elf.SHF_COMPRESSED) }), "compressed"},
		{"too many sections", made(func(h *elf.Header64, s []elf.Section64) { h.Shnum, s[0].Size = 0, 1<<31 }), "too many"},
		{"huge names", made(func(_ *elf.Header64, s []elf.Section64) { s[len(s)-1].Size = 1 << 60 }), "damaged"},
		{"names nowhere", made(func(h *elf.Header64, _ []elf.Section64) { h.Shoff = 1 << 62 }), "damaged"},
		{"too many marks", makeELF(elf.ET_EXEC, []section{functions(farm), constants(strings.Repeat(magic, 1001))}, nil, nil), "marks"},
		{"no version", func() []byte { f := made(nil); f[elf.EI_VERSION] = 9; return f }(), "damaged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := inspect.Read(c.file)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v, %v; want an error with %q", p, err, c.want)
			}
		})
	}
}

// TestMemory: a file of 3 GB, most of which are a hole, takes less than 300 MB to read.
func TestMemory(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*elf.Header64, []elf.Section64)
	}{
		{"names", func(_ *elf.Header64, s []elf.Section64) { s[len(s)-1].Size = 3 << 30 }},
		{"sections", func(h *elf.Header64, _ []elf.Section64) { h.Shentsize, h.Shnum = 65535, 60000 }},
		{"programs", func(h *elf.Header64, _ []elf.Section64) { h.Phentsize, h.Phnum = 65535, 65535 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "program")
			file := makeELF(elf.ET_EXEC, []section{buildInfo("go1.26.8", withCGO), functions(farm)}, nil, c.edit)
			if err := os.WriteFile(name, file, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(name, 3<<30); err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := inspect.ReadProgram(name)
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; err == nil || took > 300<<20 {
				t.Errorf("%d bytes, %v; want an error", took, err)
			}
		})
	}
}

// TestFiles: files that can't be read, or that are no files.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	name := func(base string) string { return filepath.Join(dir, base) }
	program := makeELF(elf.ET_EXEC, []section{functions(farm), constants(mark("prefer"))}, nil, nil)
	for _, err := range []error{
		os.WriteFile(name("program"), program, 0o600), os.Symlink("program", name("link")), os.Symlink("nowhere", name("dangling")),
		os.Symlink("loop", name("loop")), os.Mkdir(name("folder"), 0o700), os.WriteFile(name("huge"), program, 0o600),
		os.Truncate(name("huge"), 5<<30),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("unix", name("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for base, want := range map[string]string{
		"program": "", "link": "", "dangling": "symbolic link to nowhere", "loop": "symbolic links",
		"folder": "folder", "socket": "regular", "absent": "no such file", "huge": "more than",
	} {
		_, err := inspect.ReadProgram(name(base))
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), dir)) {
			t.Errorf("%s: %v, want %q, and not the file's name", base, err, want)
		}
	}
}

// FuzzRead: no file makes the command panic, and each has an engine or an error.
func FuzzRead(f *testing.F) {
	for _, kind := range []elf.Type{elf.ET_EXEC, elf.ET_DYN} {
		sections := []section{buildInfo("go1.26.8", withCGO), functions(farm, library, clientTLS),
			dynamic(uint64(elf.DT_NEEDED), 1, 0, 0),
			constants(mark("prefer"), mark("require"))}
		f.Add(makeELF(kind, sections, []elf.Prog64{dynamicProg, interpreter}, nil))
		f.Add(makeELF(kind, sections, nil, func(h *elf.Header64, _ []elf.Section64) { h.Shoff, h.Shnum, h.Shstrndx = 0, 0, 0 }))
	}
	f.Add([]byte(elf.ELFMAG + "\x01\x02\x01"))
	f.Fuzz(func(t *testing.T, file []byte) {
		p, err := inspect.Read(file)
		if err == nil && p.Engine == "" {
			t.Error("neither an engine nor an error")
		}
		if err == nil && p.Judge("require").OK && p.Unchanged == nil {
			t.Errorf("a program without a mode passes: %+v", p)
		}
	})
}
