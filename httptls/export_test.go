package httptls

import "time"

// Routes returns the number of routes that t keeps, besides the direct one.
func Routes(t *Transport) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.routes)
}

// SetClock gives r another clock than time.Now.
func SetClock(r *Reloader, clock func() time.Time) { r.clock = clock }

// SetPatience sets how long handshakes wait for the files.
func SetPatience(r *Reloader, d time.Duration) { r.patience = d }
