package ossl

import (
	"crypto/tls"
	"net"
	"os"
	"testing"
	"time"
	"weak"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/netio"
	"github.com/ossl-go/ossl/internal/record"
)

// KeyUpdate updates the connection's sending key and, if asked, makes the peer do the same.
func (c *Conn) KeyUpdate(request bool) error {
	defer c.flushQueue(byCall)
	ssl, err := c.engine.lock()
	if err != nil {
		return err
	}
	defer c.engine.unlock()
	if s, ok := c.engine.sealer.(*directSealer); ok {
		message := []byte{24, 0, 0, 1, 0}
		if request {
			message[4] = 1
		}
		s.updateKey(&c.engine, message)
		return s.err
	}
	step := ssl.KeyUpdate(request)
	c.engine.queue.push(ssl.Spill())
	if step.Status != libssl.Done {
		return libraryError(&libssl.Error{Op: "key update", Codes: ssl.Errors()})
	}
	return nil
}

// SetReadGrace sets the time for which Detach waits for a Read that it has interrupted. restore undoes it.
func SetReadGrace(d time.Duration) (restore func()) {
	before := readGrace
	readGrace = d
	return func() { readGrace = before }
}

// Detaching reports whether a call of Detach has the writer.
func (c *Conn) Detaching() bool {
	if c.calls.move.Load() == nil {
		return false
	}
	if c.out.mu.TryLock() {
		c.out.mu.Unlock()
		return false
	}
	return true
}

// Freed reports whether the connection's C memory was given back.
func (c *Conn) Freed() bool {
	c.engine.mu.Lock()
	defer c.engine.unlock()
	if !c.in.tryLock() {
		return false
	}
	defer c.in.unlock()
	own, ok := c.in.opener.(*directOpener)
	return c.engine.ssl == nil && (!ok || own.side == nil)
}

// BoundCompiled sets the number of configurations like config, and of their Contexts, that the drop-in
// functions remember at most, and forgets all others. restore undoes it.
func BoundCompiled(n int, config *tls.Config) (restore func()) {
	set := func(most, newcomers int64) {
		compiled.mu.Lock()
		defer compiled.recent.unlock(&compiled.mu)
		compiled.recent.bound(most, newcomers)
		compiled.contexts.mu.Lock()
		defer compiled.contexts.recent.unlock(&compiled.contexts.mu)
		compiled.contexts.recent.bound(most, newcomers)
	}
	set(0, 0)
	most := int64(n) * configSize(config)
	set(most, most)
	return func() { set(defaultCache, defaultCache/4) }
}

func (m *recentMap[K, V]) bound(most, newcomers int64) {
	m.max, m.newcomers = most, newcomers
	for m.once.size+m.again.size > most {
		m.remove(m.oldest())
	}
}

// boundChosen sets the number of configurations like config that a server keeps at most.
func (c *Context) boundChosen(n int, config *tls.Config) {
	c.chosen.mu.Lock()
	defer c.chosen.recent.unlock(&c.chosen.mu)
	c.chosen.recent.bound(int64(n)*configSize(config), int64(n)*configSize(config))
}

// CompiledConfigs returns the number of configurations that the drop-in functions remember.
func CompiledConfigs() int {
	compiled.mu.Lock()
	defer compiled.mu.Unlock()
	return len(compiled.recent.entries)
}

// QueueLen returns the number of sealed bytes that wait.
func (c *Conn) QueueLen() int {
	c.engine.mu.Lock()
	defer c.engine.unlock()
	return len(c.engine.queue.data)
}

// Drain discards the input that has arrived unread, as Close does.
func (c *Conn) Drain() { c.drain() }

// MaxDrained is the number of bytes that Drain takes at most.
const MaxDrained = maxDrained

// CrossRead opens b, which is damaged, as a Read does before it flushes.
func (c *Conn) CrossRead(b []byte) {
	if c.TakenOver() {
		c.in.lock()
		defer c.in.unlock()
		own := c.in.opener.(*directOpener)
		var o libssl.Opened
		if own.side.Open(&o, b, make([]byte, 100)); o.Status == libssl.Fatal {
			own.sealer.alert(&c.engine, o.Alert)
		}
		return
	}
	c.engine.mu.Lock()
	defer c.engine.unlock()
	c.engine.ssl.Read(b, make([]byte, 100))
	c.engine.queue.push(c.engine.ssl.Spill())
}

// TakenOver reports whether the connection was taken over from libssl.
func (c *Conn) TakenOver() bool {
	c.engine.mu.Lock()
	defer c.engine.unlock()
	_, own := c.engine.sealer.(*directSealer)
	return own
}

// Refuse refuses the peer that the last call of the handshake has accepted, and returns the alert.
func (c *Conn) Refuse(alert uint8) []byte {
	c.engine.mu.Lock()
	defer c.engine.unlock()
	out := make([]byte, 100)
	return out[:c.engine.ssl.RefuseFlight(alert, out).Produced]
}

// Writes returns the number of Writes that are under way.
func (c *Conn) Writes() int { return int(c.calls.active.Load() >> 1) }

// Reading reports whether a Read is under way.
func (c *Conn) Reading() bool {
	if c.in.tryLock() {
		c.in.unlock()
		return false
	}
	return true
}

