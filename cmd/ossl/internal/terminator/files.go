package terminator

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A folder has a site's files, and is the http.FileSystem of its lists. It opens *os.File values, for
// which net/http uses sendfile(2). Nothing outside of the root can be opened, by ".." or by symbolic
// links: os.Root sees to that.
type folder struct {
	root    *os.Root
	secrets *secretFiles // that aren't served
}

var errHidden = &fs.PathError{Op: "open", Err: fs.ErrNotExist}

// Open opens a folder to list it, or a file.
func (f folder) Open(name string) (http.File, error) {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	if name == "" {
		name = "."
	}
	file, info, err := f.open(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return file, nil
	}
	return listing{file}, nil
}

// open opens the file or the folder of a clean name in the root. Files whose names begin with a dot, and
// all below such folders, are not served, except .well-known (RFC 8615). Devices, pipes and sockets
// aren't either.
func (f folder) open(name string) (*os.File, fs.FileInfo, error) {
	if strings.ContainsRune(name, 0) {
		return nil, nil, errHidden
	}
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".") && part != ".well-known" && name != "." {
			return nil, nil, errHidden
		}
	}
	if runtime.GOOS == "windows" { // in which a "\" separates names too, and a ":" begins a stream
		if _, err := filepath.Localize(name); err != nil {
			return nil, nil, errHidden
		}
	}
	// O_NONBLOCK: to open a pipe doesn't wait for a writer.
	file, err := f.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, notFound(err)
	}
	info, err := file.Stat()
	if err == nil && !info.IsDir() && (!info.Mode().IsRegular() || f.secrets.has(info)) {
		err = errHidden
	}
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

// A listing is a folder whose entries with a dot aren't listed, since they aren't served either.
type listing struct{ *os.File }

func (l listing) ReadDir(n int) ([]fs.DirEntry, error) {
	entries, err := l.File.ReadDir(n)
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), ".") }), err
}

// notFound hides the reason why a file can't be opened, except that it may not be read, or that the
// server has no means to: caches would remember that it doesn't exist.
func notFound(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fs.ErrPermission
	}
	for _, lack := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EIO} {
		if errors.Is(err, lack) {
			return err
		}
	}
	return errHidden
}

// A fileHandler answers requests for the files of a site.
type fileHandler struct {
	name        string // of the root
	list        bool
	defaultType string
	compressed  bool // files in an encoding are sent in the place of plain ones
	secrets     *secretFiles
	cache       *fileCache
	log         *slog.Logger
	current     atomic.Pointer[openRoot]
	looked      atomic.Int64 // at the name, in nanoseconds since 1970

	looking sync.Mutex
	failed  string // guarded by looking; the error of the last look
}

// An openRoot is a folder to which the name of a root has led.
type openRoot struct {
	folder folder
	info   fs.FileInfo
	dir    *os.File // for the cache
	fd     uintptr  // of dir
	lists  http.Handler
}

func newFileHandler(s *Site, secrets *secretFiles, cache *fileCache, log *slog.Logger) (*fileHandler, error) {
	h := &fileHandler{name: s.Root, list: s.List, defaultType: cmp.Or(s.DefaultType, defaultType), compressed: s.Precompressed,
		secrets: secrets, cache: cache, log: log}
	root, err := h.open()
	if err != nil {
		return nil, err
	}
	h.current.Store(root)
	h.looked.Store(time.Now().UnixNano())
	return h, nil
}

// open opens the folder to which the root's name leads now.
func (h *fileHandler) open() (*openRoot, error) {
	root, err := os.OpenRoot(h.name)
	if err != nil {
		return nil, err
	}
	made := &openRoot{folder: folder{root, h.secrets}}
	if made.dir, err = root.Open("."); err == nil {
		made.info, err = made.dir.Stat()
	}
	if err != nil {
		made.close()
		return nil, err
	}
	made.fd = made.dir.Fd()
	made.lists = http.FileServer(made.folder)
	return made, nil
}

// stat returns the state of the file that a name leads to.
func (r *openRoot) stat(name string) (fs.FileInfo, error) { return r.folder.root.Stat(name) }

func (r *openRoot) close() {
	if r.dir != nil {
		_ = r.dir.Close()
	}
	_ = r.folder.root.Close()
}

// close closes the root.
func (h *fileHandler) close() { h.current.Load().close() }

// root returns the folder. Once a second it looks whether the root's name leads to another one: it may be
// a link that has been switched.
func (h *fileHandler) root() *openRoot {
	now := time.Now().UnixNano()
	if last := h.looked.Load(); now-last >= int64(reopened) && h.looked.CompareAndSwap(last, now) {
		h.look()
	}
	return h.current.Load()
}

func (h *fileHandler) look() {
	h.looking.Lock()
	defer h.looking.Unlock()
	before := h.current.Load()
	info, err := os.Stat(h.name)
	if err != nil || os.SameFile(info, before.info) {
		return // "ln -sfn" removes the link before it makes the other one
	}
	next, err := h.open()
	if err != nil {
		if failed := err.Error(); failed != h.failed {
			h.failed = failed
			h.log.Error("root not replaced", "root", h.name, "error", err)
		}
		return
	}
	h.failed = ""
	h.current.Store(next)
	h.cache.forget(before.folder.root) // the garbage collector closes it after the requests that use it
	h.log.Info("root replaced", "root", h.name)
}

