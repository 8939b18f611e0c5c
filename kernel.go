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

// kernelSide is the sending side of a connection whose records the kernel seals. It is made with writeMu and mu held.
type kernelSide struct {
	tcp *net.TCPConn
	raw syscall.RawConn

	budget   int64           // guarded by writeMu; how many records may still be sealed with the key
	messages []kernelMessage // guarded by mu; in their order
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

// KernelTLS reports whether the kernel seals what the connection sends: see [WithKernelTLS]. That begins with the first Write.
func (c *Conn) KernelTLS() bool {
	c.engine.mu.Lock()
	defer c.engine.unlock()
	return c.kernel != nil
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

// toKernel gives the sending side to the kernel, if there is one that takes it. Otherwise everything stays as it is. writeMu is
// held.
func (c *Conn) toKernel() error {
	tcp, ok := c.conn.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil || !beginKernelTLS(raw, c.state.Version) {
		return nil
	}
	for {
		c.engine.mu.Lock()
		if c.engine.ssl == nil || c.sealErr != nil { // Write says why
			c.engine.unlock()
			return nil
		}
		queued := c.queue.take()
		if len(queued) == 0 {
			k := &kernelSide{tcp: tcp, raw: raw}
			took, err := c.giveKey(k)
			if took {
				c.kernel = k
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

// giveKey gives the sending key to the kernel, and reports whether that took it. With an error nothing more can be sealed.
// writeMu and mu are held.
func (c *Conn) giveKey(k *kernelSide) (took bool, err error) {
	key := new(libssl.KernelKey)
	defer func() { *key = libssl.KernelKey{} }()
	if !c.engine.ssl.KernelKey(key) {
		return false, nil
	}
	took, err = setKernelKey(k.raw, key)
	if err != nil {
		c.sealErr = err
	}
	if took || err != nil {
		c.engine.ssl.KernelSeals()
		k.budget = recordsPerKey - int64(binary.BigEndian.Uint64(key.Seq[:]))
	}
	return took, err
}

// takeMessages empties the queue. mu is held.
func (k *kernelSide) takeMessages(q *outQueue) []kernelMessage {
	messages := k.messages
	k.messages, q.answered = nil, false
	q.filled.Store(false)
	return messages
}

// push appends a message to the queue, where there are never more than an answer to KeyUpdates and an alert. mu is held.
func (k *kernelSide) push(q *outQueue, m kernelMessage) {
	k.messages = append(k.messages, m)
	q.filled.Store(true)
}

// sendMessages sends records that are no application data. writeMu is held.
func (c *Conn) sendMessages(messages []kernelMessage) error {
	for _, m := range messages {
		if err := sendKernelRecord(c.kernel.raw, m.contentType, m.text); err != nil {
			return &net.OpError{Op: "write", Net: c.kernel.tcp.LocalAddr().Network(), Source: c.kernel.tcp.LocalAddr(),
				Addr: c.kernel.tcp.RemoteAddr(), Err: err}
		}
		if m.update {
			if err := c.updateKernelKey(); err != nil {
				return err
			}
		}
	}
	return nil
}

// updateKernelKey goes on to the next key, after a KeyUpdate. writeMu is held.
func (c *Conn) updateKernelKey() error {
	_, err := c.engine.lock()
	if err != nil {
		return err
	}
	defer c.engine.unlock()
	if c.engine.ssl.UpdateWrite() {
		if took, err := c.giveKey(c.kernel); took || err != nil {
			return err
		}
	}
	c.sealErr = localError(alertInternalError, nil) // the peer waits for the next key
	return c.sealErr
}

// prepareKernel sends what comes before n bytes of application data, and returns how many of them may follow. writeMu is held.
func (c *Conn) prepareKernel(n int64) (int64, error) {
	k := c.kernel
	n = min(n, kernelChunk)
	_, err := c.engine.lock()
	if err != nil {
		return 0, err
	}
	messages, failed := k.takeMessages(&c.queue), c.sealErr
	c.engine.unlock()
	if err := c.sendMessages(messages); err != nil {
		return 0, err
	}
	if failed != nil {
		return 0, failed
	}
	records := n/smallestRecord + 1
	if k.budget < records && c.state.Version == tls.VersionTLS13 {
		update := []kernelMessage{{record.Handshake, keyUpdateMessage, true}}
		if err := c.sendMessages(update); err != nil {
			return 0, err
		}
	}
	k.budget -= records
	return n, nil
}

// writeKernel has the kernel seal and send b. writeMu is held.
func (c *Conn) writeKernel(b []byte) (n int, err error) {
	for n < len(b) {
		chunk, err := c.prepareKernel(int64(len(b) - n))
		if err == nil {
			var written int
			written, err = c.kernel.tcp.Write(b[n : n+int(chunk)])
			n += written
		}
		if err != nil {
			c.writeErr = permanent(err)
			return n, c.writeErr
		}
	}
	return n, nil
}

// closeKernel sends close_notify, and what comes before it; free frees what it can. writeMu is held.
func (c *Conn) closeKernel(free bool) error {
	_ = c.conn.SetWriteDeadline(time.Now().Add(closeNotifyTimeout))
	for {
		_, err := c.engine.lock()
		if err != nil {
			return err
		}
		messages := c.kernel.takeMessages(&c.queue)
		if len(messages) > 0 && c.closeNotifyErr == nil {
			c.engine.unlock()
			c.closeNotifyErr = c.sendMessages(messages)
			continue
		}
		notify := c.sealErr == nil && c.closeNotifyErr == nil // an alert would be the last
		c.sealCloseNotify(free, nil)                          // and nothing is queued from now on
		c.engine.unlock()
		c.closeNotifySent = true
		if notify {
			c.closeNotifyErr = c.sendMessages([]kernelMessage{{record.Alert, []byte{alertLevelWarning, alertCloseNotify}, false}})
		}
		_ = c.conn.SetWriteDeadline(time.Now()) // any later write fails
		return c.closeNotifyErr
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
	if !c.beginWrite() {
		return 0, net.ErrClosed
	}
	c.writeMu.Lock()
	defer c.unlockWrite()
	if err := c.writable(); err != nil || c.kernel == nil {
		return 0, err
	}
	for sent < n {
		chunk, err := c.prepareKernel(n - sent)
		var part int64
		if err == nil {
			// No more than there is: asked for more, the kernel would wait for it with the last record.
			part, err = c.kernel.tcp.ReadFrom(&io.LimitedReader{R: f, N: chunk})
			sent += part
			if part == 0 && errors.Is(err, syscall.EBADF) {
				return sent, nil // f is not for reading, which reading it says
			}
		}
		if err != nil { // also of the file: some of a record may be with the kernel, or gone
			_, _ = f.Seek(at+sent, io.SeekStart) // package net may have read more than it sent, for example before a deadline
			c.writeErr = permanent(err)
			return sent, c.writeErr
		}
		if part < chunk { // cut short
			break
		}
	}
	return sent, nil
}
