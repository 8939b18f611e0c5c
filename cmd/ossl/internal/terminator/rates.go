package terminator

import (
	"math"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/time/rate"
)

// maxSources bounds the number of addresses whose rates are remembered. An attacker who has more can
// make the server forget one, and then has further connections from it.
const maxSources = 1 << 16

// A sources bounds the connections of each address: those open at a time, and the new ones a second.
type sources struct {
	mu    sync.Mutex
	open  map[netip.Prefix]int // as many as there are connections
	rates *simplelru.LRU[netip.Prefix, *rate.Limiter]
}

func newSources() *sources {
	lru, err := simplelru.NewLRU[netip.Prefix, *rate.Limiter](maxSources, nil)
	if err != nil {
		panic(err) // the size is positive
	}
	return &sources{open: map[netip.Prefix]int{}, rates: lru}
}

// sourceOf returns the part of an address that a client can't choose freely: all of an IPv4 address,
// and the first half of an IPv6 address.
func sourceOf(a netip.Addr) netip.Prefix {
	bits := 32
	if !a.Is4() {
		bits = 64
	}
	prefix, _ := a.Prefix(bits) // the zero Prefix for Unix sockets
	return prefix
}

// take counts a connection, or returns the limit that forbids it, "per-address" or "address-rate".
func (s *sources) take(from netip.Prefix, l *Limits) (limit string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.PerAddress > 0 && s.open[from] >= l.PerAddress {
		return "per-address"
	}
	if l.RatePerSource > 0 {
		limiter, ok := s.rates.Get(from)
		if !ok {
			limiter = rate.NewLimiter(rate.Limit(l.RatePerSource), burst(l.RatePerSource))
			s.rates.Add(from, limiter)
		}
		if limiter.Limit() != rate.Limit(l.RatePerSource) { // changed by a reload
			limiter.SetLimit(rate.Limit(l.RatePerSource))
			limiter.SetBurst(burst(l.RatePerSource))
		}
		if !limiter.AllowN(time.Now(), 1) {
			return "address-rate"
		}
	}
	s.open[from]++
	return ""
}

// burst returns the number of connections that may come at once: as many as in a second.
func burst(perSecond float64) int { return max(1, int(math.Ceil(perSecond))) }

// force counts a connection, which no limit forbids.
func (s *sources) force(from netip.Prefix) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[from]++
}

// release undoes take.
func (s *sources) release(from netip.Prefix) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[from]--; s.open[from] <= 0 {
		delete(s.open, from)
	}
}
