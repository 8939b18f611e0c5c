package terminator

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
)

// handoverVariable is the environment variable by which a process learns of the sockets that are
// handed over to it: a handoverState in JSON. It has no secrets.
const handoverVariable = "OSSL_SERVE_HANDOVER"

// A handoverState describes the file descriptors that a process gets from its parent, which it
// replaces, or from itself, if it has executed the program in place.
type handoverState struct {
	From       int            `json:"from"`       // the ID of the process that hands over
	Sockets    []handedSocket `json:"sockets"`    // those that listen
	Ready      int            `json:"ready"`      // a pipe, to which the process writes when it serves, or 0
	Keys       int            `json:"keys"`       // a pipe, from which the process reads ticket keys, or 0
	KeysFor    string         `json:"keysFor"`    // the settings of sessions for which these were made
	Moves      int            `json:"moves"`      // a Unix socket, by which connections move, or 0
	Config     int            `json:"config"`     // the text of the configuration, or 0
	Domain     *domain        `json:"domain"`     // by which the process is confined, or nil
	Unconfined string         `json:"unconfined"` // the reason why it isn't, from a process that has tried
}

// A handedSocket is the file descriptor of a listener.
type handedSocket struct {
	Descriptor int    `json:"descriptor"`
	Place      string `json:"place"` // in the configuration
	Made       bool   `json:"made"`  // by the process itself
}

// firstDescriptor is the first file descriptor that a child gets.
const firstDescriptor = 3

// Inherited are the sockets and the ticket keys that were handed over to a process, and the state of
// its confinement.
type Inherited struct {
	mu         sync.Mutex
	sockets    []socket // guarded by mu; those that a Server uses are removed
	ready      *os.File // nil if no former process waits
	domain     *domain
	unconfined string
	settled    bool     // by Settle, in this process or before it executed the program
	again      bool     // it has executed the program
	unmet      error    // the reason why the domain isn't known; for a configuration that can't be served either
	timers     error    // the reason why the timers stay as they are, or nil
	config     *os.File // the text of the configuration, which may be a pipe's, or nil
	keysPipe   int      // the descriptor of the pipe with the keys, or 0
	moves      int      // the descriptor of the socket by which connections move, or 0
	takes      bool     // connections from there
	keys       []agedKey
	keysFor    string // the settings of sessions for which keys were made
}

// Inherit returns what the parent process hands over with [Server.HandOver], or this one has kept
// when [Settle] executed the program, or nil. It can be called once.
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
	again := state.From == os.Getpid()
	if !again && state.From != os.Getppid() {
		return nil, fmt.Errorf("%s is for a child of the process %d, which this is not; do not set it", handoverVariable, state.From)
	}
	in := &Inherited{domain: state.Domain, unconfined: state.Unconfined, settled: again, again: again,
		keysPipe: state.Keys, keysFor: state.KeysFor, moves: state.Moves}
	for _, h := range state.Sockets {
		l, err := inheritListener(uintptr(h.Descriptor), h.Place)
		if err != nil {
			return nil, fmt.Errorf("the socket of %s: %w", h.Place, err)
		}
		in.sockets = append(in.sockets, socket{l, h.Place, again && h.Made})
	}
	if state.Ready != 0 {
		in.ready = inheritFile(uintptr(state.Ready), "ready")
	}
	if state.Config != 0 {
		in.config = inheritFile(uintptr(state.Config), "configuration")
	}
	keepFromChildren(in.keysPipe)
	keepFromChildren(in.moves)
	return in, nil
}

// ReadFile is [ReadFile] for the process's first Config. If the process has executed the program, that
// is the one which it had read before: the file may be a pipe.
func (in *Inherited) ReadFile(name string) (*Config, error) {
	if in == nil || in.config == nil {
		return ReadFile(name)
	}
	defer in.config.Close()
	return readConfig(in.config, name)
}

// TakesOver reports whether a former process waits for this one to serve.
func (in *Inherited) TakesOver() bool { return in != nil && in.ready != nil }

// readTicketKeys reads the former process's ticket keys.
func (in *Inherited) readTicketKeys() (err error) {
	if in.keysPipe == 0 {
		return nil
	}
	if in.keys, err = inheritTicketKeys(uintptr(in.keysPipe)); err != nil {
		return fmt.Errorf("the former process's ticket keys: %w", err)
	}
	in.keysPipe = 0
	return nil
}

// takeMoves returns a server's taker of the former process's connections, or nil if it takes none.
func (in *Inherited) takeMoves(s *Server) *taker {
	if in.moves == 0 {
		return nil
	}
	conn, err := inheritMoves(uintptr(in.moves))
	in.moves = 0
	if err != nil {
		s.log.Error("the connections of the former process stay there", "error", err)
		return nil
	}
	if s.current.Load().plan.leaves {
		_ = conn.Close()
		return nil
	}
	in.takes = true
	return newTaker(conn, s)
}

// ticketKeys returns the ticket keys that only the former process had. It returns none if it had other
// settings of sessions, such as another policy: sessions of the former settings are not resumed, as
// after a reload.
func (in *Inherited) ticketKeys(settings string) []agedKey {
	if in.keysFor != settings {
		return nil
	}
	return in.keys
}

// wipeTicketKeys destroys ticket keys that nobody uses.
func (in *Inherited) wipeTicketKeys() {
	for _, a := range in.keys {
		clear(a.key.Cipher)
		clear(a.key.MAC)
	}
}

// take returns the sockets of a place: one, or all of those from systemd.
func (in *Inherited) take(place string, all bool) (found []socket) {
	in.mu.Lock()
	defer in.mu.Unlock()
	var rest []socket
	for _, s := range in.sockets {
		if s.place == place && (all || len(found) == 0) {
			found = append(found, s)
		} else {
			rest = append(rest, s)
		}
	}
	in.sockets = rest
	return found
}

// Ready tells the former process, if there is one, that this one serves, so that the former one
// exits. Sockets that the new configuration has no longer are closed. It returns an error if the
// former process has exited.
func (in *Inherited) Ready() (err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.ready != nil {
		version := byte(1)
		if in.takes {
			version = movesVersion
		}
		_, err = in.ready.Write([]byte{version})
		err = errors.Join(err, in.ready.Close())
	}
	for _, s := range in.sockets {
		_ = s.listener.Close()
	}
	in.sockets = nil
	return err
}

// Abandon closes the sockets that no Server uses, since the process exits without having served.
func (in *Inherited) Abandon() {
	if in == nil {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	abandonAll(in.sockets)
	in.sockets = nil
}

// abandonAll closes sockets of a process that exits without having served. The paths of Unix sockets
// that another process has made are still in use by it.
func abandonAll(sockets []socket) {
	for _, s := range sockets {
		if l, ok := s.listener.(*net.UnixListener); ok && !s.made {
			l.SetUnlinkOnClose(false)
		}
		_ = s.listener.Close()
	}
}
