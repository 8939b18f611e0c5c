package httptls_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/httptls"
)

// TestReloadStats counts the changes of both kinds of Reloader. A change that is refused counts once,
// however often it is looked at.
func TestReloadStats(t *testing.T) {
	first, second := leaf(ecKey()), leaf(ecKey())
	r, certFile, keyFile, _ := newReloader(t, first)
	ca, _ := newAuthority("A")
	clients, clientsFile, _ := newClientCAs(t, ca)
	expect := func(what string, got httptls.ReloadStats, used, refused uint64) {
		t.Helper()
		if got.Used != used || got.Refused != refused || time.Since(got.Last) > time.Hour {
			t.Errorf("%s: %+v, want %d used and %d refused", what, got, used, refused)
		}
	}
	expect("at first", r.Stats(), 1, 0)
	expect("authorities at first", clients.Stats(), 1, 0)

	writeFile(t, certFile, []byte("garbage"))
	for range 3 {
		if r.Reload() == nil {
			t.Fatal("garbage is used")
		}
	}
	expect("garbage", r.Stats(), 1, 1)
	writePairTo(t, second, certFile, keyFile)
	for range 2 {
		if err := r.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	expect("another pair", r.Stats(), 2, 1)

	writeFile(t, clientsFile, nil)
	if clients.Reload() == nil {
		t.Fatal("an empty file is used")
	}
	other, _ := newAuthority("B")
	writeFile(t, clientsFile, pemOf(ca, other))
	if err := clients.Reload(); err != nil {
		t.Fatal(err)
	}
	expect("authorities", clients.Stats(), 2, 1)
}

// TestReloadUnreadable: a file that was written just before, and is read again since a change in that
// time would not be seen, isn't reported if it can't be read then, but only when it has changed.
func TestReloadUnreadable(t *testing.T) {
	name := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(name, []byte("key"), 0o600); err != nil {
		t.Fatal(err)
	}
	reads := 0
	var failure error
	look := httptls.WatchFile(name, func() error { reads++; return failure })
	if _, err := look(); err != nil {
		t.Fatal(err)
	}
	failure = fmt.Errorf("pair: %w", &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission})
	if stats, err := look(); err != nil || stats.Refused != 0 {
		t.Errorf("unchanged: %v, %+v", err, stats)
	}
	if reads != 2 {
		t.Errorf("the file was read %d times", reads)
	}
	if err := os.WriteFile(name, []byte("other key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if stats, err := look(); !errors.Is(err, fs.ErrPermission) || stats.Refused != 1 {
		t.Errorf("changed: %v, %+v", err, stats)
	}
	if stats, err := look(); err != nil || stats.Refused != 1 {
		t.Errorf("once more: %v, %+v", err, stats)
	}
}

// TestReloadAgain: files that have changed, and can't be read for a while, are tried again until they can,
// without a further report. A mistake in them isn't tried again before they change.
func TestReloadAgain(t *testing.T) {
	name := filepath.Join(t.TempDir(), "key")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(-time.Hour) // a copy may keep its date
		if err := os.Chtimes(name, old, old); err != nil {
			t.Fatal(err)
		}
	}
	write("key")
	reads := 0
	var failure error
	look := httptls.WatchFile(name, func() error { reads++; return failure })
	expect := func(what string, wantReads int, wantErr error) {
		t.Helper()
		if _, err := look(); !errors.Is(err, wantErr) || reads != wantReads {
			t.Errorf("%s: %v after %d reads, want %v after %d", what, err, reads, wantErr, wantReads)
		}
	}
	expect("first", 1, nil)
	expect("unchanged", 1, nil)
	write("the next key")
	failure = &fs.PathError{Op: "open", Path: name, Err: syscall.EMFILE}
	expect("no descriptor", 2, syscall.EMFILE)
	expect("still none", 3, nil)
	failure = nil
	expect("read", 4, nil)
	expect("unchanged again", 4, nil)
	write("a key that OpenSSL has no memory for")
	failure = &ossl.ConfigError{Field: "Certificates", Err: noMemory()}
	expect("no memory", 5, syscall.ENOMEM)
	expect("still none", 6, nil)
	failure = nil
	expect("used", 7, nil)
	write("a damaged key")
	failure = errors.New("damaged")
	expect("damaged", 8, failure)
	expect("not tried again", 8, nil)
}

// noMemory returns OpenSSL's error if it can't allocate memory, libssl's ERR_R_MALLOC_FAILURE.
func noMemory() error {
	code := uint64(20<<23 | 0xc0100)
	if lib, err := ossl.Library(); err != nil || strings.HasPrefix(lib.Version, "1.") {
		code = 20<<24 | 65
	}
	return &ossl.LibraryError{Op: "use certificate and key", Codes: []uint64{code}}
}
