package redisstore

import (
	"errors"
	"sync"
	"time"
)

// ErrQueueFull is returned for what was dropped because more is waiting to be written than may.
var ErrQueueFull = errors.New("redisstore: the queue is full")

// A queue holds what is to be written, in the order in which it came, one write for each key: the last one asked for. A batch
// that has been handed out stays known until it is done, so that what was asked for can be seen all the time.
type queue struct {
	mu      sync.Mutex
	waiting map[string]*write
	order   []string // keys of waiting
	flying  map[string]*write
	bytes   int // of the values that wait
	max     int // puts that may wait; of removals twice as many
	closed  bool

	wake    chan struct{} // something waits
	closing chan struct{} // closed by close
	idle    chan struct{} // closed when nothing is left after close
}

// A write is a value with its time, or nil to remove it.
type write struct {
	value   []byte
	expires time.Time
}

// bytesAPlace is how many bytes the queue may hold for each of its places.
const bytesAPlace = 4096

func newQueue(max int) *queue {
	return &queue{
		waiting: map[string]*write{},
		flying:  map[string]*write{},
		max:     max,
		wake:    make(chan struct{}, 1),
		closing: make(chan struct{}),
		idle:    make(chan struct{}),
	}
}

func (q *queue) put(key string, value []byte, expires time.Time) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return ErrClosed
	}
	old := q.waiting[key]
	grown := q.bytes + len(value)
	if old != nil {
		grown -= len(old.value)
	}
	if grown > q.max*bytesAPlace || old == nil && len(q.order) >= q.max {
		if old != nil && old.value != nil { // it must not outlive what was to replace it
			q.bytes -= len(old.value)
			*old = write{}
		}
		return ErrQueueFull
	}
	q.bytes = grown
	q.add(key, old, write{value, expires})
	return nil
}

func (q *queue) remove(key string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return ErrClosed
	}
	return q.removeLocked(key)
}

func (q *queue) removeLocked(key string) error {
	old := q.waiting[key]
	if old == nil && len(q.order) >= 2*q.max {
		return ErrQueueFull
	}
	if old != nil {
		q.bytes -= len(old.value)
	}
	q.add(key, old, write{})
	return nil
}

// forgetPut turns a put that waits into a removal.
func (q *queue) forgetPut(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if old := q.waiting[key]; old != nil {
		q.removeLocked(key)
	}
}

// add notes a write, in the place of the one that waits.
func (q *queue) add(key string, old *write, w write) {
	if old != nil {
		*old = w
	} else {
		q.waiting[key] = &w
		q.order = append(q.order, key)
	}
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// get returns what will be under a key, if that is decided. What is taken, and has not been handed out yet, is removed instead of
// written.
func (q *queue) get(key string, take bool) (value []byte, found bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, false, ErrClosed
	}
	if w := q.waiting[key]; w != nil {
		if w.value == nil || !w.expires.After(time.Now()) {
			return nil, true, nil
		}
		value = append([]byte(nil), w.value...)
		if take {
			q.removeLocked(key) // can't fail: its place is taken already
		}
		return value, true, nil
	}
	w := q.flying[key]
	switch {
	case w == nil:
		return nil, false, nil
	case w.value == nil:
		return nil, true, nil
	case take: // the store has it by now, or will in a moment: only it can tell who is first
		return nil, false, nil
	}
	return append([]byte(nil), w.value...), true, nil
}

// A batch is a number of writes in their order.
type batch []batchWrite

type batchWrite struct {
	key string
	write
}

// next hands out up to n writes; done must follow.
func (q *queue) next(n int) batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	n = min(n, len(q.order))
	b := make(batch, 0, n)
	for _, key := range q.order[:n] {
		w := q.waiting[key]
		delete(q.waiting, key)
		q.bytes -= len(w.value)
		q.flying[key] = w
		b = append(b, batchWrite{key, *w})
	}
	q.order = q.order[:copy(q.order, q.order[n:])]
	return b
}

// done ends a batch. again lists the removals that are to be tried once more, after what waits; those for whose key there is a
// newer write are not.
func (q *queue) done(again []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	clear(q.flying)
	for _, key := range again {
		if q.waiting[key] == nil {
			q.waiting[key] = new(write)
			q.order = append(q.order, key)
		}
	}
}

// drain gives up what waits, and counts it.
func (q *queue) drain() (puts, removes uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range q.waiting {
		if w.value != nil {
			puts++
		} else {
			removes++
		}
	}
	clear(q.waiting)
	q.order, q.bytes = nil, 0
	return puts, removes
}

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.order) + len(q.flying)
}

// close lets nothing more in.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.closed = true
		close(q.closing)
	}
}
