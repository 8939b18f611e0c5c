package terminator

import (
	"errors"
	"sync"
	"time"
)

// errPaused is the error of a read of a tunnel that is asked to rest. The read has taken no data.
var errPaused = errors.New("the connection rests")

// A rest brings both directions of a tunnel to rest: between a write and the next read, so that this
// process holds no data that must still be written.
type rest struct {
	mu      sync.Mutex
	changed *sync.Cond
	sources [2]*idleConn // from which the directions read
	asked   bool         // guarded by mu; the directions shall rest
	resting int          // guarded by mu; the directions that do
	ended   int          // guarded by mu; those that are over
	failed  bool         // guarded by mu; one has failed, and the tunnel never rests again
	late    *time.Timer  // guarded by mu; runs while the tunnel is asked to rest
	over    func()       // guarded by mu; called when the tunnel rests no more
}

// newRest returns the rest of two connections. ended is the number of directions that are over.
func newRest(a, b *idleConn, ended int) *rest {
	r := &rest{sources: [2]*idleConn{a, b}, ended: ended}
	r.changed = sync.NewCond(&r.mu)
	a.rest, b.rest = r, r
	return r
}

// begin asks both directions to rest, and reports whether they can. If they don't within a time, because
// a peer takes no data for example, they go on. over is called once when the rest is over.
func (r *rest) begin(patience time.Duration, over func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked || r.failed || r.ended == 2 {
		return false
	}
	r.asked, r.over = true, over
	for _, c := range r.sources {
		_ = c.Conn.SetReadDeadline(time.Unix(1, 0)) // wakes a read; that of a closed connection has an error anyway
	}
	r.late = time.AfterFunc(patience, r.giveUp)
	return true
}

// giveUp lets the directions go on, unless both rest.
func (r *rest) giveUp() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.resting+r.ended < 2 {
		r.stop()
	}
}

// stop stops the rest. r.mu is held.
func (r *rest) stop() {
	if r.asked {
		r.asked = false
		r.late.Stop()
		r.over()
		r.changed.Broadcast()
	}
}

// join is called by a direction that has met errPaused. It reports whether both rest now; if not, the
// direction must go on.
func (r *rest) join() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resting++
	r.changed.Broadcast()
	for r.asked && r.resting+r.ended < 2 {
		r.changed.Wait()
	}
	if r.asked {
		return true
	}
	r.resting--
	return false
}

// whole reports whether both directions rest.
func (r *rest) whole() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked && r.resting > 0 && r.resting+r.ended == 2
}

// end is called by a direction that is over.
func (r *rest) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended++; r.ended == 2 {
		r.stop() // nothing is left that could be moved
	}
	r.changed.Broadcast()
}

// fail is called by a direction that has failed. The other one goes on, and finds out.
func (r *rest) fail() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
	r.stop()
}

// resume lets both directions go on.
func (r *rest) resume() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resting = 0
	r.stop()
}

// setDeadline sets the deadline for a read of a connection, or returns errPaused.
func (r *rest) setDeadline(c *idleConn, t time.Time) error {
	if r == nil {
		return c.Conn.SetReadDeadline(t)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked {
		return errPaused
	}
	return c.Conn.SetReadDeadline(t)
}
