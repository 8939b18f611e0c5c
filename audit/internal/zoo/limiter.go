package zoo

import (
	"sync"
	"time"
)

// limiter returns a function that allows n calls in any second.
func limiter(n int) func() bool {
	var mu sync.Mutex
	var recent []time.Time
	return func() bool {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		for len(recent) > 0 && now.Sub(recent[0]) > time.Second {
			recent = recent[1:]
		}
		if len(recent) >= n {
			return false
		}
		recent = append(recent, now)
		return true
	}
}
