package ossl

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/ossl-go/ossl/internal/connstate"
	"github.com/ossl-go/ossl/internal/ktls"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/record"
	"github.com/ossl-go/ossl/internal/wire"
)

// With kernel TLS the kernel seals the records that a connection sends: after the takeover from
// libssl, ossl gives the sending key to the socket and writes plaintext to it. That begins at the
// first Write, between two records, and is never undone. ossl keeps the receiving side.
//
// The kernel also seals alerts and KeyUpdates, which it gets with their content type. So a Read
// that must send one queues it unsealed, and the next holder of the writer's lock sends it. After a
// KeyUpdate the kernel gets the next key.

// A kernelSender sends application data that the kernel seals. It is made with the writer and the
// engine locked.
type kernelSender struct {
	sealer *directSealer
	tcp    *net.TCPConn
	raw    syscall.RawConn

	budget   int64           // guarded by the writer; how many records may still be sealed with the key
	messages []kernelMessage // guarded by the engine; in their order
}

// A kernelMessage is a record that holds no application data.
type kernelMessage struct {
	contentType uint8
	text        []byte
	update      bool // later records use the next key
}

// recordsPerKey bounds the number of records sealed with one TLS 1.3 key: RFC 8446, section 5.5.
// The number is an upper estimate, since the kernel may end a record before it is full.
const recordsPerKey = libssl.RecordsPerKey

const (
	// kernelChunk is the number of bytes that the kernel gets before the messages of Reads have
	// their turn.
	kernelChunk = 256 << 10
	// smallestRecord is the assumed minimum size of a record of a larger Write: a page.
	smallestRecord = 4096
)

// KernelTLS reports whether the kernel seals the records that the connection sends; see
// [WithKernelTLS]. It begins to seal with the first Write.
func (c *Conn) KernelTLS() bool {
	c.engine.mu.Lock()
	defer c.engine.unlock()
	s, ok := c.engine.sealer.(*directSealer)
	return ok && s.kernel != nil
}

// SendsFiles reports whether [Conn.SendFile] and [Conn.ReadFrom] can use sendfile(2): the option
// [WithKernelTLS] is set, the underlying connection is a [*net.TCPConn], and the kernel can seal
// for the connection's TLS version or, before the handshake, for any version. Unlike
// [Conn.KernelTLS] it answers before the first Write: then libssl may still keep the records, or
// the kernel refuse the cipher suite.
func (c *Conn) SendsFiles() bool {
	ctx := c.context()
	if ctx == nil || !ctx.kernelTLS {
		return false
	}
	if _, ok := c.conn.(*net.TCPConn); !ok {
		return false
	}
	versions := KernelTLS()
	if !c.complete.Load() {
		return len(versions) > 0
	}
	return slices.Contains(versions, c.state.Version)
}

// KernelTLS returns the TLS versions that this host's kernel can seal for [WithKernelTLS]: none,
// only TLS 1.2, or TLS 1.2 and 1.3. It asks the kernel once, with connections of the process to
// itself.
func KernelTLS() []uint16 { return ktls.Versions() }

// toKernel gives the sending side to the kernel, if ossl has it and the kernel takes it. Otherwise
// everything stays as it is. The writer is locked.
func (c *Conn) toKernel() error {
	c.engine.mu.Lock()
	s, ok := c.engine.sealer.(*directSealer)
	c.engine.unlock()
	if !ok { // libssl has the records: the next Write asks again
		return nil
	}
	c.out.kernelAsked = true
	k := s.newKernelSender(c)
	if k == nil {
		return nil
	}
	for {
		if _, err := c.engine.lock(); err != nil {
			return nil // Write returns the error
		}
		if s.err != nil {
			c.engine.unlock()
			return nil
		}
		queued := c.engine.queue.take()
		if len(queued) == 0 {
			took, err := k.giveKey()
			if took {
				s.kernel, c.out.sender = k, k
				c.watch.countRecords(RecordStats{Kernel: 1})
			}
			c.engine.unlock()
			return err
		}
		c.engine.unlock()
		if err := c.send(queued); err != nil { // it was sealed before, so it is sent before
			return err
		}
	}
}

