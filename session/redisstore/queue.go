package redisstore

import (
	"errors"
	"sync"
	"time"
)

// ErrQueueFull is returned for a write that was dropped because too many are waiting.
var ErrQueueFull = errors.New("redisstore: the queue is full")

// A queue holds the pending writes in the order in which they came, at most one for each key: the
// last one. A batch that has been handed out stays known until it is done, so that get always sees
// the last write.
type queue struct {
	mu      sync.Mutex
	waiting map[string]*write
	order   []string // keys of waiting
	flying  map[string]*write
	bytes   int // of the waiting values
	max     int // puts that may wait; twice as many removals may
	closed  bool

	wake    chan struct{} // signals that writes wait
	closing chan struct{} // closed by method close
	idle    chan struct{} // closed after method close, when no write is left
}

// A write is a value with its expiry, or nil for a removal.
type write struct {
	value   []byte
	expires time.Time
}

// bytesAPlace is the number of bytes that the queue may hold for each of its places.
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
		if old != nil && old.value != nil { // it must not outlive the value that was to replace it
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

// forgetPut turns a waiting put into a removal.
func (q *queue) forgetPut(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if old := q.waiting[key]; old != nil {
		q.removeLocked(key)
	}
}

// add queues a write, in the place of the waiting one if there is one.
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

// get returns the future value under a key, if a pending write decides it. With take, a value that
// has not been handed out yet is removed instead of written.
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
			q.removeLocked(key) // can't fail: it has a place already
		}
		return value, true, nil
	}
	w := q.flying[key]
	switch {
	case w == nil:
		return nil, false, nil
	case w.value == nil:
		return nil, true, nil
	case take: // the store has it by now, or will soon: only the store can decide which caller is first
		return nil, false, nil
	}
	return append([]byte(nil), w.value...), true, nil
}

// A batch is a list of writes in order.
type batch []batchWrite

type batchWrite struct {
	key string
	write
}

// next hands out up to n writes. The caller must call done.
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

// done finishes a batch. The removals in again are queued again, behind the waiting writes, except
// if a newer write of the same key is waiting.
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

// drain drops the waiting writes, and counts them.
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

// close makes later writes fail.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.closed = true
		close(q.closing)
	}
}
