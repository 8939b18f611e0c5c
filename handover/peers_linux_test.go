//go:build cgo || ossl_nocgo

package handover_test

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// A peer is a client with traffic in both directions: it sends a random stream, and checks that the
// same stream comes back.
type peer struct {
	conn     io.ReadWriteCloser
	seed     [32]byte
	interval time.Duration // between two messages
	seen     *sight

	stop     chan struct{}
	sent     atomic.Int64
	received atomic.Int64
	stopped  atomic.Bool // no more is sent
	slowest  atomic.Int64

	mu    sync.Mutex
	times []mark // of messages under way

	err  error // of the reader
	done sync.WaitGroup
}

// A mark is the time at which the stream had a length.
type mark struct {
	length int64
	at     time.Time
}

// A sight counts the observations of all peers.
type sight struct {
	received atomic.Int64 // messages that have come back
	updates  atomic.Int64 // KeyUpdates that were sent
	records  atomic.Int64 // with explicit nonces
}

func (p *peer) start() {
	p.stop = make(chan struct{})
	p.done.Go(func() { p.err = p.readAll() })
	p.done.Go(p.writeAll)
}

func (p *peer) writeAll() {
	random := rand.NewChaCha8(p.seed)
	sizes := rand.New(rand.NewPCG(uint64(p.seed[0]), uint64(p.seed[1])))
	tick := time.NewTimer(rand.N(p.interval))
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			p.stopped.Store(true)
			return
		case <-tick.C:
			tick.Reset(p.interval/2 + rand.N(p.interval))
		}
		b := make([]byte, 1+sizes.IntN(3000))
		random.Read(b)
		p.mu.Lock()
		length := p.sent.Add(int64(len(b)))
		p.times = append(p.times, mark{length, time.Now()})
		p.mu.Unlock()
		if _, err := p.conn.Write(b); err != nil {
			return // the reader has the reason
		}
	}
}

func (p *peer) readAll() error {
	random := rand.NewChaCha8(p.seed)
	got, want := make([]byte, 4000), make([]byte, 4000)
	for {
		n, err := p.conn.Read(got)
		random.Read(want[:n])
		if !bytes.Equal(got[:n], want[:n]) {
			return fmt.Errorf("%w: %d bytes after the first %d", errOtherBytes, n, p.received.Load())
		}
		length := p.received.Add(int64(n))
		p.mu.Lock()
		for len(p.times) > 0 && p.times[0].length <= length {
			p.slowest.Store(max(p.slowest.Load(), int64(time.Since(p.times[0].at))))
			p.times = p.times[1:]
			p.seen.received.Add(1)
		}
		p.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

var errOtherBytes = errors.New("other bytes came back")

// finish stops the traffic, waits until all that was sent has come back or the connection has
// failed, and closes the connection. It returns the reason if the stream is not whole.
func (p *peer) finish() error {
	close(p.stop)
	done := make(chan struct{})
	go func() { p.done.Wait(); close(done) }()
	timeout := time.After(tlstest.Patience)
	for p.sent.Load() != p.received.Load() || !p.stopped.Load() {
		select {
		case <-done:
			return p.err
		case <-timeout:
			p.conn.Close()
			<-done
			return fmt.Errorf("%w: %d of %d bytes came back", errHalf, p.received.Load(), p.sent.Load())
		case <-time.After(time.Millisecond):
		}
	}
	p.conn.Close()
	<-done
	if errors.Is(p.err, errOtherBytes) {
		return p.err
	}
	return nil
}

var errHalf = errors.New("the connection is half")

// isEnd reports whether a connection fails with err when the other process has gone.
func isEnd(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE)
}

// dial connects peer number i to a server. The kinds of peers alternate.
func dial(addr string, i int, interval time.Duration, seen *sight) (*peer, error) {
	raw, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	p := &peer{interval: interval, seen: seen}
	binary.BigEndian.PutUint64(p.seed[:], uint64(i))
	switch i % 3 {
	case 0:
		p.conn = tls.Client(raw, tlstest.ClientConfig())
	case 1:
		p.conn = tls.Client(&nonces{Conn: raw, seen: seen}, tlstest.ClientConfig(func(c *tls.Config) {
			c.MaxVersion = tls.VersionTLS12
			c.CipherSuites = []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}
		}))
	default:
		if p.conn, err = updating(raw, seen); err != nil {
			raw.Close()
			return nil, err
		}
		return p, nil
	}
	if err := p.conn.(*tls.Conn).Handshake(); err != nil {
		raw.Close()
		return nil, err
	}
	return p, nil
}

// nonces is a client's socket. Its Read fails if a TLS 1.2 record has the explicit nonce of another.
type nonces struct {
	net.Conn
	seen   *sight
	rest   []byte
	sealed bool
	known  map[uint64]bool
}

