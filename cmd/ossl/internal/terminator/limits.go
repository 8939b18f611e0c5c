package terminator

import (
	"cmp"
	"fmt"
	"sync"
	"time"
)

// Limits bound the work and the memory that clients can cause.
type Limits struct {
	Connections       int     `toml:"connections"`      // open at a time
	PerAddress        int     `toml:"per-address"`      // open at a time from one address; 0 for no bound
	Handshakes        int     `toml:"handshakes"`       // of clients, at a time; 0 for a bound by the memory
	Rate              float64 `toml:"rate"`             // new connections a second; 0 for no bound
	RatePerSource     float64 `toml:"address-rate"`     // the same from one address
	HeaderBytes       int     `toml:"header-bytes"`     // of a request's header
	BodyBytes         int     `toml:"body-bytes"`       // of a request's body; 0 for no bound
	Streams           int     `toml:"streams"`          // requests at a time on an HTTP/2 connection
	BackendConns      int     `toml:"backend-conns"`    // to each HTTP backend
	RequestsPerSource int     `toml:"address-requests"` // of one address at a time, at each HTTP backend; 0 for half of BackendConns
	FileCacheBytes    int     `toml:"file-cache-bytes"` // of small files that are kept in memory; 0 for none
	Header            Time    `toml:"header-timeout"`   // for a PROXY header, for a handshake, and for each request's header
	Idle              Time    `toml:"idle-timeout"`     // without progress: between requests, of a body, of a TCP connection
	Backend           Time    `toml:"backend-timeout"`  // for connecting to a backend, and for the header of its response
	Drain             Time    `toml:"drain-timeout"`    // for requests and connections under way at the end
}

// A Time is a time.Duration whose text is as in 10s.
type Time time.Duration

// UnmarshalText parses a duration.
func (t *Time) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	*t = Time(d)
	return err
}

func (t Time) String() string { return time.Duration(t).String() }

// in returns the time that is t from now.
func (t Time) in() time.Time { return time.Now().Add(time.Duration(t)) }

// DefaultLimits returns the limits of the commands, which their help states.
func DefaultLimits() Limits {
	return Limits{
		Connections:    10_000,
		PerAddress:     1000,
		RatePerSource:  200,
		HeaderBytes:    64 << 10,
		Streams:        100,
		BackendConns:   256,
		FileCacheBytes: 32 << 20,
		Header:         Time(10 * time.Second),
		Idle:           Time(time.Minute),
		Backend:        Time(30 * time.Second),
		Drain:          Time(30 * time.Second),
	}
}

// The memory of handshakes under way.
const (
	handshakeBytes = 100 << 10 // of one: see ossl.WithMaxHandshakes
	memoryShare    = 4         // all together take at most this part of the memory
	memoryAssumed  = 1 << 30   // if the memory isn't known
)

var processMemory = sync.OnceValue(memoryOfProcess)

// handshakes returns the bound on handshakes at a time, or 0 if the bound on connections suffices.
func (l *Limits) handshakes() int {
	bound := l.Handshakes
	if bound == 0 {
		bound = int(cmp.Or(processMemory(), memoryAssumed) / memoryShare / handshakeBytes)
	}
	if bound >= l.Connections {
		return 0
	}
	return max(bound, 1)
}

func (l *Limits) check() error {
	for _, v := range []struct {
		name  string
		value int
		least int
	}{
		{"connections", l.Connections, 1}, {"per-address", l.PerAddress, 0}, {"handshakes", l.Handshakes, 0},
		{"header-bytes", l.HeaderBytes, 1024},
		{"streams", l.Streams, 1}, {"backend-conns", l.BackendConns, 1}, {"address-requests", l.RequestsPerSource, 0},
		{"file-cache-bytes", l.FileCacheBytes, 0},
	} {
		if v.value < v.least || v.value > 1<<30 {
			return fmt.Errorf("%s is %d, but must be at least %d", v.name, v.value, v.least)
		}
	}
	if l.BodyBytes < 0 {
		return fmt.Errorf("body-bytes is %d, but must not be negative", l.BodyBytes)
	}
	for _, v := range []struct {
		name  string
		value float64
	}{{"rate", l.Rate}, {"address-rate", l.RatePerSource}} {
		if !(v.value >= 0 && v.value <= 1e9) {
			return fmt.Errorf("%s is %v, but must not be negative", v.name, v.value)
		}
	}
	for _, v := range []struct {
		name  string
		value Time
	}{
		{"header-timeout", l.Header}, {"idle-timeout", l.Idle}, {"backend-timeout", l.Backend}, {"drain-timeout", l.Drain},
	} {
		if v.value <= 0 {
			return fmt.Errorf("%s is %v, but must be positive", v.name, v.value)
		}
	}
	return nil
}

// MarshalText returns the text that UnmarshalText parses.
func (t Time) MarshalText() ([]byte, error) { return []byte(t.String()), nil }
