package terminator

import (
	"bytes"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

const (
	// maxCached is the size of the largest file that is kept in memory: for a larger one, encryption
	// takes most of the time.
	maxCached = 64 << 10
	// cacheOverhead bounds the bytes of an entry, except the contents and the name.
	cacheOverhead = 1 << 10
	// settled is the age of the last change at which a file is kept. A clock that has not advanced
	// since would hide the next change.
	settled = 2 * time.Second
	// reopened is the time after which a file is opened anew, since the kernel isn't asked whether a
	// folder on the way to it has become a link out of the root.
	reopened = time.Second
)

// A fileCache keeps the contents of small files of all sites. Every use of an entry asks the kernel
// whether the name still leads to the same file in the same state, so that a change has its effect at
// once.
type fileCache struct {
	limit   int
	mu      sync.RWMutex
	size    int // of all entries; guarded by mu, as they are
	entries map[cacheKey]*cachedFile
}

type cacheKey struct {
	root     *os.Root
	name     string // of the file, in the root
	encoding string // of the contents; "" if the file is sent as itself
}

// A cachedFile has the contents of a file, and the fields of the header of an answer.
type cachedFile struct {
	state                         fileState
	opened                        time.Time
	data                          []byte
	name                          string
	modified                      time.Time
	kind, length, date, fromStart []string
	etag, encoding                []string
}

func newFileCache(limit int) *fileCache {
	return &fileCache{limit: limit, entries: map[cacheKey]*cachedFile{}}
}

// get returns a file that has not changed since it was kept, or nil.
func (c *fileCache) get(root *os.Root, folder uintptr, name, encoding string) *cachedFile {
	key := cacheKey{root, name, encoding}
	c.mu.RLock()
	f := c.entries[key]
	c.mu.RUnlock()
	if f == nil {
		return nil
	}
	// The entry was opened through the root a moment ago. The way that the name takes now doesn't matter
	// yet if it leads to the same file.
	if state, ok := stateAt(folder, name); ok && state == f.state && time.Since(f.opened) < reopened {
		return f
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries[key] == f {
		c.remove(key)
	}
	return nil
}

// add keeps a file that has just been opened, and returns it, or nil if it doesn't keep it.
func (c *fileCache) add(root *os.Root, name, kind, encoding string, file *os.File, info fs.FileInfo) *cachedFile {
	size := info.Size()
	if size > maxCached || int(size)+cacheOverhead+len(name) > c.limit {
		return nil
	}
	now := time.Now()
	before, ok := stateOfFile(file)
	if !ok || before.size() != size || now.Sub(before.changed()) < settled {
		return nil
	}
	data := make([]byte, size)
	if n, err := file.ReadAt(data, 0); n < len(data) || (err != nil && err != io.EOF) {
		return nil
	}
	if after, ok := stateOfFile(file); !ok || after != before {
		return nil
	}
	f := &cachedFile{state: before, opened: now, data: data, name: info.Name(), modified: info.ModTime()}
	f.kind = []string{kind}
	f.etag = []string{before.etag()}
	if encoding != "" {
		f.encoding = []string{encoding}
	}
	f.length = []string{strconv.Itoa(len(data))}
	f.fromStart = []string{"bytes"}
	if !f.modified.IsZero() && !f.modified.Equal(time.Unix(0, 0)) { // as net/http has it
		f.date = []string{f.modified.UTC().Format(http.TimeFormat)}
	}
	key := cacheKey{root, name, encoding}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(key)
	c.size += f.cost(name)
	for other := range c.entries { // in random order
		if c.size <= c.limit {
			break
		}
		c.remove(other)
	}
	c.entries[key] = f
	return f
}

// forget removes all entries of a root.
func (c *fileCache) forget(root *os.Root) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.entries {
		if key.root == root {
			c.remove(key)
		}
	}
}

// remove removes an entry, if there is one. c.mu is held.
func (c *fileCache) remove(key cacheKey) {
	if f := c.entries[key]; f != nil {
		c.size -= f.cost(key.name)
		delete(c.entries, key)
	}
}

func (f *cachedFile) cost(name string) int { return len(f.data) + len(name) + cacheOverhead }

// serve answers a GET or HEAD, as http.ServeContent does.
func (f *cachedFile) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h["Content-Type"] = f.kind
	h["Etag"] = f.etag
	if f.encoding != nil {
		h["Content-Encoding"] = f.encoding
	}
	for _, field := range [...]string{"Range", "If-Match", "If-Unmodified-Since", "If-None-Match", "If-Modified-Since"} {
		if _, ok := r.Header[field]; ok {
			adjust(r, f.modified, int64(len(f.data)))
			http.ServeContent(w, r, f.name, f.modified, bytes.NewReader(f.data))
			return
		}
	}
	h["Accept-Ranges"] = f.fromStart
	h["Content-Length"] = f.length
	if f.date != nil {
		h["Last-Modified"] = f.date
	}
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(f.data) // fails if the client has left
	}
}
