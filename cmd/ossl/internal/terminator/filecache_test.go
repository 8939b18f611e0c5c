package terminator_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// A site is a folder that two handlers serve: one that keeps files in memory, and one that doesn't.
type site struct {
	t              *testing.T
	name           string
	cached, direct http.Handler
	kept           func() (files, bytes int)
}

func newSite(t *testing.T, limit int, files map[string]string) *site {
	t.Helper()
	return handlersOf(t, newWorld(t).folder(files), limit)
}

// handlersOf makes the handlers of a folder.
func handlersOf(t *testing.T, folder string, limit int) *site {
	t.Helper()
	s := &site{t: t, name: folder}
	handler := func(limit int) (http.Handler, func() (int, int)) {
		h, kept, err := terminator.FileHandler(s.name, true, limit)
		if err != nil {
			t.Fatal(err)
		}
		return h, kept
	}
	s.cached, s.kept = handler(limit)
	s.direct, _ = handler(0)
	return s
}

// settle waits until a file is old enough to be kept.
func (s *site) settle(name string) {
	s.t.Helper()
	for late := time.Now().Add(patience); ; <-time.After(100 * time.Millisecond) {
		before, _ := s.kept()
		get := httptest.NewRequest("GET", name, nil)
		s.cached.ServeHTTP(httptest.NewRecorder(), get)
		if after, _ := s.kept(); after > before {
			return
		}
		if time.Now().After(late) {
			s.t.Fatalf("%s isn't kept", name)
		}
	}
}

func answer(h http.Handler, r *http.Request) string {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return fmt.Sprintln(w.Code, w.Header(), w.Body)
}

// TestFileCacheAnswers: a file in memory is answered as one that is not, and so are all other paths.
func TestFileCacheAnswers(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1<<20, map[string]string{
		"a.html": "<p>", "noext": "\x89PNG\r\n\x1a\n", "empty.txt": "", "sub/index.html": "index", "sub/other": "o",
		"index.html": "root", ".hidden": "h", ".well-known/x": "w", "large.bin": strings.Repeat("x", 65<<10),
	})
	for _, name := range []string{"/a.html", "/noext", "/empty.txt", "/sub/", "/", "/.well-known/x"} {
		s.settle(name)
	}
	files, size := s.kept()
	if files != 6 || size < len("root")+len("index") {
		t.Errorf("%d files are kept, of %d bytes", files, size)
	}
	info, err := os.Stat(filepath.Join(s.name, "a.html"))
	if err != nil {
		t.Fatal(err)
	}
	since := info.ModTime().UTC().Format(http.TimeFormat)
	for _, path := range []string{
		"/", "/index.html", "/a.html", "/a.html/", "/a.html/.", "//a.html", "/./a.html", "/noext", "/empty.txt", "/sub", "/sub/",
		"/sub//", "/sub/index.html", "/sub/other", "/sub/../a.html", "/.hidden", "/.well-known/x", "/large.bin", "/none", "/a.html\x00",
		"/sub/none/", "/..", "/a.html/x",
	} {
		for _, method := range []string{"GET", "HEAD", "POST"} {
			for name, value := range map[string]string{
				"": "", "Range": "bytes=1-2", "If-Modified-Since": since, "If-Unmodified-Since": "Mon, 02 Jan 2006 15:04:05 GMT",
				"If-None-Match": "*", "If-Match": `"x"`, "If-Range": since,
			} {
				request := func() *http.Request {
					r := httptest.NewRequest(method, "/", nil)
					r.URL.Path = path
					if name != "" {
						r.Header.Set(name, value)
					}
					return r
				}
				if got, want := answer(s.cached, request()), answer(s.direct, request()); got != want {
					t.Errorf("%s %q %s:\n%swithout a cache:\n%s", method, path, name, got, want)
				}
			}
		}
	}
}