// newKernelSender returns a sender without a key, or nil if the socket takes none.
func (s *directSealer) newKernelSender(c *Conn) *kernelSender {
	tcp, ok := c.conn.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil || !ktls.Begin(raw, c.state.Version) {
		return nil
	}
	return &kernelSender{sealer: s, tcp: tcp, raw: raw}
}

// giveKey gives the sending key to the kernel, and reports whether the kernel took it. After an
// error nothing more can be sealed. The writer and the engine are locked.
func (k *kernelSender) giveKey() (took bool, err error) {
	key := new(libssl.KernelKey)
	defer func() { *key = libssl.KernelKey{} }()
	if !k.sealer.side.KernelKey(key) {
		return false, nil
	}
	took, err = ktls.SetKey(k.raw, key)
	if err != nil {
		k.sealer.err = err
	}
	if took || err != nil {
		k.sealer.side.KernelSeals()
		k.budget = recordsPerKey - int64(binary.BigEndian.Uint64(key.Seq[:]))
	}
	return took, err
}

// encode returns the messages as connstate.State has them. The engine is locked.
func (k *kernelSender) encode() (b []byte) {
	for _, m := range k.messages {
		b = append(b, m.contentType, 0, byte(len(m.text)))
		if m.update {
			b[len(b)-2] = 1
		}
		b = append(b, m.text...)
	}
	return b
}

