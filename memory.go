package ossl

import (
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ossl-go/ossl/internal/libssl"
)

// glibc doesn't return the memory that many handshakes at once have taken: the free memory is below
// blocks that are in use. So after a burst, one goroutine calls malloc_trim(3). Meanwhile C code that
// needs memory of the same arena waits, which is bearable when little is going on.

// envTrim names the environment variable that turns this off.
const envTrim = "OSSL_TRIM"

const (
	// burst is the number of handshakes or connections at once from which on their memory matters. A
	// handshake takes about 100 KB.
	burst = 500

	trimPause = 10 * time.Second // between two calls of malloc_trim
	trimLook  = 2 * time.Second  // between two looks at the numbers
)

// A tide keeps track of the peak of a number.
type tide struct {
	high atomic.Int64 // since the last look, at least about
	peak int64        // as of the last look
}

// fell notes that the number is n now, and reports whether it has fallen far below its peak.
func (t *tide) fell(n int64) bool {
	t.peak = max(t.peak, n, t.high.Swap(0))
	return t.peak >= burst && n < t.peak/4
}

// A trimmer returns memory when the number of handshakes or of connections has fallen far.
type trimmer struct {
	handshakes atomic.Int64 // those under way
	watching   atomic.Bool  // look will be called
	canTrim    func() bool
	trim       func()
	trimmed    atomic.Uint64 // the number of calls of trim

	atOnce, open tide
	last         time.Time // of trim; only look uses it
}

var memory = &trimmer{
	canTrim: sync.OnceValue(func() bool { return libssl.CanTrimHeap() && os.Getenv(envTrim) != "off" }),
	trim:    libssl.TrimHeap,
}

// begin counts a handshake that begins. The caller must call end.
func (m *trimmer) begin() {
	m.rose(&m.atOnce, m.handshakes.Add(1))
}

// rose notes that a number has risen to n.
func (m *trimmer) rose(t *tide, n int64) {
	if n < burst || !m.canTrim() {
		return
	}
	if n > t.high.Load() {
		t.high.Store(n)
	}
	m.watch()
}

func (m *trimmer) end() { m.handshakes.Add(-1) }

// watch has look called as long as there is something to see.
func (m *trimmer) watch() {
	if m.watching.Load() || !m.watching.CompareAndSwap(false, true) {
		return
	}
	time.AfterFunc(trimLook, func() {
		again := m.look(m.handshakes.Load(), openConns(), time.Now())
		m.watching.Store(false)
		if again || m.handshakes.Load() >= burst {
			m.watch()
		}
	})
}

// look calls trim if it is time to do so, and reports whether to look again. handshakes and open are the
// numbers of handshakes and connections.
func (m *trimmer) look(handshakes, open int64, now time.Time) (again bool) {
	if fell := m.atOnce.fell(handshakes); (m.open.fell(open) || fell) && now.Sub(m.last) >= trimPause {
		m.trim()
		m.trimmed.Add(1)
		m.last = now
		m.atOnce.peak, m.open.peak = handshakes, open
	}
	return m.atOnce.peak >= burst || m.open.peak >= burst
}
