package httptls

// Routes returns the number of routes that t keeps, besides the direct one.
func Routes(t *Transport) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.routes)
}
