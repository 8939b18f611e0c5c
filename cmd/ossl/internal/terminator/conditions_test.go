package terminator_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// both checks an answer of both handlers of a site.
func (s *site) both(t *testing.T, r func() *http.Request, check func(resp *http.Response, body string)) {
	t.Helper()
	for _, h := range []http.Handler{s.cached, s.direct} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r())
		resp := w.Result()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		check(resp, string(body))
	}
}

func requestOf(path string, fields ...string) func() *http.Request {
	return func() *http.Request {
		r := httptest.NewRequest("GET", path, nil)
		for i := 0; i < len(fields); i += 2 {
			r.Header.Set(fields[i], fields[i+1])
		}
		return r
	}
}

// TestTypes: only a file's name decides its type. Contents aren't looked at.
func TestTypes(t *testing.T) {
	t.Parallel()
	kinds := map[string]string{
		"a.html": "text/html; charset=utf-8", "A.HTML": "text/html; charset=utf-8", "a.js": "text/javascript; charset=utf-8",
		"a.mjs": "text/javascript; charset=utf-8", "a.ts": "video/mp2t", "a.webmanifest": "application/manifest+json",
		"a.svg": "image/svg+xml", "a.wasm": "application/wasm", "a.woff2": "font/woff2", "a.tar.gz": "application/gzip",
		"noext": "application/octet-stream", "a.unknown": "application/octet-stream", "a.html.": "application/octet-stream",
		"html": "application/octet-stream", "a.": "application/octet-stream",
	}
	files := map[string]string{}
	for name := range kinds {
		files[name] = "<html><script>alert(1)</script>"
	}
	s := newSite(t, 1<<20, files)
	s.settle("/noext")
	for name, kind := range kinds {
		for _, path := range []string{"/" + name, "//" + name, "/x/../" + name} {
			request := func() *http.Request {
				r := httptest.NewRequest("GET", "/", nil)
				r.URL.Path = path
				return r
			}
			s.both(t, request, func(resp *http.Response, _ string) {
				if got := resp.Header.Get("Content-Type"); got != kind || resp.Header.Get("X-Content-Type-Options") != "nosniff" {
					t.Errorf("%s: %v, want %s", path, resp.Header, kind)
				}
			})
		}
	}
}

