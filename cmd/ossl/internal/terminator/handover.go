package terminator

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
)

// handoverVariable is the environment variable by which a process learns of the sockets that its
// parent hands over: a handoverState in JSON. It has no secrets.
const handoverVariable = "OSSL_SERVE_HANDOVER"

// A handoverState describes the file descriptors of a process that takes over from its parent: that
// of a pipe, to which it writes when it serves, those of the sockets, and that of a pipe from which
// it reads ticket keys.
type handoverState struct {
	Parent  int      `json:"parent"`  // the parent's process ID
	Sockets []string `json:"sockets"` // their places in the configuration
	Domain  *domain  `json:"domain"`  // the parent's, which the process inherits, or nil
	Keys    bool     `json:"keys"`    // after the sockets comes a pipe with ticket keys
	KeysFor string   `json:"keysFor"` // the settings of sessions for which these were made
}

// firstDescriptor is the file descriptor of the pipe; the sockets follow.
const firstDescriptor = 3

// Inherited are the sockets and the ticket keys that the former process of a server has handed
// over.
type Inherited struct {
	mu        sync.Mutex
	listeners map[string][]net.Listener // by their places; those that a Server uses are removed
	ready     *os.File
	domain    *domain
	keys      []agedKey
	keysFor   string // the settings of sessions for which keys were made
}

// Inherit returns the sockets that the parent process hands over with [Server.HandOver], or nil if
// it hands over none. It can be called once.
func Inherit() (*Inherited, error) {
	text, ok := os.LookupEnv(handoverVariable)
	if !ok {
		return nil, nil
	}
	if err := os.Unsetenv(handoverVariable); err != nil {
		return nil, err
	}
	var state handoverState
	if err := json.Unmarshal([]byte(text), &state); err != nil {
		return nil, fmt.Errorf("%s: %w", handoverVariable, err)
	}
	if state.Parent != os.Getppid() {
		return nil, fmt.Errorf("%s is for a child of the process %d, which this is not; do not set it", handoverVariable, state.Parent)
	}
	in := &Inherited{listeners: map[string][]net.Listener{}, domain: state.Domain, keysFor: state.KeysFor}
	for i, place := range state.Sockets {
		l, err := inheritListener(uintptr(firstDescriptor+1+i), place)
		if err != nil {
			return nil, fmt.Errorf("the socket of %s: %w", place, err)
		}
		in.listeners[place] = append(in.listeners[place], l)
	}
	in.ready = inheritFile(firstDescriptor, "ready")
	if state.Keys {
		var err error
		if in.keys, err = inheritTicketKeys(uintptr(firstDescriptor + 1 + len(state.Sockets))); err != nil {
			return nil, fmt.Errorf("the former process's ticket keys: %w", err)
		}
	}
	return in, nil
}

// ticketKeys returns the ticket keys that only the former process had. It returns none if c has other
// settings of sessions, such as another policy: sessions of the former settings are not resumed, as
// after a reload.
func (in *Inherited) ticketKeys(c *Config) []agedKey {
	if in == nil || in.keysFor != sessionSettings(c) {
		return nil
	}
	return in.keys
}

// wipeTicketKeys destroys ticket keys that nobody uses.
func (in *Inherited) wipeTicketKeys() {
	if in == nil {
		return
	}
	for _, a := range in.keys {
		clear(a.key.Cipher)
		clear(a.key.MAC)
	}
}

// take returns the sockets of a place: one, or all of those from systemd.
func (in *Inherited) take(place string, all bool) []net.Listener {
	if in == nil {
		return nil
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	found := in.listeners[place]
	if !all && len(found) > 1 {
		found = found[:1]
	}
	in.listeners[place] = in.listeners[place][len(found):]
	return found
}

// Ready tells the former process that this one serves, so that the former one ends. Sockets that
// the new configuration has no longer are closed. It returns an error if the former process has
// ended.
func (in *Inherited) Ready() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	_, err := in.ready.Write([]byte{1})
	err = errors.Join(err, in.ready.Close())
	for _, listeners := range in.listeners {
		for _, l := range listeners {
			_ = l.Close()
		}
	}
	clear(in.listeners)
	return err
}

// place names a socket's place in the configuration.
func place(admin bool, address string) string {
	if admin {
		return "admin " + address
	}
	return "listen " + address
}