func (c *nonces) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	records, rest := tlstest.SplitRecords(append(c.rest, b[:n]...))
	c.rest = bytes.Clone(rest)
	for _, r := range records {
		if r.Type == tlstest.TypeChangeCipherSpec {
			c.sealed, c.known = true, map[uint64]bool{}
			continue
		}
		if !c.sealed {
			continue
		}
		nonce := binary.BigEndian.Uint64(r.Payload)
		if c.known[nonce] {
			return 0, fmt.Errorf("%w: nonce %d came twice", errOtherBytes, nonce)
		}
		c.known[nonce] = true
		c.seen.records.Add(1)
	}
	return n, err
}

// An updater is a TLS 1.3 client that changes its keys all the time, and asks for new ones. Its
// handshake is crypto/tls's.
type updater struct {
	net.Conn
	seen *sight
	peer *tls.Conn // not used after the handshake

	mu   sync.Mutex
	send *tlstest.Keys
	n    int

	receive *tlstest.Keys
	rest    []byte // of records
	data    []byte // of a record
}

func updating(raw net.Conn, seen *sight) (*updater, error) {
	rec, log := new(tlstest.Recording), new(tlstest.KeyLog)
	tap := &recorded{Conn: rec.Tap(tlstest.ClientRole, raw)}
	c := tls.Client(tap, tlstest.WithKeyLog(tlstest.ClientConfig(func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 }), log))
	if err := c.Handshake(); err != nil {
		return nil, err
	}
	suite := c.ConnectionState().CipherSuite
	send, err := tlstest.Keys13(suite, log.Secret("CLIENT_TRAFFIC_SECRET_0"))
	if err != nil {
		return nil, err
	}
	receive, err := tlstest.Keys13(suite, log.Secret("SERVER_TRAFFIC_SECRET_0"))
	if err != nil {
		return nil, err
	}
	u := &updater{Conn: raw, seen: seen, send: send, receive: receive, peer: c}
	// crypto/tls has read beyond the handshake if a ticket came with it: all that it read is read
	// again, and the records of the handshake don't open with the keys of the traffic.
	records, rest := tlstest.SplitRecords(tap.all)
	u.rest = rest
	for _, r := range records {
		if r.Type == tlstest.TypeApplicationData {
			if err := u.take(r); err != nil && u.n > 0 {
				return nil, err
			}
		}
	}
	return u, nil
}

type recorded struct {
	net.Conn
	all []byte
}

func (r *recorded) Read(b []byte) (int, error) {
	n, err := r.Conn.Read(b)
	r.all = append(r.all, b[:n]...)
	return n, err
}

// take opens a record.
func (u *updater) take(r tlstest.Record) error {
	opened, err := u.receive.Open(r)
	if err != nil {
		return fmt.Errorf("%w: %w", errOtherBytes, err)
	}
	switch opened.Type {
	case tlstest.TypeApplicationData:
		u.data = append(u.data, opened.Payload...)
	case tlstest.TypeHandshake:
		for _, m := range tlstest.Messages([]tlstest.Record{opened}) {
			if m[0] == tlstest.MsgKeyUpdate {
				u.receive = u.receive.Next()
			}
		}
	case tlstest.TypeAlert:
		if bytes.Equal(opened.Payload, []byte{1, 0}) {
			return io.EOF
		}
		return fmt.Errorf("%w: alert %d", errOtherBytes, opened.Payload)
	}
	return nil
}

func (u *updater) Read(b []byte) (int, error) {
	buf := make([]byte, 20000)
	for len(u.data) == 0 {
		n, err := u.Conn.Read(buf)
		var records []tlstest.Record
		records, u.rest = tlstest.SplitRecords(append(u.rest, buf[:n]...))
		u.rest = bytes.Clone(u.rest)
		for _, r := range records {
			if err := u.take(r); err != nil {
				return 0, err
			}
		}
		if err != nil && len(u.data) == 0 {
			return 0, err
		}
	}
	n := copy(b, u.data)
	u.data = u.data[n:]
	return n, nil
}

// Write writes b, and a KeyUpdate before every third call's. Every other one asks the server for one.
func (u *updater) Write(b []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	var out []byte
	if u.n++; u.n%3 == 0 {
		out = u.send.Seal(tlstest.TypeHandshake, []byte{tlstest.MsgKeyUpdate, 0, 0, 1, byte(u.n / 3 % 2)})
		u.send = u.send.Next()
		u.seen.updates.Add(1)
	}
	if _, err := u.Conn.Write(append(out, u.send.Seal(tlstest.TypeApplicationData, b)...)); err != nil {
		return 0, err
	}
	return len(b), nil
}
