package libssl

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// cacheOf makes a cache as glibc's ldconfig does, preceded by a table in the format before 2.2 if
// old is set.
func cacheOf(old bool, entries ...[2]string) []byte {
	table := append([]byte("glibc-ld.so.cache1.1"), make([]byte, 28)...)
	binary.NativeEndian.PutUint32(table[20:], uint32(len(entries)))
	at := len(table) + 24*len(entries)
	var texts []byte
	for _, e := range entries {
		entry := make([]byte, 24)
		binary.NativeEndian.PutUint32(entry[4:], uint32(at+len(texts)))
		texts = append(append(texts, e[0]...), 0)
		binary.NativeEndian.PutUint32(entry[8:], uint32(at+len(texts)))
		texts = append(append(texts, e[1]...), 0)
		table = append(table, entry...)
	}
	table = append(table, texts...)
	if old {
		table = append([]byte("ld.so-1.7.0\x00\x00\x00\x00\x00"), table...)
	}
	return table
}

func TestLoaderCache(t *testing.T) {
	entries := [][2]string{{"libssl.so.3", "/a/libssl.so.3"}, {"libz.so.1", "/a/libz.so.1"}, {"libssl.so.3", "/b/libssl.so.3"}}
	want := []string{"/a/libssl.so.3", "/b/libssl.so.3"}
	for _, old := range []bool{false, true} {
		data := cacheOf(old, entries...)
		if got := cached(data, "libssl.so.3"); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := cached(data, "libssl.so"); got != nil {
			t.Errorf("got %q for a name that is not there", got)
		}
		for n := range data { // whatever is left of a damaged one
			cached(data[:n], "libssl.so.3")
		}
	}
}

// TestSearchChoices compares the choices with the order that ld.so(8) states.
func TestSearchChoices(t *testing.T) {
	dir := t.TempDir()
	foreign := make([]byte, 64)
	copy(foreign, "\x7fELF\x02\x01")
	foreign[18], foreign[19] = 0xff, 0xff
	for _, name := range []string{"env/a", "env/x", "rpath/a", "runpath/a", "runpath/b", "cache/b", "cache/c",
		"last/b", "last/c", "last/d", "env/glibc-hwcaps/new/h", "env/h", "rpath/z"} {
		content := []byte("not ELF")
		if name == "env/x" {
			content = foreign
		}
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cache := cacheOf(false, [2]string{"a", dir + "/cache/a"}, [2]string{"b", dir + "/cache/b"}, [2]string{"c", dir + "/cache/c"},
		[2]string{"x", dir + "/cache/c"})
	glibc := &search{first: []string{dir + "/none", dir + "/env"}, last: []string{dir + "/last"}, glibc: true,
		cache: func() []byte { return cache }}
	musl := &search{first: glibc.first, last: glibc.last, cache: func() []byte { return nil }}
	withRPATH := &object{linkage: linkage{rpath: "$ORIGIN/../rpath"}, folder: dir + "/lib"}
	withRUNPATH := &object{linkage: linkage{rpath: "$ORIGIN/../rpath", runpath: "$LIB:${ORIGIN}/runpath"}, folder: dir}
	ofBoth := &object{folder: dir, parent: &object{linkage: linkage{rpath: dir + "/rpath"}, parent: withRUNPATH}}
	for _, c := range []struct {
		does   string
		s      *search
		name   string
		parent *object
		want   string // below dir
	}{
		{"a path", glibc, dir + "/any/a", withRPATH, "any/a"},
		{"the environment", glibc, "a", nil, "env/a"},
		{"RPATH comes first", glibc, "a", withRPATH, "rpath/a"},
		{"that of the one that needs it too", glibc, "z", ofBoth, "rpath/z"},
		{"RUNPATH comes after the environment", glibc, "a", withRUNPATH, "env/a"},
		{"and before the cache", glibc, "b", withRUNPATH, "runpath/b"},
		{"RUNPATH turns RPATH off", glibc, "z", withRUNPATH, ""},
		{"cache or system", glibc, "b", nil, "cache/b last/b"},
		{"the system", glibc, "d", nil, "last/d"},
		{"nowhere", glibc, "e", nil, ""},
		{"another processor's is passed over", glibc, "x", nil, "cache/c"},
		{"a variant", glibc, "h", nil, "env/glibc-hwcaps/new/h env/h"},
		{"musl: the environment comes first", musl, "a", withRPATH, "env/a"},
		{"musl: then RPATH", musl, "z", withRPATH, "rpath/z"},
		{"musl: or RUNPATH", musl, "b", withRUNPATH, "runpath/b"},
		{"musl: inherited", musl, "b", ofBoth, "runpath/b"},
		{"musl: the system", musl, "c", nil, "last/c"},
	} {
		var got []string
		for _, file := range c.s.choices(c.name, c.parent) {
			got = append(got, strings.TrimPrefix(filepath.Clean(file), dir+"/"))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %q, want %q", c.does, got, c.want)
		}
	}
}

// TestSearchSplit: the system's folders are those at the end.
func TestSearchSplit(t *testing.T) {
	for _, c := range []struct{ folders, first, last string }{
		{"/env /lib/x86_64-linux-gnu /usr/lib/x86_64-linux-gnu /lib /usr/lib", "/env",
			"/lib/x86_64-linux-gnu /usr/lib/x86_64-linux-gnu /lib /usr/lib"},
		{"/lib /env /lib64 /usr/lib64", "/lib /env", "/lib64 /usr/lib64"},
		{"/library /lib", "/library", "/lib"},
		{"/opt/libc/lib", "/opt/libc/lib", ""},
		{"", "", ""},
	} {
		var s search
		s.split(strings.Fields(c.folders))
		if !slices.Equal(s.first, strings.Fields(c.first)) || !slices.Equal(s.last, strings.Fields(c.last)) {
			t.Errorf("%s: got %q and %q", c.folders, s.first, s.last)
		}
	}
}
