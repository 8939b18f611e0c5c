package httptls

import (
	"crypto/tls"
	"errors"
	"io/fs"
	"log"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A fileWatch reads files again when they have changed. Nothing runs in the background: it looks at
// the files when a handshake asks.
type fileWatch struct {
	files    []string
	clock    func() time.Time // time.Now, except in tests
	patience time.Duration    // lookPatience, except in tests
	started  time.Time
	next     atomic.Int64 // when to look next, in nanoseconds since started by the monotonic clock

	// take reads the files, and uses the contents if they are good and new. mu is held.
	take func() error
	// unchanged is called instead if the files have not changed, unless it is nil. mu is held.
	unchanged func() error

	mu       sync.Mutex
	seen     fileStates // guarded by mu; the files when they were last read
	settled  bool       // guarded by mu; any later change will differ from seen
	reported string     // guarded by mu; the last reported error

	statsMu sync.Mutex
	stats   ReloadStats // guarded by statsMu
}

// ReloadStats count the changes of files that a [Reloader] or [ClientCAReloader] has seen.
type ReloadStats struct {
	Used    uint64    // contents that came into use, the first ones included
	Refused uint64    // contents that can't be used; those that are refused for the same reason again count once
	Last    time.Time // when it began to use the contents in use
}

func (w *fileWatch) counts() ReloadStats {
	w.statsMu.Lock()
	defer w.statsMu.Unlock()
	return w.stats
}

// began counts contents that are used from now on.
func (w *fileWatch) began() {
	w.statsMu.Lock()
	defer w.statsMu.Unlock()
	w.stats.Used++
	w.stats.Last = w.clock()
}

// refused counts contents that can't be used.
func (w *fileWatch) refused() {
	w.statsMu.Lock()
	defer w.statsMu.Unlock()
	w.stats.Refused++
}

func newFileWatch(take, unchanged func() error, files ...string) *fileWatch {
	return &fileWatch{files: files, clock: time.Now, patience: lookPatience, started: time.Now(), take: take, unchanged: unchanged}
}

// due reports whether it is time to check the files: interval has passed since the last check. It
// returns true to one caller only each time.
func (w *fileWatch) due(interval time.Duration) bool {
	if interval < 0 {
		return false
	}
	if interval == 0 {
		interval = time.Second
	}
	now, next := w.clock().Sub(w.started), w.next.Load()
	return int64(now) >= next && w.next.CompareAndSwap(next, int64(min(now, math.MaxInt64-interval)+interval))
}

// lookPatience is how long a handshake waits for the file system.
const lookPatience = time.Second

// lookBriefly checks the files. It waits for the result until the handshake's context is done, at
// most for w.patience.
func (w *fileWatch) lookBriefly(hello *tls.ClientHelloInfo, onError func(error)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := w.look(); err != nil {
			report(err, onError)
		}
	}()
	var ended <-chan struct{}
	if hello != nil && hello.Context() != nil {
		ended = hello.Context().Done()
	}
	timer := time.NewTimer(w.patience)
	defer timer.Stop()
	select {
	case <-done:
	case <-ended:
	case <-timer.C:
	}
}

func report(err error, onError func(error)) {
	if onError != nil {
		onError(err)
	} else {
		log.Print(err)
	}
}

// look reads the files if they have changed, and returns the error to report. It doesn't wait for
// another reader, so that a slow file system delays one handshake only.
func (w *fileWatch) look() error {
	if !w.mu.TryLock() {
		return nil
	}
	defer w.mu.Unlock()
	state := w.stat()
	same := state.same(w.seen)
	if same && w.settled {
		if w.unchanged == nil {
			return nil
		}
		return w.unchanged()
	}
	before := w.reported
	if err := w.read(state, same); err != nil && (!same || w.reported != before) {
		return err
	}
	return nil
}

// reload reads the files, however long the file system takes.
func (w *fileWatch) reload() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.read(w.stat(), false)
}

// settleTime is the age that a file must have for a later change to give it another time: file
// systems' clocks are coarse.
const settleTime = 2 * time.Second

// maxReads bounds the attempts to read files that change at that moment.
const maxReads = 3

// read reads the files. state was read before; same is whether it was the same the last time. w.mu is
// held.
func (w *fileWatch) read(state fileStates, same bool) error {
	var err error
	for range maxReads {
		w.seen = state
		w.settled = state.olderThan(settleTime)
		if err = w.take(); err == nil {
			break
		}
		// If the files were replaced during this time, some of the files that were read are old,
		// and some new.
		if state = w.stat(); state.same(w.seen) {
			break
		}
		same = false
	}
	passing := mayPass(err)
	if passing {
		w.settled = false
	}
	if same && passing {
		return nil // they can't be read any more, which is no change: the process has another user now, for example
	}
	before := w.reported
	w.reported = ""
	if err != nil {
		w.reported = err.Error()
		if w.reported != before {
			w.refused()
		}
	}
	return err
}

// mayPass reports whether the reason of err may pass without a change of the files: one can't be read,
// no descriptor is free, or memory is short.
func mayPass(err error) bool {
	return errors.As(err, new(*fs.PathError)) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) ||
		errors.Is(err, syscall.ENOMEM)
}

// fileStates are the metadata of files; nil means that a file is missing.
type fileStates []os.FileInfo

func (w *fileWatch) stat() fileStates {
	s := make(fileStates, len(w.files))
	for i, name := range w.files {
		if info, err := os.Stat(name); err == nil {
			s[i] = info
		}
	}
	return s
}

func (s fileStates) same(t fileStates) bool {
	if len(s) != len(t) {
		return false
	}
	for i := range s {
		switch {
		case s[i] == nil && t[i] == nil:
		case s[i] == nil || t[i] == nil:
			return false
		case !os.SameFile(s[i], t[i]) || s[i].Size() != t[i].Size() || !s[i].ModTime().Equal(t[i].ModTime()):
			return false
		}
	}
	return true
}

func (s fileStates) olderThan(d time.Duration) bool {
	for _, info := range s {
		if info != nil && time.Since(info.ModTime()) < d {
			return false
		}
	}
	return true
}
