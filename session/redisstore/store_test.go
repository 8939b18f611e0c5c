package redisstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ossl-go/ossl/session"
	"github.com/ossl-go/ossl/session/redisstore"
)

func in(d time.Duration) time.Time { return time.Now().Add(d) }

func TestStore(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client, _ := server.client()
	ctx := t.Context()
	a, b := newStore(t, client, patient), newStore(t, client, patient)
	get := func(s *redisstore.Store, i int, take bool, want []byte) {
		t.Helper()
		if got, err := s.Get(ctx, id(i), take); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("Get %d: %q, %v; want %q", i, got, err, want)
		}
	}
	put := func(s *redisstore.Store, i int, value []byte, d time.Duration) {
		t.Helper()
		if err := s.Put(ctx, id(i), value, in(d)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 200 {
		put(a, i, value(i), time.Hour)
		get(a, i, false, value(i)) // at once, though it is being written
	}
	flushed(t, a)
	for i := range 200 {
		get(b, i, false, value(i))
	}
	get(b, 1, true, value(1))
	get(a, 1, true, nil)
	get(b, 1, false, nil)
	put(b, 2, value(1000), time.Hour)
	flushed(t, b)
	get(a, 2, false, value(1000))
	if err := a.Remove(ctx, id(3)); err != nil {
		t.Fatal(err)
	}
	get(a, 3, false, nil)
	flushed(t, a)
	get(b, 3, false, nil)
	put(a, 4, value(4), -time.Hour) // has expired: the existing session is removed
	flushed(t, a)
	get(b, 4, false, nil)
	put(a, 5, []byte{}, time.Hour)
	get(a, 5, false, []byte{})
	put(a, 6, value(6), 365*24*time.Hour)
	flushed(t, a)
	get(b, 6, true, value(6))

	if err := a.Put(ctx, id(7), make([]byte, 1<<16+1), in(time.Hour)); !errors.Is(err, redisstore.ErrTooLarge) {
		t.Error(err)
	}
	if err := a.Put(ctx, nil, value(7), in(time.Hour)); !errors.Is(err, session.ErrID) {
		t.Error(err)
	}
	put(a, 8, make([]byte, 1<<16), time.Hour)
	flushed(t, a)
	get(b, 8, false, make([]byte, 1<<16))

	// The contents of the store.
	keys, err := client.Keys(ctx, "*").Result()
	if err != nil || len(keys) < 190 {
		t.Fatal(len(keys), err)
	}
	for _, key := range keys {
		if !strings.HasPrefix(key, "ossl:session:") || strings.Contains(key, "number") {
			t.Fatalf("key %q", key)
		}
		if v := client.Get(ctx, key).Val(); strings.Contains(v, "session") {
			t.Fatalf("value %q", v)
		}
		if ttl := client.PTTL(ctx, key).Val(); ttl <= 0 || ttl > session.MaxTTL {
			t.Fatalf("%s stays for %v", key, ttl)
		}
	}
	if s := a.Stats(); s.PutsDropped != 0 || s.Errors != 0 || s.Puts < 200 || s.Hits < 200 || s.Breaker != "closed" {
		t.Errorf("%+v", s)
	}
}

// TestStoreTakenOnce: if many members take an ID at once, one gets the session.
func TestStoreTakenOnce(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client, _ := server.client()
	const members, sessions = 4, 200
	var stores []*redisstore.Store
	for range members {
		stores = append(stores, newStore(t, client, patient))
	}
	for i := range sessions {
		if err := stores[i%members].Put(t.Context(), id(i), value(i), in(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range stores {
		flushed(t, s)
	}
	var taken atomic.Int64
	all(members, func(m int) {
		for i := range sessions {
			switch got, err := stores[m].Get(t.Context(), id(i), true); {
			case err != nil:
				t.Error(err)
			case got != nil && !bytes.Equal(got, value(i)):
				t.Errorf("%q under %s", got, id(i))
			case got != nil:
				taken.Add(1)
			}
		}
	})
	if taken.Load() != sessions {
		t.Errorf("%d sessions were taken %d times", sessions, taken.Load())
	}
}

// TestStoreExpires: the store drops expired sessions, and those that it still returns are ignored.
func TestStoreExpires(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client, _ := server.client()
	s := newStore(t, client, patient)
	ctx := t.Context()
	expires := in(500 * time.Millisecond)
	for i := range 2 {
		if err := s.Put(ctx, id(i), value(i), expires); err != nil {
			t.Fatal(err)
		}
	}
	flushed(t, s)
	keys := client.Keys(ctx, "*").Val()
	for _, key := range keys {
		if ttl := client.PTTL(ctx, key).Val(); ttl > 500*time.Millisecond {
			t.Errorf("%s stays for %v", key, ttl)
		}
	}
	if len(keys) > 0 {
		client.Persist(ctx, keys[0])
	}
	eventually(t, "expiry", func() bool { return len(client.Keys(ctx, "*").Val()) <= 1 && time.Now().After(expires) })
	for i := range 2 {
		if got, err := s.Get(ctx, id(i), false); got != nil || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
}

// TestStoreClose: queued writes are done when Close returns; afterwards all calls fail, without a
// panic.
func TestStoreClose(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client, _ := server.client()
	s := newStore(t, client, patient)
	ctx := t.Context()
	for i := range 500 {
		if err := s.Put(ctx, id(i), value(i), in(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if n := client.DBSize(ctx).Val(); n != 500 {
		t.Errorf("%d sessions were written", n)
	}
	if got, err := s.Get(ctx, id(1), false); got != nil || !errors.Is(err, redisstore.ErrClosed) {
		t.Errorf("%q, %v", got, err)
	}
	if err := s.Put(ctx, id(1), nil, in(time.Hour)); !errors.Is(err, redisstore.ErrClosed) {
		t.Error(err)
	}
	if err := s.Remove(ctx, id(1)); !errors.Is(err, redisstore.ErrClosed) {
		t.Error(err)
	}
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
}

// TestStorePaused stops the server's process: calls end with their contexts, the breaker opens
// after five, and from then on no call is made at all.
func TestStorePaused(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client, hook := server.client()
	s := newStore(t, client, redisstore.Config{Failures: 5, Cooldown: time.Hour})
	ctx := t.Context()
	server.signal(syscall.SIGSTOP)
	before := hook.calls.Load()
	for i := range 5 {
		if got, err := s.Get(ctx, id(i), i%2 == 0); got != nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("call %d: %q, %v", i, got, err)
		}
	}
	for i := range 1000 {
		if got, err := s.Get(ctx, id(i), i%2 == 0); got != nil || !errors.Is(err, redisstore.ErrUnavailable) {
			t.Fatalf("with the breaker open: %q, %v", got, err)
		}
		if err := s.Put(ctx, id(i), value(i), in(time.Hour)); !errors.Is(err, redisstore.ErrUnavailable) {
			t.Fatal(err)
		}
	}
	if n := hook.calls.Load() - before; n != 5 {
		t.Errorf("%d calls were made to a store that hangs", n)
	}
	if st := s.Stats(); st.Timeouts != 5 || st.Unavailable != 1000 || st.Breaker != "open" || st.BreakerOpens != 1 ||
		st.PutsDropped != 1000 {
		t.Errorf("%+v", st)
	}
	server.signal(syscall.SIGCONT)
}

// TestStoreGone: if the store was never there, calls fail at once, or soon.
func TestStoreGone(t *testing.T) {
	t.Parallel()
	client := redisstore.NewClient(redis.UniversalOptions{Addrs: []string{"/nonexistent/socket"}})
	defer client.Close()
	s := newStore(t, client, redisstore.Config{Cooldown: time.Hour})
	for i := range 100 {
		got, err := s.Get(t.Context(), id(i), false)
		if got != nil || err == nil || i >= 5 && !errors.Is(err, redisstore.ErrUnavailable) {
			t.Fatalf("call %d: %q, %v", i, got, err)
		}
	}
}

// TestStoreUnderLoad kills, pauses and restarts the server while servers use it. Sessions that are
// found are the right ones, taken sessions never come back, the breaker keeps calls from a store
// that doesn't answer, and when the store is back everything works again.
func TestStoreUnderLoad(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client, hook := server.client()
	const members = 3
	var stores []*redisstore.Store
	for range members {
		c := redisstore.Config{Timeout: 100 * time.Millisecond, Cooldown: 100 * time.Millisecond, Queue: 64}
		stores = append(stores, newStore(t, client, c))
	}
	stop := make(chan struct{})
	var handshakes, resumed, failed atomic.Int64
	work := make(chan struct{})
	go func() {
		defer close(work)
		all(8, func(g int) {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				i := g*1_000_000 + n
				handshakes.Add(1)
				stores[n%members].Put(t.Context(), id(i), value(i), in(time.Minute)) // an error is a session less
				got, err := stores[(n+1)%members].Get(t.Context(), id(i), true)
				switch {
				case err != nil:
					failed.Add(1)
				case got != nil && !bytes.Equal(got, value(i)):
					t.Errorf("%q under %s", got, id(i))
				case got != nil:
					resumed.Add(1)
					for _, s := range stores {
						if again, _ := s.Get(t.Context(), id(i), true); again != nil {
							t.Errorf("session %d was taken twice", i)
						}
					}
				}
			}
		})
	}()
	progress := func(what string, counter *atomic.Int64) {
		t.Helper()
		from := counter.Load()
		eventually(t, what, func() bool { return counter.Load() >= from+50 })
	}
	opens := func() (sum uint64) {
		for _, s := range stores {
			sum += s.Stats().BreakerOpens
		}
		return sum
	}
	for range 2 {
		progress("resumption", &resumed)

		from := opens()
		server.signal(syscall.SIGSTOP)
		eventually(t, "a breaker to open for a paused store", func() bool { return opens() > from })
		calls, done := hook.calls.Load(), handshakes.Load()
		progress("handshakes without the store", &handshakes)
		progress("failures that cost nothing else", &failed)
		if calls, done := hook.calls.Load()-calls, handshakes.Load()-done; calls > done {
			t.Errorf("%d calls for %d handshakes while the store was paused", calls, done)
		}
		server.signal(syscall.SIGCONT)
		progress("resumption after a pause", &resumed)

		from = opens()
		server.kill()
		eventually(t, "a breaker to open for a store that is gone", func() bool { return opens() > from })
		progress("handshakes without the store", &handshakes)
		server.start()
		progress("resumption after a restart", &resumed)
	}
	close(stop)
	<-work
	t.Logf("%d handshakes, %d resumed, %d failed lookups, %d calls",
		handshakes.Load(), resumed.Load(), failed.Load(), hook.calls.Load())
	for _, s := range stores {
		t.Logf("%+v", s.Stats())
	}
}

// flipped changes a byte of a sealed session. It is never the same byte, as a constant would be
// once in 256 times.
func flipped(b byte) string { return string([]byte{b ^ 1}) }

// TestStoreForged: a value that was sealed under another secret, changed, moved or made up is an
// error, not a session.
func TestStoreForged(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client, _ := server.client()
	ctx := t.Context()
	s := newStore(t, client, patient)
	for i := range 2 {
		if err := s.Put(ctx, id(i), value(i), in(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	flushed(t, s)
	keys := client.Keys(ctx, "*").Val()
	if len(keys) != 2 {
		t.Fatal(keys)
	}
	a, b := client.Get(ctx, keys[0]).Val(), client.Get(ctx, keys[1]).Val()
	for name, values := range map[string][2]any{
		"swapped":   {b, a},
		"cut":       {a[:len(a)-1], b[:10]},
		"changed":   {a[:len(a)-1] + flipped(a[len(a)-1]), flipped(b[0]) + b[1:]},
		"empty":     {"", ""},
		"a number":  {12345, -1},
		"very long": {strings.Repeat("x", 1<<18), strings.Repeat("x", 1<<18)},
	} {
		for i, v := range values {
			if err := client.Set(ctx, keys[i], v, time.Hour).Err(); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 2 {
			if got, err := s.Get(ctx, id(i), false); got != nil || !errors.Is(err, session.ErrSealed) {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
	}
	// A value of another type is an error reply of the store; calls continue.
	client.Del(ctx, keys...)
	client.LPush(ctx, keys[0], a)
	client.LPush(ctx, keys[1], b)
	for i := range 20 {
		if got, err := s.Get(ctx, id(i%2), i%4 == 0); got != nil || err == nil || errors.Is(err, redisstore.ErrUnavailable) {
			t.Errorf("a list: %q, %v", got, err)
		}
	}
	if st := s.Stats(); st.Forged != 12 || st.Breaker != "closed" {
		t.Errorf("%+v", st)
	}
	other := newStore(t, client, redisstore.Config{Timeout: patient.Timeout, Secrets: []session.Secret{{9}}})
	if got, err := other.Get(ctx, id(0), true); got != nil || err != nil {
		t.Errorf("with another secret: %q, %v", got, err) // the names differ: nothing is found
	}
}

// TestStoreFull: a store without memory refuses sessions; lookups and removals continue.
func TestStoreFull(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client, _ := server.client()
	ctx := t.Context()
	s := newStore(t, client, patient)
	if err := s.Put(ctx, id(0), value(0), in(time.Hour)); err != nil {
		t.Fatal(err)
	}
	flushed(t, s)
	if err := client.ConfigSet(ctx, "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	for i := 1; i < 100; i++ {
		if err := s.Put(ctx, id(i), value(i), in(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	flushed(t, s)
	if got, err := s.Get(ctx, id(0), false); err != nil || !bytes.Equal(got, value(0)) {
		t.Errorf("%q, %v", got, err)
	}
	if err := s.Remove(ctx, id(0)); err != nil {
		t.Fatal(err)
	}
	flushed(t, s)
	if st := s.Stats(); st.PutsDropped != 99 || st.Puts != 1 || st.Removes != 1 || st.Breaker != "closed" {
		t.Errorf("%+v", st)
	}
	if n := client.DBSize(ctx).Val(); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
}

// TestStoreRemovesWhenBack: a removal that didn't reach the store is done when it is back, and
// visible here at once.
func TestStoreRemovesWhenBack(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client, _ := server.client()
	ctx := t.Context()
	s := newStore(t, client, redisstore.Config{Timeout: 250 * time.Millisecond, Failures: 1, Cooldown: 50 * time.Millisecond})
	for i := range 10 {
		if err := s.Put(ctx, id(i), value(i), in(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	flushed(t, s)
	server.signal(syscall.SIGSTOP)
	for i := range 10 {
		if err := s.Remove(ctx, id(i)); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Get(ctx, id(i), false); got != nil || err != nil {
			t.Fatalf("%q, %v", got, err)
		}
	}
	eventually(t, "the breaker to open", func() bool { return s.Stats().BreakerOpens > 0 })
	server.signal(syscall.SIGCONT)
	flushed(t, s)
	if n := client.DBSize(ctx).Val(); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
	if st := s.Stats(); st.Removes < 10 || st.RemovesLost != 0 {
		t.Errorf("%+v", st)
	}
}

// TestStoreSecretChanged changes the secret as the documentation describes, one store after the
// other.
func TestStoreSecretChanged(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client, _ := server.client()
	ctx := t.Context()
	old := newStore(t, client, redisstore.Config{Timeout: patient.Timeout, Secrets: []session.Secret{{1}, {2}}})
	new := newStore(t, client, redisstore.Config{Timeout: patient.Timeout, Secrets: []session.Secret{{2}, {1}}})
	for i := range 20 {
		from, to := old, new
		if i%2 == 1 {
			from, to = new, old
		}
		if err := from.Put(ctx, id(i), value(i), in(time.Hour)); err != nil {
			t.Fatal(err)
		}
		flushed(t, from)
		if got, err := to.Get(ctx, id(i), true); err != nil || !bytes.Equal(got, value(i)) {
			t.Errorf("%q, %v", got, err)
		}
	}
	s := fmt.Sprintf("%v %+v %#v", old, old, redisstore.Config{Secrets: []session.Secret{{0xab, 0xcd}}})
	if strings.Contains(s, "171") || strings.Contains(s, "0xab") {
		t.Error(s)
	}
}

// TestStoreRemovesLater: a removal that a store can't do now is tried again; one that it refuses is
// not.
func TestStoreRemovesLater(t *testing.T) {
	t.Parallel()
	for answer, later := range map[string]bool{
		"-LOADING Redis is loading the dataset in memory": true,
		"-CLUSTERDOWN The cluster is down":                true,
		"-READONLY You can't write against a replica":     true,
		"-ERR max number of clients reached":              true,
		"-NOPERM this user has no permissions":            false,
		"-ERR unknown command 'DEL'":                      false,
		"-CLUSTERDOWNED no such error":                    false,
	} {
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			dial := lie(answer+"\r\n", false)
			client := redisstore.NewClient(redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"}, Dialer: dial})
			defer client.Close()
			hook := new(countingHook)
			client.AddHook(hook)
			c := patient
			c.Cooldown = time.Millisecond
			s := newStore(t, client, c)
			if err := s.Remove(t.Context(), id(1)); err != nil {
				t.Fatal(err)
			}
			if later {
				eventually(t, "more than one try", func() bool { return hook.calls.Load() > 1 })
			} else {
				flushed(t, s)
			}
			if st := s.Stats(); st.RemovesLost == 0 != later || st.Removes != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}
