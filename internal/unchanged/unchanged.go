// Package unchanged has the state of a program that "ossl go" has built: which engine its
// connections must have, how many have which, and why.
package unchanged

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
	"sync"
	"sync/atomic"
)

// The environment variables of such a program.
const (
	EnvMode = "OSSL_MODE"
	EnvLog  = "OSSL_LOG"
)

// A Mode decides the engine of a connection that ossl can't make as its configuration asks.
type Mode string

const (
	Prefer  Mode = "prefer"  // crypto/tls makes the connection
	Require Mode = "require" // the handshake returns the error
	Off     Mode = "off"     // crypto/tls makes all connections
)

// ModeOf returns the mode of a program that was built with one mode and whose environment asks for
// another, or for none. fips is the reason why FIPS mode is required, or "". Nothing in the
// environment weakens Require, nor FIPS mode, whose connections must all be ossl's.
func ModeOf(built Mode, asked, fips string) (Mode, error) {
	strict := built == Require || fips != ""
	switch m := Mode(asked); {
	case m != "" && m != Prefer && m != Require && m != Off:
		return "", fmt.Errorf("%s: %q is not prefer, require or off", EnvMode, asked)
	case strict && m == Off && fips != "":
		return "", fmt.Errorf("%s=off: FIPS mode is required (%s), and crypto/tls doesn't honour that", EnvMode, fips)
	case strict && m == Off:
		return "", fmt.Errorf("%s=off: this program was built with \"ossl go --mode require\"", EnvMode)
	case strict || m == Require:
		return Require, nil
	case m == Off:
		return Off, nil
	}
	return built, nil
}

// Info is the content of the marker in a program.
type Info struct {
	Format   int    `json:"format"`   // of the marker: 1
	Version  string `json:"version"`  // ossl's
	Build    string `json:"build"`    // a hash of all that "ossl go" has put into the program
	Mode     Mode   `json:"mode"`     // Prefer or Require
	Go       string `json:"go"`       // the version of Go
	Settings string `json:"settings"` // the beginning of the SHA-256 hash of those that were given at build, or ""
}

// Built returns the content of the marker. "ossl inspect" finds the marker in the program's file; it is
// there because this function is used.
var Built = sync.OnceValue(func() Info {
	var info Info
	_, text, _ := strings.Cut(marker, "{")
	if err := json.Unmarshal([]byte("{"+strings.TrimSuffix(text, "\x00")), &info); err != nil {
		panic("ossl: the marker is damaged: " + err.Error())
	}
	return info
})

// BuiltSettings returns the settings that were given at the build, or "".
func BuiltSettings() string { return settings }

// maxReasons bounds the reasons that are counted apart. Reasons are ossl's texts about
// configurations, of which programs have few.
const maxReasons = 64

// otherReasons counts the rest.
const otherReasons = "other reasons"

// A Role is a connection's.
type Role string

const (
	Client Role = "client"
	Server Role = "server"
)

// A Reason is why connections of a role aren't ossl's.
type Reason struct {
	Role Role
	Text string
}

// Counts are the connections of a process so far.
type Counts struct {
	Ossl    map[Role]uint64   // connections of ossl
	Left    map[Reason]uint64 // connections that were left to crypto/tls
	Refused map[Reason]uint64 // connections that had to be ossl's and could not
	QUIC    uint64            // connections of QUIC, which are always crypto/tls's
}

// A Counter counts connections, and writes each new reason to a log.
type Counter struct {
	clients, servers, quic atomic.Uint64

	log     io.Writer // nil for none
	mu      sync.Mutex
	left    map[Reason]uint64 // guarded by mu
	refused map[Reason]uint64 // guarded by mu
}

// Process counts the connections of this process. Its log is standard error, unless OSSL_LOG=off.
var Process = sync.OnceValues(func() (*Counter, error) {
	switch log := os.Getenv(EnvLog); log {
	case "", "stderr":
		return NewCounter(os.Stderr), nil
	case "off":
		return NewCounter(nil), nil
	default:
		return NewCounter(os.Stderr), fmt.Errorf("%s: %q is not stderr or off", EnvLog, log)
	}
})

// NewCounter returns a counter. log is nil for none.
func NewCounter(log io.Writer) *Counter {
	return &Counter{log: log, left: map[Reason]uint64{}, refused: map[Reason]uint64{}}
}

// Took counts a connection of ossl.
func (c *Counter) Took(r Role) {
	if r == Client {
		c.clients.Add(1)
	} else {
		c.servers.Add(1)
	}
}

// HandedOver counts a server's connection of ossl as one that was left to crypto/tls.
func (c *Counter) HandedOver(reason error) {
	c.servers.Add(^uint64(0))
	c.Left(Server, reason)
}

// QUIC counts a connection of QUIC.
func (c *Counter) QUIC() { c.quic.Add(1) }

// Left counts a connection that was left to crypto/tls.
func (c *Counter) Left(r Role, reason error) { c.count(c.left, "left to crypto/tls", r, reason) }

// Refused counts a connection that could not be made.
func (c *Counter) Refused(r Role, reason error) { c.count(c.refused, "refused", r, reason) }

// Log writes a line to the log.
func (c *Counter) Log(text string) {
	if c.log != nil {
		_, _ = fmt.Fprintf(c.log, "ossl %s: %s\n", Built().Version, text)
	}
}

func (c *Counter) count(counts map[Reason]uint64, fate string, r Role, reason error) {
	text := strings.TrimPrefix(reason.Error(), "ossl: ")
	key := Reason{r, text}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := counts[key]; !known && len(counts) >= maxReasons {
		key.Text = otherReasons
		text = otherReasons + ", which are no longer told apart"
	}
	if counts[key]++; counts[key] == 1 {
		c.Log(fmt.Sprintf("%s connections are %s: %s", r, fate, text))
	}
}

// Counts returns the numbers so far.
func (c *Counter) Counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Counts{
		Ossl:    map[Role]uint64{Client: c.clients.Load(), Server: c.servers.Load()},
		Left:    maps.Clone(c.left),
		Refused: maps.Clone(c.refused),
		QUIC:    c.quic.Load(),
	}
}

// An error that wraps ErrHandedOver ends a server's handshake that crypto/tls can go on with.
var ErrHandedOver = errors.New("ossl: the connection was handed over to crypto/tls")
