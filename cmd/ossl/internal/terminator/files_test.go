package terminator_test

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// A receiver is a ResponseWriter that notes the readers that it gets.
type receiver struct {
	*httptest.ResponseRecorder
	files, others int
	deadlines     int
}

func (r *receiver) SetWriteDeadline(time.Time) error {
	r.deadlines++
	return nil
}

func (r *receiver) ReadFrom(src io.Reader) (int64, error) {
	limited, ok := src.(*io.LimitedReader)
	if ok {
		_, ok = limited.R.(*os.File)
	}
	if ok {
		r.files++
	} else {
		r.others++
	}
	return io.Copy(r.ResponseRecorder, src)
}

// TestFilesForSendfile: the connection gets the file itself, as sendfile(2) needs it, in parts with a
// deadline each; also for a range.
func TestFilesForSendfile(t *testing.T) {
	w := newWorld(t)
	const size = 1 << 20
	files, _, err := terminator.FileHandler(w.folder(map[string]string{"file": strings.Repeat("x", size)}), false, 0)
	if err != nil {
		t.Fatal(err)
	}
	handler := terminator.ProgressHandler(files, 1) // a sixteenth of which passes between two parts
	for _, c := range []struct {
		ranges       string
		parts, bytes int
	}{{"", 4, size}, {"bytes=1-300000", 2, 300000}} {
		request := httptest.NewRequest("GET", "/file", nil)
		if c.ranges != "" {
			request.Header.Set("Range", c.ranges)
		}
		r := &receiver{ResponseRecorder: httptest.NewRecorder()}
		handler.ServeHTTP(r, request)
		if r.files != c.parts || r.others != 0 || r.deadlines < c.parts || r.Body.Len() != c.bytes {
			t.Errorf("range %q: %d parts of the file, %d others, %d deadlines, %d bytes",
				c.ranges, r.files, r.others, r.deadlines, r.Body.Len())
		}
	}
	r := &receiver{ResponseRecorder: httptest.NewRecorder()}
	handler.ServeHTTP(r, httptest.NewRequest(http.MethodHead, "/file", nil))
	if r.Body.Len() != 0 {
		t.Errorf("HEAD is answered with %d bytes", r.Body.Len())
	}
}

// TestInformationalDeadline: a response of the class 1xx, which is sent at once, has a deadline: also
// 100, which net/http sends when the body's reading begins.
func TestInformationalDeadline(t *testing.T) {
	for name, send := range map[string]func(http.ResponseWriter, *http.Request){
		"103": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusEarlyHints) },
		"100": func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body) },
	} {
		r := &receiver{ResponseRecorder: httptest.NewRecorder()}
		handler := http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			send(w, request)
			if r.deadlines != 1 {
				t.Errorf("%s: %d deadlines", name, r.deadlines)
			}
		})
		request := httptest.NewRequest("POST", "/", strings.NewReader("body"))
		terminator.ProgressHandler(handler, terminator.Time(time.Hour)).ServeHTTP(r, request)
	}
}

// TestNotFound: only files that don't exist, or aren't served, are answered with 404.
func TestNotFound(t *testing.T) {
	for _, c := range []struct{ err, want error }{
		{syscall.ENOTDIR, fs.ErrNotExist},
		{syscall.ELOOP, fs.ErrNotExist},
		{syscall.EACCES, fs.ErrPermission},
		{syscall.EMFILE, syscall.EMFILE},
		{syscall.EIO, syscall.EIO},
	} {
		if got := terminator.NotFound(&fs.PathError{Op: "open", Path: "x", Err: c.err}); !errors.Is(got, c.want) {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}
