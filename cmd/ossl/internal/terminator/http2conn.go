package terminator

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ossl-go/ossl"
	"golang.org/x/net/http2"
)

// An http2Conn is a client's HTTP/2 connection, after the handshake. It disconnects clients that send
// very many frames that do no work, and can tell a client before net/http does that the connection
// will be closed.
type http2Conn struct {
	net.Conn // with TLS
	secure   tlsConn
	flooded  func() // is called once when the client's frames are too many
	in       frames
	budget   frameBudget

	mu      sync.Mutex // held by writes
	out     frames     // guarded by mu
	begun   bool       // guarded by mu; the server has written its SETTINGS, the first frame
	waiting atomic.Pointer[[]byte]
}

func newHTTP2Conn(secure tlsConn, flooded func()) *http2Conn {
	c := &http2Conn{Conn: secure, secure: secure, flooded: flooded}
	c.in.skip = len(http2.ClientPreface)
	c.budget.last, c.budget.left = time.Now(), budgetMax
	return c
}

// errFlood is the error of connections with too many frames.
var errFlood = errors.New("too many HTTP/2 frames that do no work")

// Read returns an error to the http2.Server when the client has used up its budget of frames.
func (c *http2Conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	cost := 0
	c.in.follow(b[:n], func(f frameHeader) { cost += f.costOfClients() })
	if n > 0 && !c.budget.spend(cost) {
		c.flooded()
		c.insert(goAway(http2.ErrCodeEnhanceYourCalm))
		return 0, errFlood
	}
	return n, err
}

func (c *http2Conn) Write(b []byte) (int, error) {
	c.mu.Lock()
	c.begun = true
	earned := 0
	c.out.follow(b, func(f frameHeader) { earned += f.worthOfServers() })
	n, err := c.Conn.Write(b)
	c.writeWaiting()
	c.mu.Unlock()
	c.budget.earn(earned)
	c.tryWaiting() // one that came meanwhile
	return n, err
}

// announceEnd tells the client to begin no more requests on this connection. Those that are on their way are
// still answered, as the last stream that is named is the last one possible: RFC 9113, section 6.8.
func (c *http2Conn) announceEnd() { c.insert(goAway(http2.ErrCodeNo)) }

// insert writes a frame between two others.
func (c *http2Conn) insert(frame []byte) {
	c.waiting.Store(&frame)
	c.tryWaiting()
}

// tryWaiting writes the frame that waits. If a Write is under way, that Write does it afterwards.
func (c *http2Conn) tryWaiting() {
	if c.waiting.Load() != nil && c.mu.TryLock() {
		c.writeWaiting()
		c.mu.Unlock()
	}
}

// insertPatience is the time in which a client must take an inserted frame.
const insertPatience = 2 * time.Second

// writeWaiting writes the frame that waits if no other one is half written. c.mu is held.
func (c *http2Conn) writeWaiting() {
	if c.begun && c.out.between() {
		if frame := c.waiting.Swap(nil); frame != nil {
			_ = c.Conn.SetWriteDeadline(time.Now().Add(insertPatience))
			_, _ = c.Conn.Write(*frame) // the http2.Server meets the error too
			_ = c.Conn.SetWriteDeadline(time.Time{})
		}
	}
}

// goAway returns a GOAWAY frame with the last stream that is possible.
func goAway(code http2.ErrCode) []byte {
	frame := []byte{0, 0, 8, byte(http2.FrameGoAway), 0, 0, 0, 0, 0}
	frame = binary.BigEndian.AppendUint32(frame, 1<<31-1)
	return binary.BigEndian.AppendUint32(frame, uint32(code))
}

// ConnectionState is for the http2.Server, which fills Request.TLS.
func (c *http2Conn) ConnectionState() tls.ConnectionState { return c.secure.ConnectionState() }

// NetConn returns the connection without TLS.
func (c *http2Conn) NetConn() net.Conn { return c.secure.NetConn() }

// SetIdle tells the connection whether a request is under way.
func (c *http2Conn) SetIdle(idle bool) {
	if conn, ok := c.secure.(*ossl.Conn); ok {
		conn.SetIdle(idle)
	}
}

// frames follow the frames of one direction: RFC 9113, section 4.1.
type frames struct {
	skip   int // bytes that are still to come of a frame's payload
	header [frameHeaderLength]byte
	have   int // bytes of the header
}

const frameHeaderLength = 9

type frameHeader struct {
	kind   http2.FrameType
	flags  http2.Flags
	length int
}

// follow follows the next bytes, and calls each with every frame that begins.
func (f *frames) follow(b []byte, each func(frameHeader)) {
	for len(b) > 0 {
		if f.skip > 0 {
			n := min(f.skip, len(b))
			f.skip -= n
			b = b[n:]
			continue
		}
		n := copy(f.header[f.have:], b)
		f.have += n
		b = b[n:]
		if f.have == frameHeaderLength {
			f.have = 0
			f.skip = int(f.header[0])<<16 | int(f.header[1])<<8 | int(f.header[2])
			each(frameHeader{http2.FrameType(f.header[3]), http2.Flags(f.header[4]), f.skip})
		}
	}
}

// between reports whether the next byte begins a frame.
func (f *frames) between() bool { return f.skip == 0 && f.have == 0 }

// A frameBudget bounds the frames of a client that do no work. Honest clients send such frames too: to
// answer data (WINDOW_UPDATE), to keep the connection open (PING), to give up requests (RST_STREAM).
type frameBudget struct {
	mu   sync.Mutex
	left int       // guarded by mu
	last time.Time // guarded by mu; when left was refilled
}

const (
	budgetMax    = 10_000
	budgetRefill = 100 // a second
	// resetCost is the cost of a request that is given up. The server may have begun to work on it.
	resetCost = 10
)

// costOfClients returns the cost of a client's frame, which is negative if the frame does work.
func (f frameHeader) costOfClients() int {
	switch {
	case f.kind == http2.FrameHeaders:
		return 0 // the answer earns
	case f.kind == http2.FrameData && f.length > 0:
		return -2
	case f.kind == http2.FrameData && f.flags.Has(http2.FlagDataEndStream):
		return 0
	case f.kind == http2.FrameRSTStream:
		return resetCost
	}
	return 1
}

// worthOfServers returns the frames that a client may send for a frame of the server: it answers data by
// two frames at most. Two whole responses pay for a request that is given up: a client that resets each of
// its requests must not be paid for those that were faster. A stream that the server resets costs as much.
func (f frameHeader) worthOfServers() (worth int) {
	switch f.kind {
	case http2.FrameData:
		if f.length > 0 {
			worth = 2
		}
		fallthrough
	case http2.FrameHeaders:
		if f.flags.Has(http2.FlagDataEndStream) { // which is FlagHeadersEndStream
			worth += resetCost / 2
		}
	case http2.FrameRSTStream:
		worth = -resetCost
	}
	return worth
}

// spend takes from the budget, and reports whether it was enough.
func (b *frameBudget) spend(cost int) bool {
	if cost < 0 {
		b.earn(-cost)
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if refill := int(now.Sub(b.last).Seconds() * budgetRefill); refill > 0 {
		b.left, b.last = min(b.left+refill, budgetMax), now
	}
	b.left -= cost
	return b.left >= 0
}

// earn adds to the budget.
func (b *frameBudget) earn(worth int) {
	if worth == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = min(b.left+worth, budgetMax)
}
