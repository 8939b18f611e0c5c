package ossl

import (
	"context"
	"crypto/x509"
	"errors"
	"io/fs"
	"log"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ossl-go/ossl/internal/crl"
)

// A Watch calls a function when the contents of files have changed: of certificates and keys, roots,
// revocation lists, ticket keys. The function loads them. If it returns nil, their contents are in use.
//
// Files may be replaced in any way: by renaming, through symbolic links to them or to their folders
// (Kubernetes, certbot), or by writing to them. A Watch compares metadata, which it looks at again and
// again, and contents if the metadata differ: notifications by the kernel miss changes on network file
// systems and behind links. If the function fails for files that were written just before, for example
// because only one file of a pair is new, it's called again before the error is reported.
//
// The function isn't called while a file can't be read for another reason than that it doesn't exist: a
// lack of descriptors, or a lost permission, is no change.
//
// A Watch has no goroutine before Start. Programs that need none call Due and Check instead.
type Watch struct {
	// OnEvent is called if changed contents came into use, and if they were refused, once for each
	// reason. It isn't called for what Start and Reload return. If it is nil, the log package's standard
	// logger prints the refusals. Set it before the Watch is used.
	OnEvent func(WatchEvent)

	load   func() error
	paths  []string
	clock  func() time.Time // time.Now, except in tests
	began  time.Time
	next   atomic.Int64 // when Due is true next, in nanoseconds since began by the monotonic clock
	closed atomic.Bool
	stop   atomic.Pointer[context.CancelFunc] // of Start

	mu      sync.Mutex  // held while files are read
	seen    []fileState // guarded by mu; the files at the last check
	settled bool        // guarded by mu; a later change will differ from seen
	used    contents    // guarded by mu; the contents that the function loaded last
	refused contents    // guarded by mu; those that it has refused since
	err     error       // guarded by mu; why the contents in the files aren't in use

	reported    string   // guarded by mu; the last reported error, or ""
	reportedFor contents // guarded by mu; refused, at that time

	statsMu sync.Mutex
	stats   WatchStats // guarded by statsMu
}

// A WatchEvent reports that changed files were loaded, or refused.
type WatchEvent struct {
	Paths []string
	Err   error // the reason for which the contents in use stay in use; nil if the new ones are
}

// WatchStats count the changes of files, and tell the state of a [Watch].
type WatchStats struct {
	Used    uint64    // contents that came into use, the first ones included
	Refused uint64    // contents that were refused; those refused for the same reason again count once
	Since   time.Time // when the contents in use came into use
	Checked time.Time // when the last check ended; it is old if the file system hangs
	Err     error     // why the contents in the files aren't in use; nil if they are
}

// NewWatch returns a Watch of files. In a folder it watches all files, but not other folders in it,
// nor names that begin with a dot. load is called by one goroutine at a time. If it returns an error,
// the contents that were in use must stay in use. It is called again when the files have changed. It is
// also called again without a change after an error that may pass: a file can't be read, memory is
// short, or the contents are not valid yet.
func NewWatch(load func() error, paths ...string) *Watch {
	return &Watch{load: load, paths: paths, clock: time.Now, began: time.Now()}
}

// Start loads the files. If that fails, or if ctx is done before, it closes the Watch and returns an
// error. Else it starts a goroutine that checks them every interval, or every second if that is 0,
// until ctx is done or Close is called.
func (w *Watch) Start(ctx context.Context, interval time.Duration) error {
	if interval < 0 {
		return &ConfigError{Field: "Watch.Start", Reason: "a negative interval"}
	}
	if interval == 0 {
		interval = defaultInterval
	}
	ctx, cancel := context.WithCancel(ctx)
	if !w.stop.CompareAndSwap(nil, &cancel) {
		cancel()
		return &ConfigError{Field: "Watch.Start", Reason: "it was called before"}
	}
	loaded := make(chan error, 1)
	go func() { loaded <- w.Reload() }()
	select {
	case err := <-loaded:
		if err != nil {
			w.Close()
			return err
		}
	case <-ctx.Done():
		w.Close()
		return context.Cause(ctx)
	}
	go w.run(ctx, interval)
	return nil
}

func (w *Watch) run(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if ctx.Err() == nil {
				w.look()
			}
		case <-ctx.Done():
			return
		}
	}
}

// Close ends the Watch: the function isn't called any more. Close doesn't wait for a call under way, nor
// for the file system.
func (w *Watch) Close() {
	w.closed.Store(true)
	if stop := w.stop.Load(); stop != nil {
		(*stop)()
	}
}

// defaultInterval is the time between two checks.
const defaultInterval = time.Second

