package terminator

import (
	"bytes"
	"context"
	"io"
	"sync"
	"sync/atomic"
)

// maxLog bounds the bytes of the log that wait for its reader.
const maxLog = 256 << 10

// A LogWriter passes lines on to a writer, such as a pipe or a file, and never waits for it: a
// reader of logs that has stopped must not stop the server. If too much is waiting, lines are lost
// and counted.
type LogWriter struct {
	to     io.Writer
	wake   chan struct{} // has an element if there may be lines to write, closed by Close
	done   chan struct{} // closed when the last line is written
	lost   atomic.Uint64 // lines that were not taken, since too much was waiting
	failed atomic.Uint64 // lines that the writer refused

	mu      sync.Mutex
	waiting []byte // guarded by mu; whole lines
	closed  bool   // guarded by mu
}

// NewLogWriter returns a LogWriter that must be closed.
func NewLogWriter(to io.Writer) *LogWriter {
	w := &LogWriter{to: to, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go w.run()
	return w
}

// Write takes lines, or loses them. It returns no error, since loggers ignore errors.
func (w *LogWriter) Write(lines []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || len(w.waiting)+len(lines) > maxLog {
		w.lost.Add(uint64(bytes.Count(lines, []byte("\n"))))
		return len(lines), nil
	}
	w.waiting = append(w.waiting, lines...)
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return len(lines), nil
}

// run writes the lines.
func (w *LogWriter) run() {
	defer close(w.done)
	var spare []byte
	for range w.wake {
		w.mu.Lock()
		lines := w.waiting
		w.waiting = spare[:0]
		w.mu.Unlock()
		if n, err := w.to.Write(lines); err != nil {
			w.failed.Add(uint64(bytes.Count(lines[max(n, 0):], []byte("\n"))))
		}
		spare = lines
	}
}

// Close writes the lines that are waiting, until ctx is done. It reports whether that was in time.
// Lines that come later are lost.
func (w *LogWriter) Close(ctx context.Context) bool {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.wake) // after the element for the last line
	}
	w.mu.Unlock()
	select {
	case <-w.done:
		return true
	case <-ctx.Done():
		return false
	}
}

// Losses returns the number of lines that were lost because too much was waiting, and of those that
// the writer refused.
func (w *LogWriter) Losses() (lost, failed uint64) { return w.lost.Load(), w.failed.Load() }

// CountLog makes the server's metrics count the lines that a LogWriter loses.
func (s *Server) CountLog(w *LogWriter) { s.logWriter.Store(w) }
