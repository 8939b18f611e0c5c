package httptls

import (
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"log"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ossl-go/ossl"
)

// A Reloader is a certificate from files that may change while a server runs. Set its GetCertificate in a [tls.Config]:
//
//	reloader, err := httptls.NewReloader("cert.pem", "key.pem")
//	...
//	server.TLSConfig = &tls.Config{GetCertificate: reloader.GetCertificate}
//
// A handshake that begins after the files were replaced has the new pair. A pair that can't be used (a key that doesn't match,
// say, as while one file is new and the other still old) is reported, and the one before stays in use; the files are tried
// again when they change again.
//
// The files are looked at when a handshake asks for the certificate, at most once every Interval: there is no goroutine, and
// nothing to close. [Reloader.Reload] does it at once, and tells the result.
type Reloader struct {
	// Interval is the least time between two looks at the files. Zero means one second; below zero the files are read
	// by Reload only. Set it before the Reloader is used, as OnError.
	Interval time.Duration

	// OnError is told why a changed pair isn't used. If it is nil, the log package's standard logger is.
	OnError func(error)

	certFile, keyFile string
	current           atomic.Pointer[tls.Certificate]
	next              atomic.Int64 // when to look next, in nanoseconds since 1970

	mu      sync.Mutex
	seen    pairState         // guarded by mu; the files when they were read last
	loaded  [sha256.Size]byte // guarded by mu; of the contents that current is made of
	settled bool              // guarded by mu; seen tells all later changes
}

// NewReloader loads a certificate, with its chain, and its key from PEM files, as [tls.LoadX509KeyPair] does.
func NewReloader(certFile, keyFile string) (*Reloader, error) {
	r := &Reloader{certFile: certFile, keyFile: keyFile}
	if err := r.Reload(); err != nil {
		return nil, err
	}
	return r, nil
}

// GetCertificate returns the certificate. It is for [tls.Config.GetCertificate].
func (r *Reloader) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if interval := r.interval(); interval >= 0 {
		now := time.Now().UnixNano()
		if next := r.next.Load(); now >= next && r.next.CompareAndSwap(next, now+int64(interval)) {
			if err := r.look(); err != nil {
				r.report(err)
			}
		}
	}
	return r.current.Load(), nil
}

// Reload reads the files now. If it returns an error, the certificate stays what it was.
func (r *Reloader) Reload() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.read(r.stat())
}

func (r *Reloader) interval() time.Duration {
	if r.Interval == 0 {
		return time.Second
	}
	return r.Interval
}

func (r *Reloader) report(err error) {
	if r.OnError != nil {
		r.OnError(err)
	} else {
		log.Print(err)
	}
}

// look reads the files if they have changed. It doesn't wait for another reader: a slow file system delays one handshake, not
// all.
func (r *Reloader) look() error {
	if !r.mu.TryLock() {
		return nil
	}
	defer r.mu.Unlock()
	state := r.stat()
	same := state.same(r.seen)
	if same && r.settled {
		return nil
	}
	if err := r.read(state); err != nil && !same { // else it has been reported
		return err
	}
	return nil
}

// settleTime is how old a file must be for its time to tell a later change: file systems' clocks are coarse.
const settleTime = 2 * time.Second

// read reads the files, whose state was looked at before, and uses them if they are good and new. r.mu is held.
func (r *Reloader) read(state pairState) error {
	r.seen = state
	r.settled = state.olderThan(settleTime)
	cert, err := os.ReadFile(r.certFile)
	var key []byte
	if err == nil {
		key, err = os.ReadFile(r.keyFile)
	}
	sum := sha256.Sum256(slices.Concat(cert, []byte{0}, key))
	if err == nil && sum == r.loaded {
		return nil
	}
	var pair tls.Certificate
	if err == nil {
		pair, err = tls.X509KeyPair(cert, key)
	}
	if err == nil { // OpenSSL may want more of it: a key that is strong enough
		_, err = ossl.NewContext(&tls.Config{Certificates: []tls.Certificate{pair}})
	}
	if err != nil {
		return fmt.Errorf("httptls: certificate of %s and %s: %w", r.certFile, r.keyFile, err)
	}
	r.loaded = sum
	r.current.Store(&pair)
	return nil
}

// A pairState is what the file system tells of the two files; nil for a file that is not there.
type pairState [2]os.FileInfo

func (r *Reloader) stat() (s pairState) {
	for i, name := range []string{r.certFile, r.keyFile} {
		if info, err := os.Stat(name); err == nil {
			s[i] = info
		}
	}
	return s
}

func (s pairState) same(t pairState) bool {
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

func (s pairState) olderThan(d time.Duration) bool {
	for _, info := range s {
		if info != nil && time.Since(info.ModTime()) < d {
			return false
		}
	}
	return true
}
