package ossl

import (
	"container/list"
	"crypto/tls"
	"sync"
	"time"

	"github.com/ossl-go/ossl/internal/stdtls"
)

const (
	// defaultCache is the bound of each cache in bytes: the certificates of 10,000 sites, with an
	// intermediate each, or 5,000 configurations.
	defaultCache = 256 << 20

	// contextIdle is the time for which a Context or a credential is kept that nothing uses. Both
	// contain private keys, which may have been replaced.
	contextIdle = 10 * time.Minute
)

// certificateSize returns about the memory of a credential, almost all of it in C: the key, and each
// certificate in OpenSSL's form.
func certificateSize(cert *tls.Certificate) int64 {
	size := 4<<10 + len(cert.OCSPStaple)
	for _, der := range cert.Certificate {
		size += 4<<10 + 4*len(der)
	}
	return int64(size)
}

// configSize returns about the memory of a Context, most of it in C. Names of authorities take 1 to 2 KB.
func configSize(config *tls.Config) int64 {
	size := int64(32 << 10)
	for i := range config.Certificates {
		size += certificateSize(&config.Certificates[i])
	}
	if config.ClientCAs != nil {
		roots, _ := stdtls.PoolRoots(config.ClientCAs)
		size += int64(len(roots)) * 2 << 10
	}
	return size
}

// A recentMap keeps recently used values, up to a bound of their sizes. If there is no room, the value
// that was used longest ago leaves. Values that were used once may be bounded more narrowly, so that
// values which are never used again don't take all of the room. Each use of the map drops the values
// that were not used for longer than idle, and so does expire. The caller must hold a lock.
type recentMap[K comparable, V any] struct {
	max, newcomers int64 // the bounds of all sizes, and of the sizes of the values that were used once
	idle           time.Duration
	drop           func(V) // called by unlock with each value that has left, if not nil
	evicted        func()  // called for each that leaves because there is no room, if not nil
	expired        func()  // if not nil, called about when values are idle; it must call expire

	entries map[K]*list.Element // of *recentEntry[K, V]
	once    recentList          // those that were used once
	again   recentList
	timer   *time.Timer // of expired, or nil
	left    []V         // the values for drop
}

// unlock unlocks the caller's lock, and then drops the values that have left: libssl may have to free much.
func (m *recentMap[K, V]) unlock(mu *sync.Mutex) {
	left := m.left
	m.left = nil
	mu.Unlock()
	for _, v := range left {
		m.drop(v)
	}
}

// A recentList is in the order of use, most recently used first.
type recentList struct {
	order list.List // of *recentEntry[K, V]
	size  int64
}

type recentEntry[K comparable, V any] struct {
	key   K
	value V
	size  int64
	used  time.Time
	in    *recentList
}

// get returns the value for key, and counts as a use of it.
func (m *recentMap[K, V]) get(key K, now time.Time) (value V, ok bool) {
	if e := m.entries[key]; e != nil {
		entry := e.Value.(*recentEntry[K, V])
		entry.used = now
		if entry.in == &m.again {
			m.again.order.MoveToFront(e)
		} else {
			m.take(e)
			m.add(entry, &m.again)
		}
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

// put sets the value for key. It leaves at once if it is larger than the bounds.
func (m *recentMap[K, V]) put(key K, value V, size int64, now time.Time) {
	m.forget(key)
	m.forgetIdle(now)
	m.add(&recentEntry[K, V]{key: key, value: value, size: size, used: now}, &m.once)
	for m.once.size > m.newcomers || m.once.size+m.again.size > m.max {
		e := m.once.order.Back()
		if m.once.size <= m.newcomers {
			e = m.oldest()
		}
		m.remove(e)
		if m.evicted != nil {
			m.evicted()
		}
	}
	m.await(m.idle)
}

func (m *recentMap[K, V]) add(entry *recentEntry[K, V], to *recentList) {
	if m.entries == nil {
		m.entries = make(map[K]*list.Element)
	}
	entry.in = to
	to.size += entry.size
	m.entries[entry.key] = to.order.PushFront(entry)
}

func (m *recentMap[K, V]) take(e *list.Element) *recentEntry[K, V] {
	entry := e.Value.(*recentEntry[K, V])
	entry.in.order.Remove(e)
	entry.in.size -= entry.size
	delete(m.entries, entry.key)
	return entry
}

func (m *recentMap[K, V]) remove(e *list.Element) {
	entry := m.take(e)
	if m.drop != nil {
		m.left = append(m.left, entry.value)
	}
}

// oldest returns the entry that was used longest ago, or nil if there is none.
func (m *recentMap[K, V]) oldest() *list.Element {
	used := func(e *list.Element) time.Time { return e.Value.(*recentEntry[K, V]).used }
	a, b := m.once.order.Back(), m.again.order.Back()
	if a == nil || b != nil && used(b).Before(used(a)) {
		return b
	}
	return a
}

func (m *recentMap[K, V]) forgetIdle(now time.Time) {
	for _, l := range []*recentList{&m.once, &m.again} {
		for e := l.order.Back(); e != nil && age(now, e.Value.(*recentEntry[K, V]).used) > m.idle; e = l.order.Back() {
			m.remove(e)
		}
	}
}

// await has expired called after d, if it is not to be called already.
func (m *recentMap[K, V]) await(d time.Duration) {
	if m.expired != nil && m.timer == nil && len(m.entries) > 0 {
		m.timer = time.AfterFunc(d+time.Second, m.expired)
	}
}

// expire drops the values that are idle, even if the map is not used.
func (m *recentMap[K, V]) expire(now time.Time) {
	m.forgetIdle(now)
	m.timer = nil
	if e := m.oldest(); e != nil {
		m.await(m.idle - age(now, e.Value.(*recentEntry[K, V]).used))
	}
}

// age returns the time since made by the wall clock or by the monotonic clock, whichever gives
// more. The monotonic clock stops while the machine sleeps, and the wall clock may be set back.
func age(now, made time.Time) time.Duration {
	return max(now.Sub(made), now.Round(0).Sub(made.Round(0)))
}
