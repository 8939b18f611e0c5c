package ossl

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"reflect"
	"syscall"

	"github.com/ossl-go/ossl/internal/netio"
	"github.com/ossl-go/ossl/internal/record"
)

// ReadFrom implements [io.ReaderFrom], so that [io.Copy] and net/http use it: it reads r to the end
// and writes the data. If the kernel seals (see [WithKernelTLS]), and r is an [*os.File] of a
// regular file, or an [io.LimitedReader] of one, ReadFrom sends the file with sendfile(2), as
// [Conn.SendFile] does.
//
// Like a copy to a [tls.Conn], ReadFrom makes a series of writes, the largest of which are 256 KB.
// Other Writes, CloseWrite and Close get their turn between two of them, and while r has no data.
// The data of each Read of r is written at once, so a small Read makes a small record.
func (c *Conn) ReadFrom(r io.Reader) (n int64, err error) {
	limited, ok := r.(*io.LimitedReader)
	if !ok {
		if f := regularFile(r); f != nil {
			return c.sendRest(f, math.MaxInt64)
		}
	} else if f := regularFile(limited.R); f != nil && limited.N > 0 {
		n, err = c.sendRest(f, limited.N)
		limited.N -= n
		return n, err
	}
	n, _, err = c.copyFrom(r, math.MaxInt64, false)
	return n, err
}

// SendFile writes the next n bytes of f, or the whole rest of f if n is negative, and advances f's
// offset. It returns the number of bytes written, which is less than n if the rest of f is shorter.
// If the kernel seals (see [WithKernelTLS]), SendFile sends a regular file with sendfile(2), so
// that its data does not pass through the process. Otherwise SendFile reads and writes the data.
//
// The offset advances by exactly the number of bytes that SendFile returns, even after an error, so
// that another connection can send the rest. From a file that has no offset, such as a pipe,
// SendFile may have read up to 48 KB more. Other Writes may come between the parts, as with
// [Conn.ReadFrom].
func (c *Conn) SendFile(f *os.File, n int64) (int64, error) {
	if err := c.Handshake(); err != nil {
		return 0, err
	}
	if n < 0 {
		n = math.MaxInt64
	}
	return c.sendRest(f, n)
}

// A file is a file of package os.
type file interface {
	io.ReadSeeker
	syscall.Conn // package net's condition for sendfile(2)
	Stat() (fs.FileInfo, error)
}

// regularFile returns r if it is a file of package os, an *os.File or the type with which the
// WriteTo of an *os.File calls io.Copy. Other types that embed an *os.File may have a Read of their
// own, which package net would not call.
func regularFile(r io.Reader) file {
	if f, ok := r.(*os.File); ok {
		return f
	}
	if r == nil || reflect.TypeOf(r).PkgPath() != "os" {
		return nil
	}
	f, _ := r.(file)
	return f
}

// sendRest sends the next n bytes of f, or all if there are less.
func (c *Conn) sendRest(f file, n int64) (sent int64, err error) {
	if !c.complete.Load() { // the first Write runs the handshake, as in a copy to crypto/tls
		first := min(n, record.MaxPlaintext)
		if sent, err = c.copyFile(f, first); err != nil || sent < first {
			return sent, err
		}
	}
	part, err := c.sendFile(f, n-sent)
	sent += part
	if err != nil || sent == n {
		return sent, err
	}
	part, err = c.copyFile(f, n-sent)
	return sent + part, err
}

// copyFile is sendRest without kernel TLS.
func (c *Conn) copyFile(f file, n int64) (int64, error) {
	copied, unsent, err := c.copyFrom(f, n, n > record.MaxPlaintext)
	if unsent > 0 {
		_, _ = f.Seek(-int64(unsent), io.SeekCurrent)
	}
	return copied, err
}

// sendFile makes the kernel send up to n bytes of the rest of f, as far as it can, and returns the
// number of bytes sent. The handshake is done.
func (c *Conn) sendFile(f file, n int64) (sent int64, err error) {
	if !c.context().kernelTLS {
		return 0, nil
	}
	at, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, nil // the read that follows has the error
	}
	limited := io.LimitedReader{R: f}
	for sent < n {
		info, err := f.Stat()
		if err != nil || !info.Mode().IsRegular() {
			break
		}
		// No more than f has: asked for more, the kernel may hold the end back.
		part := min(n-sent, info.Size()-at-sent)
		if part <= 0 {
			break
		}
		part, err = c.sendPart(&limited, part)
		sent += part
		if err != nil {
			_, _ = f.Seek(at+sent, io.SeekStart) // package net may have read more than it sent, for example before a deadline
			return sent, err
		}
		if part == 0 {
			break
		}
	}
	return sent, nil
}

// sendPart makes the kernel send n bytes of file.R, or the first of them. It is a Write to callers
// of other methods. It returns 0 and no error if the kernel doesn't seal, or can't read the file.
func (c *Conn) sendPart(file *io.LimitedReader, n int64) (int64, error) {
	if !c.calls.beginWrite() {
		return 0, c.calls.closedError()
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
	sent, err := k.sendFile(c, file, n)
	c.watch.didWrite(sent)
	if err != nil && sent == 0 && ofFile(err) {
		return 0, nil
	}
	if err != nil {
		c.out.err = permanent(err)
		return sent, c.out.err
	}
	return sent, nil
}

// ofFile reports whether err, which sendfile(2) or a Read in its place returned, is certain to
// concern the file: it isn't open, or not for reading.
func ofFile(err error) bool {
	var path *fs.PathError
	return errors.Is(err, syscall.EBADF) || errors.As(err, &path)
}

// copyFrom reads up to n bytes from r and writes them. It returns the number of bytes written and,
// after a failed Write, the number of bytes that were read and not written. No lock is held while
// it reads. If large is set, the first Read gets a large buffer.
func (c *Conn) copyFrom(r io.Reader, n int64, large bool) (copied int64, unsent int, err error) {
	buf := copyBuffer{large: large}
	defer buf.free()
	for copied < n {
		b := buf.next()
		if int64(len(b)) > n-copied {
			b = b[:n-copied]
		}
		got, readErr := r.Read(b)
		buf.large = got >= record.MaxPlaintext
		if got > 0 {
			written, err := c.Write(b[:got])
			copied += int64(written)
			if err != nil {
				return copied, got - written, err
			}
		}
		switch {
		case readErr == io.EOF:
			return copied, 0, nil
		case readErr != nil:
			return copied, 0, readErr
		}
	}
	return copied, 0, nil
}

// A copyBuffer is a buffer for plaintext: for the data of several records while Reads return that
// much, and otherwise for one, because a Read may wait for long.
type copyBuffer struct {
	large bool // for the next Read

	buf  *netio.Buffer // nil for none
	text []byte        // in buf
}

// next returns the buffer for the next Read.
func (b *copyBuffer) next() []byte {
	pool, size := netio.Small, record.MaxPlaintext
	if b.large {
		pool, size = netio.Bulk, maxChunk
	}
	if len(b.text) != size {
		b.free()
		b.buf = pool.Get()
		b.text = b.buf.Mem[:size:size]
	}
	return b.text
}

// free returns the buffer to its pool. A Read may have used all of it.
func (b *copyBuffer) free() {
	if b.buf != nil {
		clear(b.text)
		b.buf.Put()
		b.buf, b.text = nil, nil
	}
}
