package httptls_test

import (
	"testing"
	"time"

	"github.com/ossl-go/ossl"
)

// TestReloadStats counts the changes of both kinds of Reloader. A change that is refused counts once,
// however often it is looked at.
func TestReloadStats(t *testing.T) {
	first, second := leaf(ecKey()), leaf(ecKey())
	r, certFile, keyFile, _ := newReloader(t, first)
	ca, _ := newAuthority("A")
	clients, clientsFile, _ := newClientCAs(t, ca)
	expect := func(what string, got ossl.WatchStats, used, refused uint64) {
		t.Helper()
		if got.Used != used || got.Refused != refused || time.Since(got.Since) > time.Hour {
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
