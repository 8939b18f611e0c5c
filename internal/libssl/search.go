package libssl

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

// A search knows the rules by which the program loader finds a library, to check the file before the
// loader maps it: the loader doesn't notice that a file is shorter than its segments, and SIGBUS
// kills the process. ld.so(8); for musl, ldso/dynlink.c.
//
// The check races with the loader: a file replaced or truncated after it goes unnoticed. Not handled:
// $LIB and $PLATFORM in the paths that a library has for its own dependencies, and the folders named
// for processor features that glibc searched before 2.37 (not glibc-hwcaps).
type search struct {
	first  []string            // the folders that come before the loader's cache
	last   []string            // the system's, after it
	cache  func() []byte       // the contents of the cache, nil if there is none
	glibc  bool                // the rules are glibc's: an object's RPATH comes before LD_LIBRARY_PATH
	has    func(string) bool   // reports whether a library of this name is in the process
	seen   map[string]struct{} // the names and paths that are checked
	hwcaps map[string][]string // by folder, those in it for certain processors, with glibc
}

// hostSearch returns the search of this process's loader, or nil if there is none to know: on macOS
// and Windows.
func hostSearch() *search {
	switch runtime.GOOS {
	case "darwin", "ios", "windows":
		return nil
	}
	s := &search{has: isLoaded, cache: func() []byte { return nil }}
	if folders, ok := searchFolders(); ok {
		s.glibc = true
		s.cache = sync.OnceValue(func() []byte {
			data, _ := os.ReadFile("/etc/ld.so.cache")
			return data
		})
		s.split(folders)
		return s
	}
	if !privileged() {
		s.first = strings.FieldsFunc(os.Getenv("LD_LIBRARY_PATH"), func(r rune) bool { return r == ':' || r == '\n' })
	}
	s.last = []string{"/lib", "/usr/local/lib", "/usr/lib"}
	if lists, _ := filepath.Glob("/etc/ld-musl-*.path"); len(lists) == 1 {
		if text, err := os.ReadFile(lists[0]); err == nil {
			s.last = strings.FieldsFunc(string(text), func(r rune) bool { return r == ':' || r == '\n' })
		}
	}
	return s
}

// split divides the folders that glibc searches, in order, at the place of its cache. glibc doesn't
// show that place; it is before the system's folders. A folder of the environment may look like one
// of these, so choices is cautious about them.
func (s *search) split(folders []string) {
	n := len(folders)
	for n > 0 && (folders[n-1] == "/lib" || folders[n-1] == "/usr/lib" ||
		strings.HasPrefix(folders[n-1], "/lib/") || strings.HasPrefix(folders[n-1], "/lib64") ||
		strings.HasPrefix(folders[n-1], "/usr/lib/") || strings.HasPrefix(folders[n-1], "/usr/lib64")) {
		n--
	}
	s.first, s.last = folders[:n], folders[n:]
}

// An object is a library whose dependencies are searched.
type object struct {
	linkage
	folder string
	parent *object // the one that needs it, or nil
}

// check returns an error if a library, or one that the loader would load with it, is cut short. name
// is a path, or a name to be searched.
func (s *search) check(name string) error { return s.checkFor(name, nil) }

func (s *search) checkFor(name string, parent *object) error {
	if name == "" || s.isSeen(name) {
		return nil
	}
	files := s.choices(name, parent)
	if len(files) == 0 || s.has(name) {
		return nil
	}
	for _, file := range files {
		if file != name && s.isSeen(file) {
			continue
		}
		if err := s.checkFile(file, parent); err != nil {
			return err
		}
	}
	return nil
}

func (s *search) isSeen(name string) bool {
	if _, ok := s.seen[name]; ok {
		return true
	}
	if s.seen == nil {
		s.seen = map[string]struct{}{}
	}
	s.seen[name] = struct{}{}
	return false
}

func (s *search) checkFile(file string, parent *object) error {
	e, err := openELF(file)
	defer e.close()
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if e == nil {
		return nil
	}
	if !e.isForHost() {
		return fmt.Errorf("%s: for another processor", file) // musl's loader doesn't check
	}
	o := &object{linkage: e.linkage(), folder: filepath.Dir(file), parent: parent}
	if o.soname != "" {
		s.isSeen(o.soname) // once it is loaded, it is the library of this name
	}
	for _, needed := range o.needed {
		if err := s.checkFor(needed, o); err != nil {
			return err
		}
	}
	return nil
}