// Due reports whether interval has passed since it was true the last time. It is true for one caller
// only each time. 0 means one second, and a negative interval never passes.
func (w *Watch) Due(interval time.Duration) bool {
	if interval < 0 {
		return false
	}
	if interval == 0 {
		interval = defaultInterval
	}
	now, next := w.clock().Sub(w.began), w.next.Load()
	return int64(now) >= next && w.next.CompareAndSwap(next, int64(min(now, math.MaxInt64-interval)+interval))
}

// Check checks the files, and loads them if their contents have changed. It waits for that until ctx is
// done. If another check is under way, it returns at once.
func (w *Watch) Check(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.look()
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// Reload loads the files now, however long the file system takes, unless their contents are in use. It
// returns net.ErrClosed after Close.
func (w *Watch) Reload() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed.Load() {
		return net.ErrClosed
	}
	_, err := w.read(statFiles(w.paths), true)
	return err
}

// Stats returns what the Watch has seen.
func (w *Watch) Stats() WatchStats {
	w.statsMu.Lock()
	defer w.statsMu.Unlock()
	return w.stats
}

// look checks the files, and reports the result. It doesn't wait for another look, so that a file
// system that hangs holds up one goroutine only.
func (w *Watch) look() {
	if !w.mu.TryLock() {
		return
	}
	state := statFiles(w.paths)
	var changed bool
	var err error
	if !w.settled || !sameFiles(state, w.seen) || mayPass(w.err) {
		changed, err = w.read(state, false)
	} else {
		w.note(func(*WatchStats) {})
	}
	w.mu.Unlock()
	if changed {
		w.report(nil)
	}
	if err != nil {
		w.report(err)
	}
}

func (w *Watch) report(err error) {
	switch {
	case w.closed.Load():
	case w.OnEvent != nil:
		w.OnEvent(WatchEvent{w.paths, err})
	case err != nil:
		log.Print(err)
	}
}

// note changes the statistics after a check.
func (w *Watch) note(change func(*WatchStats)) {
	w.statsMu.Lock()
	defer w.statsMu.Unlock()
	w.stats.Checked = w.clock()
	w.stats.Err = w.err
	change(&w.stats)
}

// maxReads bounds the attempts to load files that change at that moment.
const maxReads = 3

// read loads the files unless their contents are in use, and reports whether they changed. demanded
// means that the caller wants to know all errors; else read returns those to report. state is that of
// the files. w.mu is held.
func (w *Watch) read(state []fileState, demanded bool) (changed bool, err error) {
	same := sameFiles(state, w.seen)
	for range maxReads {
		w.seen, w.settled = state, settled(state)
		var loaded bool
		loaded, err = w.take(demanded)
		changed = changed || loaded
		if state = statFiles(w.paths); w.closed.Load() || sameFiles(state, w.seen) {
			break
		}
		// The files were replaced during this time: some of those that were read are old, and some new.
		same, w.used.complete = false, w.used.complete && !loaded
	}
	if !demanded && same && w.err == nil && mayPass(err) {
		// They can't be read any more, which is no change: the process has another user now, for example.
		w.settled, err = false, nil
	}
	w.err = err
	again := err != nil && err.Error() == w.reported
	// A file that was written just now may be incomplete, and one that is missing may come: the next check decides.
	report := demanded || err != nil && (same || w.settled && found(w.seen)) && !(again && w.refused == w.reportedFor)
	switch {
	case err == nil:
		w.reported = ""
	case report:
		w.reported, w.reportedFor = err.Error(), w.refused
	default:
		err = nil
	}
	w.note(func(s *WatchStats) {
		if err != nil && !again {
			s.Refused++
		}
	})
	return changed, err
}

// take calls the function unless the contents are in use, or refused and demanded is false. w.mu is held.
func (w *Watch) take(demanded bool) (changed bool, err error) {
	now, err := readFiles(w.seen)
	switch {
	case w.closed.Load():
		return false, net.ErrClosed
	case err != nil:
		return false, err
	case now.complete && now == w.used:
		return false, nil
	case now.complete && now == w.refused && !demanded && w.err != nil && !mayPass(w.err):
		return false, w.err
	}
	if err := w.load(); err != nil {
		w.refused = now
		return false, err
	}
	w.used, w.refused, w.err = now, contents{}, nil
	w.note(func(s *WatchStats) {
		s.Used++
		s.Since = s.Checked
	})
	return true, nil
}

// mayPass reports whether the reason of err may pass without a change of the files: one can't be read, no
// descriptor is free, memory is short, or it's too early or too late for the contents.
func mayPass(err error) bool {
	var invalid x509.CertificateInvalidError
	return errors.As(err, new(*fs.PathError)) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) ||
		errors.Is(err, syscall.ENOMEM) || errors.Is(err, crl.ErrEarly) ||
		errors.As(err, &invalid) && invalid.Reason == x509.Expired
}
