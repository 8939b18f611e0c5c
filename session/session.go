// Package session holds the state that servers share to resume TLS sessions: caches of sessions,
// and keys for tickets.
//
// A server with a [Cache] is stateful: it keeps each session itself and gives the client an ID for
// it. A server with only ticket keys is stateless: the client keeps the session, sealed under a key
// of a [Ring]. Package ossl uses both through its options WithSessionCache and WithTicketKeys.
package session

import (
	"context"
	"time"
)

// A Cache keeps the sessions of servers by their IDs. It is used by many goroutines at once, and
// may be shared by any number of listeners, and by the servers of a fleet.
//
// To a Cache, sessions are opaque bytes. They hold the session's secret: anyone who reads them can
// decrypt the session's connections. A Cache that sends or writes them outside of the process must
// seal them first, as [Seal] does.
//
// A failure of a Cache costs a full handshake and nothing else: an error counts as a miss.
type Cache interface {
	// Put keeps a session under id until expires, and replaces the one that is there. It must not
	// keep either slice.
	Put(ctx context.Context, id, session []byte, expires time.Time) error

	// Get returns the session under id, in bytes that belong to the caller, or nil if there is none
	// or it has expired. If take is set, the session is removed at once: of all callers that take
	// an ID, one gets its session.
	Get(ctx context.Context, id []byte, take bool) ([]byte, error)

	// Remove removes a session, if there is one.
	Remove(ctx context.Context, id []byte) error
}
