package ossl

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/record"
)

// With kernel TLS, what seals is the kernel: after the connection was taken over from libssl, its sending key is given to the
// socket (linux/tls.h), and from then on what is written to that are the application data themselves. It comes at the first
// Write, between two records, and is not taken back. The receiving side stays here.
//
// Records that are no data, alerts and KeyUpdates, are sent by sendmsg(2) with their type beside them. So what a Read has to send
// waits as a message, and not sealed, for whoever holds writeMu next; a KeyUpdate is followed by the key it announces. Kernels
// before 6.14 can't change the key of a socket, which any peer can ask for in TLS 1.3: with them only TLS 1.2 is for the kernel.

// A kernelSender sends application data that the kernel seals. It is made with the writer and the
// engine locked.
type kernelSender struct {
	sealer *ownSealer
	tcp    *net.TCPConn
	raw    syscall.RawConn

	budget   int64           // guarded by the writer; how many records may still be sealed with the key
	messages []kernelMessage // guarded by the engine; in their order
}

// A kernelMessage is a record that is no application data.
type kernelMessage struct {
	contentType uint8
	text        []byte
	update      bool // what follows it is under the next key
}

// recordsPerKey bounds what is sealed with one key of TLS 1.3, RFC 8446, section 5.5. It is counted from above: the kernel may
// end a record before it is full.
const recordsPerKey = libssl.RecordsPerKey

const (
	// kernelChunk is how much is given to the kernel at once, before what Reads have to send gets its turn.
	kernelChunk = 256 << 10
	// smallestRecord is what a record holds at least of a larger Write, as far as the limit of a key is concerned: a page.
	smallestRecord = 4096
)

// KernelTLS reports whether the kernel seals the records that the connection sends: see
// [WithKernelTLS]. It begins to do so with the first Write.
func (c *Conn) KernelTLS() bool {
	c.engine.mu.Lock()
	defer c.engine.unlock()
	s, ok := c.engine.sealer.(*ownSealer)
	return ok && s.kernel != nil
}

// KernelTLS returns the versions of TLS that this host's kernel seals for [WithKernelTLS]: none, TLS 1.2, or that and TLS 1.3.
// The kernel is asked once, with connections of the process to itself.
func KernelTLS() []uint16 { return slices.Clone(askKernel()) }

var askKernel = sync.OnceValue(func() (versions []uint16) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		if kernelSeals(version) {
			versions = append(versions, version)
		}
	}
	return versions
})

// kernelSeals tries a key of a version on a socket.
func kernelSeals(version uint16) bool {
	if runtime.GOOS != "linux" {
		return false
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		l, err = net.Listen("tcp", "[::1]:0")
	}
	if err != nil {
		return false
	}
	defer l.Close()
	conn, err := net.DialTimeout("tcp", l.Addr().String(), time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil || !beginKernelTLS(raw, version) {
		return false
	}
	key := libssl.KernelKey{Suite: tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, KeyLen: 16}
	if version == tls.VersionTLS13 {
		key.Suite, key.TLS13 = tls.TLS_AES_128_GCM_SHA256, 1
	}
	took, err := setKernelKey(raw, &key)
	return took && err == nil
}

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
			return nil // Write says why
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
		if err := c.send(queued); err != nil { // sealed before: sent before
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
	if err != nil || !beginKernelTLS(raw, c.state.Version) {
		return nil
	}
	return &kernelSender{sealer: s, tcp: tcp, raw: raw}
}

// giveKey gives the sending key to the kernel, and reports whether the kernel took it. After an error
// nothing more can be sealed. The writer and the engine are locked.
func (k *kernelSender) giveKey() (took bool, err error) {
	key := new(libssl.KernelKey)
	defer func() { *key = libssl.KernelKey{} }()
	if !k.sealer.side.KernelKey(key) {
		return false, nil
	}
	took, err = setKernelKey(k.raw, key)
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
		if err := sendKernelRecord(k.raw, m.contentType, m.text); err != nil {
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

// SendFile writes the next n bytes of f, or all that are left of it if n is negative, and moves f's offset on. It returns how
// much that was, which is less than n where f ends before. Where the kernel seals (see [WithKernelTLS]) a regular file is sent
// by sendfile(2), and doesn't pass through the process; anything else, or by anything else, is read and written.
//
// After an error, too, f's offset has moved by exactly the number of bytes that SendFile returns, so that another connection can
// send the rest. SendFile may have read up to 48 KB more from a file that has no offset, such as a pipe.
//
// If the file is cut short meanwhile, the kernel may keep what it has read of it until the next Write or Close.
func (c *Conn) SendFile(f *os.File, n int64) (sent int64, err error) {
	if n < 0 {
		n = math.MaxInt64
	}
	if sent, err = c.sendFile(f, n); err != nil || sent == n {
		return sent, err
	}
	buf := getBuffer(writeBuffers)
	used := int64(0)
	defer func() {
		clear(buf.mem[:used])
		buf.put()
	}()
	for sent < n {
		part := min(n-sent, maxChunk)
		used = max(used, part)
		got, readErr := f.Read(buf.mem[:part])
		written, err := c.Write(buf.mem[:got])
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

// sendFile has the kernel send up to n bytes of what is left of f, as far as it can, and returns how much that was.
func (c *Conn) sendFile(f *os.File, n int64) (sent int64, err error) {
	if err := c.Handshake(); err != nil { // which may choose another Context
		return 0, err
	}
	if !c.ctx.kernelTLS {
		return 0, nil
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0, nil // reading says why
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
			// No more than there is: asked for more, the kernel would wait for it with the last record.
			part, err = k.tcp.ReadFrom(&io.LimitedReader{R: f, N: chunk})
			sent += part
			if part == 0 && errors.Is(err, syscall.EBADF) {
				return sent, nil // f is not for reading, which reading it says
			}
		}
		if err != nil { // also of the file: some of a record may be with the kernel, or gone
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
