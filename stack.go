package ossl

// growStack makes room for a handshake on the goroutine's stack. Go gives most new goroutines a
// stack of 2 KB. When that doesn't suffice, Go copies it to a larger one, which takes the longer
// the more functions have been called. A handshake needs less than 4 KB, and would have its stack
// copied in its midst.
func growStack() { needStack(false) }

// needStack has a large frame, for which Go makes room before the function begins. It uses the
// frame, which would clear it, only if use is set.
//
//go:noinline
func needStack(use bool) int {
	if !use {
		return 0
	}
	var frame [1536]byte
	return length(frame[:])
}

//go:noinline
func length(b []byte) int { return len(b) }