// TestRollBack: a client that has a file gets another one in its place: an older one, and one with the same
// date and size.
func TestRollBack(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1<<20, map[string]string{"a.txt": "new", "old": "old", "twin": "nEw"})
	file := filepath.Join(s.name, "a.txt")
	date := time.Now().Add(-time.Hour).Truncate(time.Second)
	for name, age := range map[string]time.Duration{"a.txt": 0, "old": 24 * time.Hour, "twin": 0} {
		if err := os.Chtimes(filepath.Join(s.name, name), date, date.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	s.settle("/a.txt")
	var tag, since string
	s.both(t, requestOf("/a.txt"), func(resp *http.Response, body string) {
		if tag, since = resp.Header.Get("Etag"), resp.Header.Get("Last-Modified"); tag == "" || since == "" || body != "new" {
			t.Fatalf("%v %q", resp.Header, body)
		}
	})
	conditions := []struct {
		name   string
		fields []string
	}{{"tag", []string{"If-None-Match", tag}}, {"date", []string{"If-Modified-Since", since}},
		{"both", []string{"If-None-Match", tag, "If-Modified-Since", since}}}
	for _, c := range conditions {
		s.both(t, requestOf("/a.txt", c.fields...), func(resp *http.Response, _ string) {
			if resp.StatusCode != http.StatusNotModified || resp.Header.Get("Etag") != tag {
				t.Errorf("%s, unchanged: %d %v", c.name, resp.StatusCode, resp.Header)
			}
		})
	}
	s.both(t, requestOf("/a.txt", "If-Modified-Since", date.Add(time.Hour).UTC().Format(http.TimeFormat)),
		func(resp *http.Response, _ string) {
			if resp.StatusCode != http.StatusOK {
				t.Errorf("a later date: %d", resp.StatusCode)
			}
		})
	for _, next := range []string{"old", "twin"} {
		if err := os.Rename(filepath.Join(s.name, next), file); err != nil {
			t.Fatal(err)
		}
		for _, c := range conditions {
			if next == "twin" && c.name == "date" {
				continue // dates can't tell
			}
			s.both(t, requestOf("/a.txt", c.fields...), func(resp *http.Response, body string) {
				if resp.StatusCode != http.StatusOK || !strings.EqualFold(body, map[string]string{"old": "old", "twin": "new"}[next]) ||
					body == "new" {
					t.Errorf("%s, %s: %d %q", next, c.name, resp.StatusCode, body)
				}
			})
		}
		s.both(t, requestOf("/a.txt", "Range", "bytes=1-", "If-Range", tag), func(resp *http.Response, _ string) {
			if resp.StatusCode != http.StatusOK {
				t.Errorf("%s: a part of another file, %d", next, resp.StatusCode)
			}
		})
	}
}

// TestRangeForms: RFC 9110, sections 14.1 and 14.2.
func TestRangeForms(t *testing.T) {
	t.Parallel()
	const text = "0123456789"
	s := newSite(t, 1<<20, map[string]string{"a.txt": text, "empty.txt": ""})
	s.settle("/a.txt")
	for _, c := range []struct {
		ranges string
		status int
		body   string // "" for the body of an error, or for several parts
	}{
		{"bytes=0-3", 206, "0123"}, {"bytes=5-", 206, "56789"}, {"bytes=-2", 206, "89"}, {"bytes=0-", 206, text},
		{"BYTES=1-1", 206, "1"}, {"bytes= 1-1 ,", 206, "1"}, {"bytes=001-0001", 206, "1"}, {"bytes=-99", 206, text},
		{"bytes=8-99999999999999999999", 206, "89"}, {"bytes=-99999999999999999999", 206, text},
		{"bytes=0-0,-0", 206, "0"}, {"bytes=99-,9-", 206, "9"}, {"bytes=0-1,3-4", 206, ""},
		{"items=0-3", 200, text}, {"chars=0-1", 200, text}, {"bytes", 200, text}, {"bytes 0-1", 200, text},
		{"bytes=-0", 416, ""}, {"bytes=10-", 416, ""}, {"bytes=99999999999999999999-", 416, ""}, {"bytes=3-1", 416, ""},
		{"bytes=", 416, ""}, {"bytes=-", 416, ""}, {"bytes=a-b", 416, ""}, {"bytes=1", 416, ""}, {"bytes=+1-2", 416, ""},
		{"bytes=0-1,x", 416, ""}, {"bytes=1-2-3", 416, ""}, {"bytes=0x1-2", 416, ""},
		{"bytes=" + strings.Repeat("1-1,", 100) + "1-1", 200, text},
	} {
		s.both(t, requestOf("/a.txt", "Range", c.ranges), func(resp *http.Response, body string) {
			content := resp.Header.Get("Content-Range")
			if resp.StatusCode != c.status || c.body != "" && body != c.body ||
				c.status == 416 && content != fmt.Sprintf("bytes */%d", len(text)) {
				t.Errorf("%s: %d %q, range %q", c.ranges, resp.StatusCode, body, content)
			}
		})
	}
	s.both(t, requestOf("/empty.txt", "Range", "bytes=0-"), func(resp *http.Response, body string) {
		if resp.StatusCode != http.StatusOK || body != "" {
			t.Errorf("an empty file: %d %q", resp.StatusCode, body)
		}
	})
}

// TestRootSwitched: a root that is a link may be switched to another folder.
func TestRootSwitched(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.folder(map[string]string{"a.txt": "one"}), w.folder(map[string]string{"a.txt": "two"})
	link := filepath.Join(w.dir, "current")
	if err := os.Symlink(one, link); err != nil {
		t.Skip(err)
	}
	s := handlersOf(t, link, 1<<20)
	s.settle("/a.txt")
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	s.both(t, requestOf("/a.txt"), func(_ *http.Response, body string) { // while there is none
		if body != "one" {
			t.Errorf("%q", body)
		}
	})
	if err := os.Symlink(two, link); err != nil {
		t.Fatal(err)
	}
	for late := time.Now().Add(patience); ; <-time.After(50 * time.Millisecond) {
		switched := true
		s.both(t, requestOf("/a.txt"), func(_ *http.Response, body string) { switched = switched && body == "two" })
		if switched {
			break
		}
		if time.Now().After(late) {
			t.Fatal("still the former folder")
		}
	}
	if files, _ := s.kept(); files > 1 {
		t.Errorf("%d files are kept, also those of the former folder", files)
	}
}
