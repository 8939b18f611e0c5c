package ossl

// ShowURI returns what of a URI may go into errors.
var ShowURI = showURI

// OccupyKey takes a key's only turn until release is called.
func OccupyKey(k *Key) (release func()) {
	_ = blocked.enter(k.turns, func(ready <-chan struct{}) error { <-ready; return nil })
	return func() { blocked.leave(k.turns) }
}

// OccupiedKey returns how many signatures are under way with a key.
func OccupiedKey(k *Key) int {
	blocked.mu.Lock()
	defer blocked.mu.Unlock()
	return k.turns.in
}