// choices returns the files that the loader may choose for a name: one, except that there may be
// variants for other processors, and that the cache and the system's folders may differ.
func (s *search) choices(name string, parent *object) []string {
	if strings.Contains(name, "/") {
		return []string{name}
	}
	for _, folder := range s.before(parent) {
		if files := s.variants(folder, name); files != nil {
			return files
		}
	}
	files := s.suitable(cached(s.cache(), name))
	for _, folder := range s.last {
		if found := s.variants(folder, name); found != nil {
			return append(files, found...)
		}
	}
	return files
}

// before returns the folders that come before the cache, for the dependencies of an object.
func (s *search) before(o *object) (folders []string) {
	if o != nil && s.glibc && o.runpath == "" {
		for p := o; p != nil; p = p.parent {
			if p.runpath == "" {
				folders = append(folders, p.expand(p.rpath)...)
			}
		}
	}
	folders = append(folders, s.first...)
	if o == nil {
		return folders
	}
	if s.glibc {
		return append(folders, o.expand(o.runpath)...)
	}
	for p := o; p != nil; p = p.parent { // musl treats both alike
		if p.runpath != "" {
			folders = append(folders, p.expand(p.runpath)...)
		} else {
			folders = append(folders, p.expand(p.rpath)...)
		}
	}
	return folders
}

// expand returns the folders of a path in the object's dynamic section.
func (o *object) expand(path string) (folders []string) {
	for folder := range strings.SplitSeq(path, ":") {
		folder = strings.NewReplacer("${ORIGIN}", o.folder, "$ORIGIN", o.folder).Replace(folder)
		if folder != "" && !strings.Contains(folder, "$") {
			folders = append(folders, folder)
		}
	}
	return folders
}

// variants returns the files in a folder that the loader may choose: the file with the name, and
// glibc's variants for certain processors.
func (s *search) variants(folder, name string) []string {
	var files []string
	for _, special := range s.special(folder) {
		files = append(files, filepath.Join(special, name))
	}
	return s.suitable(append(files, filepath.Join(folder, name)))
}

// special returns the folders in a folder for certain processors.
func (s *search) special(folder string) []string {
	list, known := s.hwcaps[folder]
	if known {
		return list
	}
	parent := filepath.Join(folder, "glibc-hwcaps")
	processors, _ := os.ReadDir(parent)
	for _, p := range processors {
		list = append(list, filepath.Join(parent, p.Name()))
	}
	if s.hwcaps == nil {
		s.hwcaps = map[string][]string{}
	}
	s.hwcaps[folder] = list
	return list
}

// suitable returns the files that the loader doesn't pass over: those that are there, except, with
// glibc, libraries for another processor.
func (s *search) suitable(files []string) (kept []string) {
	for _, file := range files {
		if !exists(file) {
			continue
		}
		e, _ := openELF(file) // checkFile finds any fault in it
		if !s.glibc || e == nil || e.isForHost() {
			kept = append(kept, file)
		}
		e.close()
	}
	return kept
}

// cached returns the paths that glibc's cache of libraries has for a name: elf/cache.c and
// sysdeps/generic/dl-cache.h of glibc. Since 2.2, the table starts with this text, perhaps after an
// older one.
func cached(data []byte, name string) (paths []string) {
	const magic, header, entry = "glibc-ld.so.cache1.1", 48, 24
	at := bytes.Index(data, []byte(magic))
	if at < 0 || len(data)-at < header {
		return nil
	}
	data = data[at:]
	text := func(offset uint32) []byte { // from there to the end of the table
		return data[min(uint64(offset), uint64(len(data))):]
	}
	key := append([]byte(name), 0)
	count := uint64(binary.NativeEndian.Uint32(data[len(magic):]))
	for i := range min(count, uint64(len(data)-header)/entry) {
		e := data[header+i*entry:]
		if bytes.HasPrefix(text(binary.NativeEndian.Uint32(e[4:])), key) {
			path, _, _ := bytes.Cut(text(binary.NativeEndian.Uint32(e[8:])), []byte{0})
			paths = append(paths, string(path))
		}
	}
	return paths
}