func (h *fileHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "405 method not allowed", http.StatusMethodNotAllowed)
		return
	}
	w.Header()["X-Content-Type-Options"] = noSniff
	root := h.root()
	name, isFolder := fileOf(r.URL.Path)
	if path.Base(name) == "index.html" && !isFolder {
		redirect(w, r, "./")
		return
	}
	found := name
	if isFolder {
		found = path.Join(name, "index.html")
	}
	if h.compressed && h.serveCompressed(w, r, root, found) {
		return
	}
	if f := h.cache.get(root.folder.root, root.fd, found, ""); f != nil {
		f.serve(w, r)
		return
	}
	file, info, err := root.folder.open(found)
	if err != nil && isFolder {
		h.serveFolder(w, r, root, name)
		return
	}
	if err != nil {
		refuseFile(w, err)
		return
	}
	defer file.Close()
	switch {
	case !info.Mode().IsRegular() && isFolder:
		refuseFile(w, errHidden) // the folder's index is a folder
	case !info.Mode().IsRegular():
		redirect(w, r, path.Base(name)+"/")
	default:
		h.serveFile(w, r, root, found, encoding{}, file, info)
	}
}

// serveCompressed answers with a file beside the one with a name, in an encoding that the client accepts.
// It isn't used if it is older than the plain one. serveCompressed reports whether there is one.
func (h *fileHandler) serveCompressed(w http.ResponseWriter, r *http.Request, root *openRoot, name string) bool {
	w.Header()["Vary"] = varyByEncoding
	for _, e := range acceptable(r.Header.Get("Accept-Encoding")) {
		plain, err := root.stat(name)
		if err != nil || !plain.Mode().IsRegular() {
			return false
		}
		f := h.cache.get(root.folder.root, root.fd, name+e.suffix, e.name)
		if f != nil && !older(f.modified, plain.ModTime()) {
			f.serve(w, r)
			return true
		}
		file, info, err := root.folder.open(name + e.suffix)
		if err != nil {
			continue
		}
		if !info.Mode().IsRegular() || older(info.ModTime(), plain.ModTime()) {
			_ = file.Close()
			continue
		}
		defer file.Close()
		h.serveFile(w, r, root, name, e, file, info)
		return true
	}
	return false
}

// older compares the dates of files in seconds, which archives have.
func older(a, b time.Time) bool { return a.Unix() < b.Unix() }

var varyByEncoding = []string{"Accept-Encoding"}

// serveFile answers with an open file.
func (h *fileHandler) serveFile(w http.ResponseWriter, r *http.Request, root *openRoot, name string, e encoding, file *os.File,
	info fs.FileInfo) {
	kind := cmp.Or(typeOf(name), h.defaultType)
	if f := h.cache.add(root.folder.root, name+e.suffix, kind, e.name, file, info); f != nil {
		f.serve(w, r)
		return
	}
	header := w.Header()
	header["Content-Type"] = []string{kind}
	header["Etag"] = []string{etagOf(file, info)}
	if e.name != "" {
		header["Content-Encoding"] = []string{e.name}
	}
	adjust(r, info.ModTime(), info.Size())
	http.ServeContent(w, r, info.Name(), info.ModTime(), file)
}

// serveFolder answers a request for a folder that has no index.html.
func (h *fileHandler) serveFolder(w http.ResponseWriter, r *http.Request, root *openRoot, name string) {
	file, info, err := root.folder.open(cmp.Or(name, "."))
	if err != nil {
		refuseFile(w, err)
		return
	}
	_ = file.Close()
	switch {
	case info.Mode().IsRegular():
		redirect(w, r, "../"+path.Base(name))
	case h.list:
		root.lists.ServeHTTP(w, r)
	default:
		refuseFile(w, errHidden)
	}
}

// refuseFile answers a request for a file that can't be opened.
func refuseFile(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		http.Error(w, "404 page not found", http.StatusNotFound)
	case errors.Is(err, fs.ErrPermission):
		http.Error(w, "403 Forbidden", http.StatusForbidden)
	default:
		http.Error(w, "500 Internal Server Error", http.StatusInternalServerError)
	}
}

// redirect answers with the place of a file relative to the request's path, as http.FileServer does.
func redirect(w http.ResponseWriter, r *http.Request, to string) {
	place := url.URL{Path: to, RawQuery: r.URL.RawQuery}
	w.Header().Set("Location", place.String())
	w.WriteHeader(http.StatusMovedPermanently)
}

// noSniff keeps browsers from guessing another type for a file.
var noSniff = []string{"nosniff"}

// fileOf returns the name in the root for a request's path, "" for the root itself, and reports
// whether the path is a folder's.
func fileOf(request string) (name string, isFolder bool) {
	name = strings.TrimPrefix(path.Clean("/"+request), "/")
	return name, name == "" || strings.HasSuffix(request, "/")
}

// etagOf returns the entity tag of an open file. It changes whenever the contents may have changed: the
// time of the last change of status can't be set, so it also tells a file of the same size and date.
func etagOf(file *os.File, info fs.FileInfo) string {
	if state, ok := stateOfFile(file); ok {
		return state.etag()
	}
	return fmt.Sprintf(`"%x-%x"`, info.Size(), info.ModTime().UnixNano())
}
