package terminator

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// chunk is the number of bytes of a file for which a client has the idle timeout: those that one
// sendfile(2) of package ossl sends.
const chunk = 256 << 10

// A progressWriter is a ResponseWriter whose writes have a deadline each. A timeout for the whole
// response, as http.Server has it, would cut off large downloads.
type progressWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	timeout Time
	start   time.Time // of the request
	// http2 means that the stream is reset when a deadline passes, even if nothing is being written:
	// then the deadline must be removed after each write. Every change of it wakes the connection's
	// goroutine.
	http2    bool
	http10   bool
	set      time.Time // when the HTTP/1.1 deadline was set
	head     bool      // nothing but the header is sent
	status   int
	written  int64
	hijacked bool
	upgrade  *upgrade       // the change to another protocol that the backend has agreed to, or nil
	goOn     func(*upgrade) // passes data on after an upgrade
	// duplex means that the response may begin while the request's body is still being read. net/http
	// would take up to 256 KB of the body away from its reader before it sends the header.
	duplex bool
	// continues means that net/http writes 100 (Continue), to an HTTP/1.1 client that waits for it,
	// when the request's body is first read: on the reverse proxy's transport's goroutine. Until that
	// Read has returned, other informational responses would mix with it.
	continues bool
	bodyRead  atomic.Bool // the first Read of the request's body has returned
	// bodyFailed is the error of a Read of the request's body, or nil. The reverse proxy's transport
	// reads on a goroutine of its own.
	bodyFailed atomic.Pointer[error]
	bodyEnded  atomic.Bool // all of the request's body has been read
	http1      *http1Conn  // nil for HTTP/2
	header     *headerEdit
	leaving    func() bool // the connection will be closed, since the generation shuts down; nil for HTTP/2
	early      atomic.Bool // the response has begun before the body of an HTTP/1 request was complete

	ending sync.Mutex // held while a Read of the body sets a deadline
	ended  bool       // the handler has returned; guarded by ending
}

func newProgressWriter(w http.ResponseWriter, r *http.Request, conn *http1Conn, timeout Time) *progressWriter {
	return &progressWriter{ResponseWriter: w, control: http.NewResponseController(w), timeout: timeout, start: time.Now(),
		http1: conn, http2: r.ProtoMajor == 2, http10: !r.ProtoAtLeast(1, 1), head: r.Method == http.MethodHead,
		continues: r.ProtoMajor == 1 && r.Header.Get("Expect") != ""}
}