// goOnInKernel makes the kernel's sender of a connection that was attached, for whose socket the kernel seals. It
// checks that the kernel has the connection's key. Nobody else knows the connection yet.
func (c *Conn) goOnInKernel(messages []byte) error {
	s := &c.engine.direct
	tcp, ok := c.conn.(*net.TCPConn)
	if !ok {
		return errors.New("the underlying connection is no *net.TCPConn")
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	key := new(libssl.KernelKey)
	defer func() { *key = libssl.KernelKey{} }()
	if !s.side.KernelKey(key) {
		return errors.New("the sending key is gone")
	}
	sealed, err := ktls.Sealed(raw, key)
	if err != nil {
		return err
	}
	s.side.KernelSeals()
	k := &kernelSender{sealer: s, tcp: tcp, raw: raw, budget: recordsPerKey - int64(min(sealed, recordsPerKey))}
	for r := (wire.Reader{Rest: messages}); len(r.Rest) > 0; {
		m := kernelMessage{contentType: uint8(r.Number(1)), update: r.Number(1) == 1, text: r.Vector(1)}
		if r.Failed {
			return connstate.ErrDamaged
		}
		k.messages = append(k.messages, m)
	}
	s.kernel, c.out.sender, c.out.kernelAsked = k, k, true
	return nil
}

// takeMessages empties the queue. The engine is locked.
func (k *kernelSender) takeMessages(q *outQueue) []kernelMessage {
	messages := k.messages
	k.messages, q.answered = nil, false
	q.filled.Store(false)
	return messages
}

// push appends a message to the queue, which never holds more than an answer to KeyUpdates and an
// alert. The engine is locked.
func (k *kernelSender) push(q *outQueue, m kernelMessage) {
	k.messages = append(k.messages, m)
	q.filled.Store(true)
}

// sendMessages sends records that hold no application data. The writer is locked.
func (k *kernelSender) sendMessages(c *Conn, messages []kernelMessage) error {
	for _, m := range messages {
		if err := k.send(m.contentType, m.text); err != nil {
			return err
		}
		if m.update {
			if err := k.updateKey(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// send sends a record of a content type. An empty text is no record, but the kernel then sends the
// data that it holds for a record that isn't full. The writer is locked.
func (k *kernelSender) send(contentType uint8, text []byte) error {
	if err := ktls.Send(k.raw, contentType, text); err != nil {
		return &net.OpError{Op: "write", Net: k.tcp.LocalAddr().Network(), Source: k.tcp.LocalAddr(),
			Addr: k.tcp.RemoteAddr(), Err: err}
	}
	return nil
}

// updateKey goes on to the next key, after a KeyUpdate. The writer is locked.
func (k *kernelSender) updateKey(c *Conn) error {
	if _, err := c.engine.lock(); err != nil {
		return err
	}
	defer c.engine.unlock()
	if k.sealer.side.Update() {
		if took, err := k.giveKey(); took || err != nil {
			return err
		}
	}
	k.sealer.err = localError(alertInternalError, nil) // the peer waits for the next key
	return k.sealer.err
}

// prepare sends the records that come before n bytes of application data, and returns how many of
// these bytes may follow. The writer is locked.
func (k *kernelSender) prepare(c *Conn, n int64) (int64, error) {
	n = min(n, kernelChunk)
	if _, err := c.engine.lock(); err != nil {
		return 0, err
	}
	messages, failed := k.takeMessages(&c.engine.queue), k.sealer.err
	c.engine.unlock()
	if err := k.sendMessages(c, messages); err != nil {
		return 0, err
	}
	if failed != nil {
		return 0, failed
	}
	records := n/smallestRecord + 1
	if k.budget < records && c.state.Version == tls.VersionTLS13 {
		update := []kernelMessage{{record.Handshake, keyUpdateMessage, true}}
		if err := k.sendMessages(c, update); err != nil {
			return 0, err
		}
	}
	k.budget -= records
	return n, nil
}

// write makes the kernel seal and send a chunk of b.
func (k *kernelSender) write(c *Conn, b []byte) (int, error) {
	chunk, err := k.prepare(c, int64(len(b)))
	if err != nil {
		return 0, err
	}
	return k.tcp.Write(b[:chunk])
}

// flush has no records to send unasked: all that were held left before the kernel got the key.
func (k *kernelSender) flush(c *Conn, as occasion) error {
	c.engine.mu.Lock()
	messages := k.takeMessages(&c.engine.queue)
	c.engine.unlock()
	if as == discard {
		return nil
	}
	return k.sendMessages(c, messages)
}

func (k *kernelSender) closeNotify(c *Conn, free bool) error {
	_ = c.conn.SetWriteDeadline(time.Now().Add(closeNotifyTimeout))
	for {
		if _, err := c.engine.lock(); err != nil {
			return err
		}
		messages := k.takeMessages(&c.engine.queue)
		if len(messages) > 0 && c.out.closeNotifyErr == nil {
			c.engine.unlock()
			c.out.closeNotifyErr = k.sendMessages(c, messages)
			continue
		}
		notify := k.sealer.err == nil && c.out.closeNotifyErr == nil // an alert would be the last record
		// Nothing is queued from now on.
		if free {
			c.engine.close(&c.in, nil)
		} else {
			k.sealer.closeNotify(nil)
		}
		c.engine.unlock()
		c.out.closeNotifySent = true
		if notify {
			closing := []kernelMessage{{record.Alert, []byte{alertLevelWarning, alertCloseNotify}, false}}
			c.out.closeNotifyErr = k.sendMessages(c, closing)
		}
		_ = c.conn.SetWriteDeadline(time.Now()) // any later write fails
		return c.out.closeNotifyErr
	}
}

// sendFile makes the kernel send up to n bytes of the rest of file.R, as one Write does. It returns
// less than n without an error if the rest of the file is shorter.
func (k *kernelSender) sendFile(c *Conn, file *io.LimitedReader, n int64) (int64, error) {
	chunk, err := k.prepare(c, n)
	if err != nil {
		return 0, err
	}
	file.N = chunk
	sent, err := k.tcp.ReadFrom(file)
	if err == nil && sent < chunk {
		// It was asked for more, so the kernel may hold the end back to complete a record.
		err = k.send(record.ApplicationData, nil)
	}
	return sent, err
}
