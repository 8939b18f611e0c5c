package ossl

import (
	"container/list"
	"time"
)

// The bounds of the caches of Contexts for configurations, and of credentials for certificates. A
// credential takes about 9 KB, and ten thousand sites need one each. A Context takes 48 KB, and many
// programs make a configuration for each connection, which is never used again.
const (
	maxContexts    = 256
	maxCredentials = 16384

	// contextIdle is the time for which either is kept that nothing uses.
	contextIdle = time.Hour
)

// A recentMap keeps recently used values: at most max of them. Each use of the map drops the values
// that were not used for longer than idle. The caller must hold a lock.
type recentMap[K comparable, V any] struct {
	max  int
	idle time.Duration
	drop func(V) // called with each value that leaves, if not nil

	entries map[K]*list.Element
	order   list.List // of *recentEntry[K, V], most recently used first
}

type recentEntry[K comparable, V any] struct {
	key   K
	value V
	used  time.Time
}

// get returns the value for key, and counts as a use of it.
func (m *recentMap[K, V]) get(key K, now time.Time) (value V, ok bool) {
	if e := m.entries[key]; e != nil {
		entry := e.Value.(*recentEntry[K, V])
		entry.used = now
		m.order.MoveToFront(e)
		value, ok = entry.value, true
	}
	m.forgetIdle(now)
	return value, ok
}

// forget removes the value for key.
func (m *recentMap[K, V]) forget(key K) {
	if e := m.entries[key]; e != nil {
		m.remove(e)
	}
}

// put sets the value for key.
func (m *recentMap[K, V]) put(key K, value V, now time.Time) {
	m.forget(key)
	m.forgetIdle(now)
	for len(m.entries) >= m.max {
		m.remove(m.order.Back())
	}
	if m.entries == nil {
		m.entries = make(map[K]*list.Element)
	}
	m.entries[key] = m.order.PushFront(&recentEntry[K, V]{key, value, now})
}

func (m *recentMap[K, V]) forgetIdle(now time.Time) {
	for e := m.order.Back(); e != nil && age(now, e.Value.(*recentEntry[K, V]).used) > m.idle; e = m.order.Back() {
		m.remove(e)
	}
}

func (m *recentMap[K, V]) remove(e *list.Element) {
	entry := m.order.Remove(e).(*recentEntry[K, V])
	delete(m.entries, entry.key)
	if m.drop != nil {
		m.drop(entry.value)
	}
}

// age returns the time since made by the wall clock or by the monotonic clock, whichever gives
// more. The monotonic clock stops while the machine sleeps, and the wall clock may be set back.
func age(now, made time.Time) time.Duration {
	return max(now.Sub(made), now.Round(0).Sub(made.Round(0)))
}