// TestFileCacheChanges: whatever happens to a file, the next answer is the folder's.
func TestFileCacheChanges(t *testing.T) {
	t.Parallel()
	outside := newWorld(t).folder(map[string]string{"secret": "one"})
	for name, change := range map[string]func(s *site, file string) error{
		"written": func(_ *site, file string) error { return os.WriteFile(file, []byte("two"), 0o600) },
		"written, with its time": func(_ *site, file string) error {
			info, err := os.Stat(file)
			if err == nil {
				err = os.WriteFile(file, []byte("two"), 0o600)
			}
			if err == nil {
				err = os.Chtimes(file, time.Time{}, info.ModTime())
			}
			return err
		},
		"replaced": func(_ *site, file string) error {
			if err := os.WriteFile(file+".new", []byte("two"), 0o600); err != nil {
				return err
			}
			return os.Rename(file+".new", file)
		},
		"removed": func(_ *site, file string) error { return os.Remove(file) },
		"mode":    func(_ *site, file string) error { return os.Chmod(file, 0) },
		"folder moved": func(s *site, _ string) error {
			return os.Rename(filepath.Join(s.name, "sub"), filepath.Join(s.name, "gone"))
		},
		"link to the outside": func(_ *site, file string) error {
			if err := os.Remove(file); err != nil {
				return err
			}
			return os.Symlink(filepath.Join(outside, "secret"), file)
		},
		"folder in its place": func(_ *site, file string) error {
			if err := os.Remove(file); err != nil {
				return err
			}
			return os.Mkdir(file, 0o700)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, 1<<20, map[string]string{"sub/file": "one"})
			s.settle("/sub/file")
			begun := time.Now()
			if err := change(s, filepath.Join(s.name, "sub", "file")); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				request := func() *http.Request { return httptest.NewRequest("GET", "/sub/file", nil) }
				got, want := answer(s.cached, request()), answer(s.direct, request())
				if got != want || strings.Contains(got, "one") && name != "mode" { // root may read all files
					t.Errorf("%swithout a cache:\n%s", got, want)
				}
			}
			// After a second and more, the file as it is now may be kept.
			if files, _ := s.kept(); files != 0 && time.Since(begun) < time.Second {
				t.Errorf("%d files are kept", files)
			}
		})
	}
}

// TestFileCacheLeavesRoot: a file whose folder was moved out of the root, and is now a link there, is
// not served for long.
func TestFileCacheLeavesRoot(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1<<20, map[string]string{"sub/file": "one"})
	s.settle("/sub/file")
	inside, outside := filepath.Join(s.name, "sub"), filepath.Join(t.TempDir(), "sub")
	if err := errors.Join(os.Rename(inside, outside), os.Symlink(outside, inside)); err != nil {
		t.Fatal(err)
	}
	for late := time.Now().Add(patience); ; <-time.After(100 * time.Millisecond) {
		request := func() *http.Request { return httptest.NewRequest("GET", "/sub/file", nil) }
		got, want := answer(s.cached, request()), answer(s.direct, request())
		if got == want {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("%swithout a cache:\n%s", got, want)
		}
	}
}

// TestFileCacheBound: the cache is bounded, whatever files are asked for.
func TestFileCacheBound(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range 20 {
		files[fmt.Sprint(i)] = strings.Repeat("x", 1000)
	}
	s := newSite(t, 10<<10, files)
	s.settle("/0")
	for range 3 {
		for i := range 20 {
			request := httptest.NewRequest("GET", fmt.Sprintf("/%d", i), nil)
			if got := answer(s.cached, request); !strings.Contains(got, files["0"]) {
				t.Fatalf("file %d: %s", i, got)
			}
			if number, size := s.kept(); size > 10<<10 || number > 10 {
				t.Fatalf("%d files, %d bytes are kept", number, size)
			}
		}
	}
	if number, _ := s.kept(); number < 2 {
		t.Errorf("%d files are kept", number)
	}
}