// UseStates uses the states with numbers in their order. It returns which were used before, and the number of
// spans.
func UseStates(numbers []uint64) (before []bool, spans int) {
	var u usedStates
	for _, n := range numbers {
		at, used := u.find([16]byte{}, n)
		if before = append(before, used); !used {
			u.add([16]byte{}, at, n)
		}
	}
	return before, len(u.processes[[16]byte{}])
}

// Flush sends the queue.
func (c *Conn) Flush() { c.flushQueue(byCall) }

// Crossings returns the number of calls into C that the connection has made. No Read may be under
// way.
func (c *Conn) Crossings() uint64 {
	c.in.lock()
	defer c.in.unlock()
	c.engine.mu.Lock()
	defer c.engine.unlock()
	return c.engine.ssl.Calls()
}

// LibsslCrossings is Crossings for a connection whose records are libssl's. A Read may be under
// way.
func (c *Conn) LibsslCrossings() uint64 {
	c.engine.mu.Lock()
	defer c.engine.unlock()
	return c.engine.ssl.Calls()
}

// CompiledFor returns the number of Contexts that the drop-in functions remember for a
// configuration.
func CompiledFor(config weak.Pointer[tls.Config]) (n int) {
	compiled.mu.Lock()
	defer compiled.mu.Unlock()
	for key := range compiled.recent.entries {
		if key.config == config {
			n++
		}
	}
	return n
}

// SkipTo skips the sequence numbers of the records that are sent or received, up to seq.
func (c *Conn) SkipTo(sent bool, seq uint64) bool {
	if sent {
		return c.engine.sealer.(*directSealer).side.Skip(seq)
	}
	return c.in.opener.(*directOpener).side.Skip(seq)
}

// MissRecord makes a takeover not count the n-th record from now, or Finished, of those that are
// sent or received. It may be called by a callback of the handshake, or while nothing else uses the
// connection.
func (c *Conn) MissRecord(sent bool, n uint8) { c.engine.ssl.Miss(sent, n) }

// SetKernelFIPS replaces the file in which the kernel reports its FIPS mode, for a test.
func SetKernelFIPS(t testing.TB, file string) {
	loadLibrary("")
	who, err := hostInFIPS(file)
	if err != nil {
		t.Fatal(err)
	}
	old := hostFIPS.Load()
	hostFIPS.Store(&who)
	t.Cleanup(func() { hostFIPS.Store(old) })
}

// HostInFIPS returns the reason why the host is in FIPS mode, with another file of the kernel's.
var HostInFIPS = hostInFIPS

// TryFIPS sets up FIPS mode as if for the first time, and undoes it.
func TryFIPS() error {
	if err := libssl.TryFIPS(); err != nil {
		return &fipsError{"", err, remedy(err)}
	}
	return nil
}

// WriteAwaitsRead reports whether a Write waits, or has waited, for a Read that is under way, to
// read the rest of a message.
func WriteAwaitsRead(c *Conn) bool {
	c.turns.mu.Lock()
	defer c.turns.mu.Unlock()
	return c.turns.awaited
}

// SetPrivileged makes the process seem to have more rights than the user who started it, until the
// result is called.
func SetPrivileged() (restore func()) {
	before := privileged
	privileged = func() bool { return true }
	return func() { privileged = before }
}

// Stats returns the statistics of the connection's Context.
func (c *Conn) Stats() Stats { return c.watch.observer.snapshot() }

// SendByKernel is the part of SendFile that the kernel does.
func (c *Conn) SendByKernel(f *os.File, n int64) (int64, error) { return c.sendFile(f, n) }

// FlushKernel makes the kernel send the data that it holds back.
func (c *Conn) FlushKernel() error {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	return c.out.sender.(*kernelSender).send(record.ApplicationData, nil)
}

// SpendKernelKey uses up the budget of the kernel's key.
func (c *Conn) SpendKernelKey() {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	if k, ok := c.out.sender.(*kernelSender); ok {
		k.budget = 0
	}
}

// PeerEnded reports whether the peer of a socket has hung up.
func PeerEnded(conn net.Conn) bool { return new(netio.Input).Ended(conn, netio.PeerGone) != nil }

// BytesSent returns the number of bytes of records that the connection has sent.
func BytesSent(c *Conn) int64 {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	return c.out.sizes.bytes
}

// AddPaused adds n to the number of handshakes that wait for Go, until undo is called.
func AddPaused(n int32) (undo func()) {
	paused.Add(n)
	return func() { paused.Add(-n) }
}

// MaxPaused is the bound on the handshakes that wait for Go.
const MaxPaused = maxPaused

// FillSteps takes all places of the gate for steps, until undo is called. It waits for those that other
// handshakes have.
func FillSteps() (undo func()) {
	g, places := stepGate(), stepPlaces()
	sizeSteps(g)
	for range places {
		_ = g.Enter(nil, func(ready <-chan struct{}) error {
			<-ready
			return nil
		})
	}
	return func() {
		for range places {
			g.Leave(nil)
		}
	}
}

// WaitingForSteps returns the number of handshakes that wait at the gate for steps.
func WaitingForSteps() int { return steps().Waiting() }

// LookAtPeer is the time between two looks of a wait at the peer.
const LookAtPeer = lookAtPeer

// Silence is the time for which a client must have sent nothing before its tickets are sent alone.
const Silence = silence

// SetWatchClock replaces w's clock.
func SetWatchClock(w *Watch, clock func() time.Time) { w.clock = clock }
