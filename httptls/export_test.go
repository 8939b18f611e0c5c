package httptls

import "time"

// Routes returns the number of routes in t, besides the direct one.
func Routes(t *Transport) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.routes)
}

// SetClock replaces r's clock for the dates of certificates, time.Now.
func SetClock(r *Reloader, clock func() time.Time) { r.clock = clock }

// SetPatience sets how long handshakes wait for the files.
func SetPatience(r *Reloader, d time.Duration) { r.patience = d }

// SetCAPatience sets how long handshakes wait for the files.
func SetCAPatience(r *ClientCAReloader, d time.Duration) { r.patience = d }

// OnceMade is onceMade.
var OnceMade = onceMade
