//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

// Line and code sizes. The code has more lines than first-level instruction caches and branch
// target buffers have entries, and more pages than the TLBs of instructions.
const (
	cacheLine = 64
	codeSize  = 4 << 20
)

// evicted returns the bytes that cold rows walk over. By default it is four times the second-level
// cache: clients on the same processors empty that one, but not a last-level cache that a virtual
// machine reports as hundreds of megabytes and shares with other machines.
func evicted(megabytes float64) int {
	if megabytes > 0 {
		return int(megabytes * (1 << 20))
	}
	levels, _ := filepath.Glob("/sys/devices/system/cpu/cpu0/cache/index*/level")
	for _, file := range levels {
		if level, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(level)) == "2" {
			text, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "size"))
			if size, err := cacheSize(string(text)); err == nil {
				return 4 * size
			}
		}
	}
	return 8 << 20
}

// cacheSize parses the kernel's size of a cache, as 2048K.
func cacheSize(text string) (int, error) {
	text = strings.TrimSpace(text)
	unit := 1
	for suffix, u := range map[string]int{"K": 1 << 10, "M": 1 << 20} {
		if rest, ok := strings.CutSuffix(text, suffix); ok {
			text, unit = rest, u
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("no size of a cache: %q", text)
	}
	return n * unit, nil
}

// An evictor empties the processor's caches of data and of code.
type evictor struct {
	data []byte
	code []uintptr // addresses of functions that only return, one a cache line
}

// ret is the instruction that returns, on amd64.
const ret = 0xc3

func newEvictor(size int) (*evictor, error) {
	const anonymous = syscall.MAP_PRIVATE | syscall.MAP_ANON
	const smallPages = 15 // MADV_NOHUGEPAGE
	data, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, anonymous)
	if err != nil {
		return nil, err
	}
	_ = syscall.Madvise(data, smallPages) // a kernel without huge pages refuses
	e := &evictor{data: data}
	if runtime.GOARCH != "amd64" { // others don't see new code without cache maintenance
		return e, nil
	}
	code, err := syscall.Mmap(-1, 0, codeSize, syscall.PROT_READ|syscall.PROT_WRITE, anonymous)
	if err != nil {
		return nil, err
	}
	_ = syscall.Madvise(code, smallPages)
	for at := 0; at < codeSize; at += cacheLine {
		code[at] = ret
		e.code = append(e.code, uintptr(unsafe.Pointer(&code[at])))
	}
	if err := syscall.Mprotect(code, syscall.PROT_READ|syscall.PROT_EXEC); err != nil {
		return nil, err
	}
	return e, nil
}

// evict writes a byte of each line of data, and calls each line of code.
func (e *evictor) evict() {
	for at := 0; at < len(e.data); at += cacheLine {
		e.data[at]++
	}
	for i := range e.code {
		// A func value points to a pointer to its code.
		entry := unsafe.Pointer(&e.code[i])
		(*(*func())(unsafe.Pointer(&entry)))()
	}
}
