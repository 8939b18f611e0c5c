package terminator

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// A folder is the http.FileSystem of a site's files. It opens *os.File values, for which net/http
// uses sendfile(2). Nothing outside of the root can be opened, by ".." or by symbolic links: os.Root
// sees to that.
type folder struct {
	root    *os.Root
	list    bool
	secrets *secretFiles // that aren't served
}

var errHidden = &fs.PathError{Op: "open", Err: fs.ErrNotExist}

// Open opens a file, or a folder that may be listed or has an index. Files whose names begin with a
// dot, and all below such folders, are not served, except .well-known (RFC 8615). Devices, pipes and
// sockets aren't either.
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
	if !f.list {
		if err := f.hasIndex(name); err != nil {
			_ = file.Close()
			return nil, err
		}
	}
	return listing{file, f.list}, nil
}

// open opens the file or the folder of a clean name in the root.
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

// hasIndex returns an error if a folder has no index.html that can be read.
func (f folder) hasIndex(name string) error {
	index, err := f.root.OpenFile(path.Join(name, "index.html"), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return notFound(err)
	}
	defer index.Close()
	if info, err := index.Stat(); err != nil || !info.Mode().IsRegular() {
		return errHidden
	}
	return nil
}

// A listing is a folder whose entries with a dot aren't listed, since they aren't served either.
type listing struct {
	*os.File
	list bool // net/http also lists a folder whose index.html can't be opened
}

func (l listing) ReadDir(n int) ([]fs.DirEntry, error) {
	if !l.list {
		return nil, fs.ErrPermission
	}
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

// maxRanges bounds the parts of a file that a request may ask for. Each one costs a header of its
// own, and many small ones are no use to a client.
const maxRanges = 100

// A fileHandler answers requests for the files of a site.
type fileHandler struct {
	folder folder
	dir    *os.File // the root, for the cache
	fd     uintptr  // of dir
	cache  *fileCache
	rest   http.Handler // redirects, lists folders, and says why a file isn't served
}

func newFileHandler(root *os.Root, list bool, secrets *secretFiles, cache *fileCache) (*fileHandler, error) {
	h := &fileHandler{folder: folder{root, list, secrets}, cache: cache}
	h.rest = http.FileServer(h.folder)
	var err error
	if h.dir, err = root.Open("."); err != nil {
		return nil, err
	}
	h.fd = h.dir.Fd()
	return h, nil
}

// close ends the use of the root.
func (h *fileHandler) close() {
	_ = h.dir.Close()
	_ = h.folder.root.Close()
}

func (h *fileHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "405 method not allowed", http.StatusMethodNotAllowed)
		return
	}
	if strings.Count(r.Header.Get("Range"), ",") >= maxRanges {
		r.Header.Del("Range") // which a server may ignore: RFC 9110, section 14.2
	}
	w.Header()["X-Content-Type-Options"] = noSniff
	name, ok := fileOf(r.URL.Path)
	if !ok {
		h.rest.ServeHTTP(w, r)
		return
	}
	if f := h.cache.get(h.folder.root, h.fd, name); f != nil {
		f.serve(w, r)
		return
	}
	file, info, err := h.folder.open(name)
	if err != nil {
		h.rest.ServeHTTP(w, r)
		return
	}
	defer file.Close()
	if !info.Mode().IsRegular() {
		h.rest.ServeHTTP(w, r)
	} else if f := h.cache.add(h.folder.root, name, file, info); f != nil {
		f.serve(w, r)
	} else {
		http.ServeContent(w, r, info.Name(), info.ModTime(), file)
	}
}

// noSniff keeps browsers from taking a file for one of another type.
var noSniff = []string{"nosniff"}

// fileOf returns the name, in the root, of the file that answers a request for a path: of a folder
// its index.html. It reports whether there can be one. http.FileServer redirects from other paths.
func fileOf(request string) (name string, ok bool) {
	clean := path.Clean(request)
	switch {
	case clean == request && request != "/":
	case request == "/" || clean+"/" == request:
		request += "index.html"
	default:
		return "", false
	}
	return strings.TrimPrefix(request, "/"), request[0] == '/' && !strings.HasSuffix(clean, "/index.html")
}
