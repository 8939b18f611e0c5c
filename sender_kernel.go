package ossl

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/ossl-go/ossl/internal/ktls"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/netio"
	"github.com/ossl-go/ossl/internal/record"
)

// With kernel TLS the kernel seals the records that a connection sends: after the takeover from
// libssl, ossl gives the sending key to the socket and writes plaintext to it. That begins at the
// first Write, between two records, and is never undone. ossl keeps the receiving side.
//
// The kernel also seals alerts and KeyUpdates, which it gets with their content type. So a Read
// that has one to send queues it as a message that is not sealed, and the next holder of the
// writer's lock sends it. After a KeyUpdate the kernel gets the next key.

// A kernelSender sends application data that the kernel seals. It is made with the writer and the
// engine locked.
type kernelSender struct {
	sealer *ownSealer
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

// recordsPerKey bounds the number of records sealed with one key of TLS 1.3: RFC 8446, section 5.5.
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
	s, ok := c.engine.sealer.(*ownSealer)
	return ok && s.kernel != nil
}

// KernelTLS returns the versions of TLS that this host's kernel can seal for [WithKernelTLS]: none,
// only TLS 1.2, or TLS 1.2 and 1.3. It asks the kernel once, with connections of the process to
// itself.
func KernelTLS() []uint16 { return ktls.Versions() }

// toKernel gives the sending side to the kernel, if ossl has it and the kernel takes it. Otherwise
// everything stays as it is. The writer is locked.
func (c *Conn) toKernel() error {
	c.engine.mu.Lock()
	s, ok := c.engine.sealer.(*ownSealer)
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
func (s *ownSealer) newKernelSender(c *Conn) *kernelSender {
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
		if err := ktls.Send(k.raw, m.contentType, m.text); err != nil {
			return &net.OpError{Op: "write", Net: k.tcp.LocalAddr().Network(), Source: k.tcp.LocalAddr(),
				Addr: k.tcp.RemoteAddr(), Err: err}
		}
		if m.update {
			if err := k.updateKey(c); err != nil {
				return err
			}
		}
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

// write has the kernel seal and send a chunk of b.
func (k *kernelSender) write(c *Conn, b []byte) (int, error) {
	chunk, err := k.prepare(c, int64(len(b)))
	if err != nil {
		return 0, err
	}
	return k.tcp.Write(b[:chunk])
}

func (k *kernelSender) flush(c *Conn, discard bool) error {
	c.engine.mu.Lock()
	messages := k.takeMessages(&c.engine.queue)
	c.engine.unlock()
	if discard {
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
		k.sealer.closeNotify(c, free, nil)                           // and nothing is queued from now on
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

// SendFile writes the next n bytes of f, or the whole rest of f if n is negative, and advances f's
// offset. It returns the number of bytes written, which is less than n if f ends before. If the
// kernel seals (see [WithKernelTLS]), SendFile sends a regular file with sendfile(2), so that its
// data does not pass through the process. Otherwise SendFile reads and writes the data.
//
// The offset advances by exactly the number of bytes that SendFile returns, even after an error, so
// that another connection can send the rest. From a file that has no offset, such as a pipe,
// SendFile may have read up to 48 KB more.
//
// If the file is truncated during the call, the kernel may keep the data that it has read until the
// next Write or Close.
func (c *Conn) SendFile(f *os.File, n int64) (sent int64, err error) {
	if n < 0 {
		n = math.MaxInt64
	}
	if sent, err = c.sendFile(f, n); err != nil || sent == n {
		return sent, err
	}
	buf := netio.Bulk.Get()
	used := int64(0)
	defer func() {
		clear(buf.Mem[:used])
		buf.Put()
	}()
	for sent < n {
		part := min(n-sent, maxChunk)
		used = max(used, part)
		got, readErr := f.Read(buf.Mem[:part])
		written, err := c.Write(buf.Mem[:got])
		sent += int64(written)
		switch {
		case err != nil:
			_, _ = f.Seek(int64(written-got), io.SeekCurrent)
			return sent, err
		case readErr == io.EOF:
			return sent, nil
		case readErr != nil:
			return sent, readErr
		}
	}
	return sent, nil
}

// sendFile has the kernel send up to n bytes of the rest of f, as far as it can, and returns the
// number of bytes sent.
func (c *Conn) sendFile(f *os.File, n int64) (sent int64, err error) {
	if err := c.Handshake(); err != nil { // which may choose another Context
		return 0, err
	}
	if !c.context().kernelTLS {
		return 0, nil
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0, nil // the read that follows has the error
	}
	at, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, nil
	}
	if n = min(n, info.Size()-at); n <= 0 {
		return 0, nil
	}
	if !c.calls.beginWrite() {
		return 0, net.ErrClosed
	}
	c.out.mu.Lock()
	defer c.unlockWrite()
	if err := c.writable(); err != nil {
		return 0, err
	}
	k, ok := c.out.sender.(*kernelSender)
	if !ok {
		return 0, nil
	}
	for sent < n {
		chunk, err := k.prepare(c, n-sent)
		var part int64
		if err == nil {
			// No more than f has: asked for more, the kernel would hold back the last record.
			part, err = k.tcp.ReadFrom(&io.LimitedReader{R: f, N: chunk})
			sent += part
			if part == 0 && errors.Is(err, syscall.EBADF) {
				return sent, nil // f isn't open for reading: the read that follows returns the error
			}
		}
		if err != nil { // an error of the file too: the kernel may hold a part of a record
			_, _ = f.Seek(at+sent, io.SeekStart) // package net may have read more than it sent, for example before a deadline
			c.out.err = permanent(err)
			return sent, c.out.err
		}
		if part < chunk { // cut short
			break
		}
	}
	return sent, nil
}