// Unwrap returns the ResponseWriter within, for http.ResponseController.
func (w *progressWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// unblocked is a number of bytes that net/http's buffers hold at least.
const unblocked = 2 << 10

// extend sets the deadline for a write. For HTTP/1.1 it may be up to a sixteenth of the time earlier.
// extend can't fail: both kinds of net/http's writers have deadlines, and the write notices a
// connection that is closed.
func (w *progressWriter) extend() {
	now := time.Now()
	if timeout := time.Duration(w.timeout); w.http2 || now.Sub(w.set) > timeout/16 {
		w.set = now
		_ = w.control.SetWriteDeadline(now.Add(timeout))
	}
}

// wrote is called after a write.
func (w *progressWriter) wrote(n int64) {
	w.written += n
	if w.http2 {
		_ = w.control.SetWriteDeadline(time.Time{})
	}
}

// end sets the deadline for the rest of the response, which net/http writes after the handler. From
// then on, Reads of the request's body fail.
func (w *progressWriter) end() {
	w.ending.Lock()
	w.ended = true
	w.ending.Unlock()
	if w.early.Load() {
		w.http1.end()
	}
	if !w.hijacked {
		w.extend()
	}
}

// beforeRead sets the deadlines of a Read of the request's body, and reports whether the handler is
// still running. The reverse proxy's transport may read until later. After the handler, net/http's
// HTTP/2 writer panics, and the deadlines of an HTTP/1 connection belong to the next request.
func (w *progressWriter) beforeRead(first bool) bool {
	w.ending.Lock()
	defer w.ending.Unlock()
	if w.ended {
		return false
	}
	if first && !w.http2 {
		// net/http may write 100 (Continue) now. Not extend, since a handler may be writing.
		_ = w.control.SetWriteDeadline(w.timeout.in())
	}
	_ = w.control.SetReadDeadline(w.timeout.in())
	return true
}

// afterRead removes the deadline when all of the body has been read: net/http goes on reading, to
// notice that the client leaves.
func (w *progressWriter) afterRead() {
	w.ending.Lock()
	defer w.ending.Unlock()
	if !w.ended {
		_ = w.control.SetReadDeadline(time.Time{})
	}
}

func (w *progressWriter) WriteHeader(status int) {
	if status < 200 && status != http.StatusSwitchingProtocols { // net/http sends it at once
		if w.http10 {
			return // RFC 9110, section 15.2: the client would take it for the response
		}
		if status == http.StatusContinue { // which net/http itself sends when the transport then reads the body
			return
		}
		if w.continues && !w.bodyRead.Load() {
			return
		}
		for _, name := range []string{"Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "Upgrade"} {
			w.Header().Del(name) // the reverse proxy leaves them, but HTTP/2 clients would reset the stream
		}
		w.extend()
		defer w.wrote(0)
	}
	if w.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.status = status
		if w.http2 {
			w.Header().Del("Connection") // "close" would close the connection of all other requests
		}
		if status >= 200 {
			w.header.apply(w.Header())
		}
		if w.http1 != nil && w.leaving() && status >= 200 {
			w.Header().Set("Connection", "close")
		}
		if w.duplex {
			w.beginBackends(status)
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// beginBackends prepares for a response of a backend.
func (w *progressWriter) beginBackends(status int) {
	_ = w.control.EnableFullDuplex() // can't fail: both kinds of net/http's writers have it
	h := w.Header()
	if w.http1 != nil && !w.bodyEnded.Load() && status >= 200 {
		// net/http would take what follows of the body for requests. The other direction may go on
		// until the response is complete.
		w.early.Store(true)
		h.Set("Connection", "close")
	}
	if _, ok := h["Content-Type"]; !ok {
		h["Content-Type"] = nil // net/http would guess a type, of a page with scripts even
	}
	if status == http.StatusNoContent {
		h.Del("Content-Length") // RFC 9110, section 8.6; HTTP/2 clients would reset the stream
	}
}

// begin writes the header if the handler leaves that to net/http.
func (w *progressWriter) begin() {
	if w.status == 0 && !w.hijacked {
		w.WriteHeader(http.StatusOK)
	}
}

func (w *progressWriter) Write(b []byte) (int, error) {
	w.begin()
	if w.written+int64(len(b)) <= unblocked {
		n, err := w.ResponseWriter.Write(b)
		w.written += int64(n)
		return n, err
	}
	w.extend()
	n, err := w.ResponseWriter.Write(b)
	w.wrote(int64(n))
	return n, err
}

// FlushError sends the data that was written so far.
func (w *progressWriter) FlushError() error {
	w.begin()
	w.extend()
	err := w.control.Flush()
	w.wrote(0)
	return err
}

// Flush is FlushError for callers that don't know it.
func (w *progressWriter) Flush() { _ = w.FlushError() }

// ReadFrom writes the data of r, with a deadline for each part. net/http sends the parts of a file
// with sendfile(2) if the connection can.
func (w *progressWriter) ReadFrom(r io.Reader) (n int64, err error) {
	w.begin()
	inner, ok := w.ResponseWriter.(io.ReaderFrom)
	if !ok || w.head {
		return io.Copy(writerOnly{w}, r)
	}
	left := int64(-1)
	if limited, ok := r.(*io.LimitedReader); ok { // sendfile(2) needs the file itself
		r, left = limited.R, limited.N
		defer func() { limited.N -= n }()
	}
	for left != 0 {
		part := &io.LimitedReader{R: r, N: chunk}
		if left > 0 {
			part.N = min(left, chunk)
		}
		want := part.N
		w.extend()
		m, err := inner.ReadFrom(part)
		w.wrote(m)
		n += m
		if left > 0 {
			left -= m
		}
		if err != nil || m < want {
			return n, err
		}
	}
	return n, nil
}

// A writerOnly hides ReadFrom.
type writerOnly struct{ io.Writer }
