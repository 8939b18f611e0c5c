package redisstore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

var later = time.Now().Add(time.Hour)

func TestQueue(t *testing.T) {
	q := newQueue(4)
	put := func(key, value string) {
		t.Helper()
		if err := q.put(key, []byte(value), later); err != nil {
			t.Fatal(err)
		}
	}
	want := func(key string, take bool, value string, found bool) {
		t.Helper()
		got, f, err := q.get(key, take)
		if err != nil || string(got) != value || f != found || (got == nil) != (value == "") {
			t.Fatalf("%s: %q, %v, %v; want %q, %v", key, got, f, err, value, found)
		}
	}
	put("a", "1")
	put("b", "2")
	put("a", "3") // in the place of the first
	want("a", false, "3", true)
	want("c", false, "", false)
	want("b", true, "2", true)
	want("b", true, "", true) // taken once
	b := q.next(64)
	if len(b) != 2 || b[0].key != "a" || string(b[0].value) != "3" || b[1].key != "b" || b[1].value != nil {
		t.Fatalf("%v", b)
	}
	want("a", false, "3", true)
	want("a", true, "", false) // only the store can decide which caller is first
	want("b", false, "", true)
	put("b", "4")
	want("b", false, "4", true)
	q.done([]string{"b", "c"}) // a removal is not tried again if there is a newer write
	want("b", false, "4", true)
	want("c", false, "", true)
	want("a", false, "", false)
	if b := q.next(64); len(b) != 2 || b[0].key != "b" || b[1].key != "c" || b[1].value != nil {
		t.Fatalf("%v", b)
	}
	q.done(nil)
	if err := q.put("d", []byte("old"), time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	want("d", false, "", true)
	q.next(64)
	q.done(nil)

	for i := range 4 {
		put(fmt.Sprint(i), "x")
	}
	if err := q.put("more", nil, later); !errors.Is(err, ErrQueueFull) {
		t.Fatal(err)
	}
	put("2", "y")
	if err := q.put("2", make([]byte, 4*bytesAPlace), later); !errors.Is(err, ErrQueueFull) {
		t.Fatal(err)
	}
	want("2", false, "", true) // the value that was to be replaced is not returned
	for i := range 4 {
		if err := q.remove(fmt.Sprint("r", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.remove("more"); !errors.Is(err, ErrQueueFull) {
		t.Fatal(err)
	}
	if err := q.remove("3"); err != nil {
		t.Fatal(err)
	}
	if puts, removes := q.drain(); puts != 2 || removes != 6 {
		t.Fatal(puts, removes)
	}
	q.close()
	q.close()
	if err := q.put("a", nil, later); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	if err := q.remove("a"); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	if _, _, err := q.get("a", false); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
}

// TestQueueIsInOrder applies random writes through a queue to a map, in batches that end late, some
// of them failing, and in the end compares the map with the expected contents; at every moment the
// queue and the map together show the last write.
func TestQueueIsInOrder(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 2))
		q := newQueue(20)
		want, store := map[string]string{}, map[string]string{}
		var flying batch
		land := func(fail bool) {
			var again []string
			for _, w := range flying {
				switch {
				case fail && w.value == nil:
					again = append(again, w.key)
				case fail:
					if want[w.key] == string(w.value) {
						delete(want, w.key) // dropped, and counted
					}
				case w.value != nil:
					store[w.key] = string(w.value)
				default:
					delete(store, w.key)
				}
			}
			q.done(again)
			flying = nil
		}
		for i := range 2000 {
			key := fmt.Sprint(random.IntN(30))
			switch random.IntN(8) {
			case 0, 1, 2:
				value := fmt.Sprint(i)
				if err := q.put(key, []byte(value), later); err == nil {
					want[key] = value
				} else if _, decided, _ := q.get(key, false); decided {
					if v, _, _ := q.get(key, false); v == nil {
						delete(want, key)
					}
				}
			case 3:
				if err := q.remove(key); err == nil {
					delete(want, key)
				}
			case 4:
				if v, decided, _ := q.get(key, true); decided && v != nil {
					if string(v) != want[key] {
						t.Fatalf("took %q, want %q", v, want[key])
					}
					delete(want, key)
				}
			case 5:
				if flying == nil {
					flying = q.next(1 + random.IntN(10))
				}
			case 6:
				land(false)
			case 7:
				land(random.IntN(2) == 0)
			}
			v, decided, _ := q.get(key, false)
			got := string(v)
			if !decided {
				got = store[key]
			}
			if got != want[key] && want[key] != "" {
				t.Fatalf("seed %d, step %d: %q under %s, want %q", seed, i, got, key, want[key])
			}
			if got != "" && want[key] == "" && decided {
				t.Fatalf("seed %d, step %d: %q under %s, which is gone", seed, i, got, key)
			}
		}
		for {
			land(false)
			if flying = q.next(7); len(flying) == 0 {
				break
			}
		}
		for key, v := range want {
			if store[key] != v {
				t.Errorf("seed %d: %q under %s, want %q", seed, store[key], key, v)
			}
		}
	}
}
