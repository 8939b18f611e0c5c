package httptls

import "time"

// Routes returns the number of routes in t, besides the direct one.
func Routes(t *Transport) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.routes)
}

// SetClock replaces r's clock, time.Now.
func SetClock(r *Reloader, clock func() time.Time) { r.watch.clock = clock }

// SetPatience sets how long handshakes wait for the files.
func SetPatience(r *Reloader, d time.Duration) { r.watch.patience = d }

// SetCAPatience sets how long handshakes wait for the files.
func SetCAPatience(r *ClientCAReloader, d time.Duration) { r.watch.patience = d }

// WatchFile returns a function that looks at a file, reads it with take if it may have changed, and
// returns the counts and the error to report.
func WatchFile(name string, take func() error) (look func() (ReloadStats, error)) {
	w := newFileWatch(take, nil, name)
	return func() (ReloadStats, error) {
		err := w.look()
		return w.counts(), err
	}
}

// OnceMade is onceMade.
var OnceMade = onceMade
