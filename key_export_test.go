package ossl

// ShowURI returns what of a URI may go into errors.
var ShowURI = showURI

// OccupyKey takes a key's only turn until release is called.
func OccupyKey(k *Key) (release func()) {
	k.slots <- struct{}{}
	return func() { <-k.slots }
}

// OccupiedKey returns how many signatures are under way with a key.
func OccupiedKey(k *Key) int { return len(k.slots) }
