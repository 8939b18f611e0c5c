// Package session has what servers that resume TLS sessions share: caches for sessions, and keys for tickets.
//
// A server that is given a [Cache] is stateful: it remembers each session itself and gives the client an ID of it. One that has
// only ticket keys is stateless: the client keeps the session, sealed under a key of a [Ring]. Package ossl uses both through
// its options WithSessionCache and WithTicketKeys.
package session

import (
	"context"
	"time"
)

// A Cache keeps the sessions of servers by their IDs. It is used by many goroutines at once, and may be shared by any number of
// listeners, and by the servers of a fleet.
//
// A Cache sees each session as bytes whose meaning is its user's. They hold the session's secret: whoever reads them can read the
// session's connections. A Cache that sends or writes them anywhere outside of the process must seal them first, as [Seal] does.
//
// What goes wrong in a Cache costs a full handshake and nothing else: an error is counted as a miss.
type Cache interface {
	// Put keeps a session under id until expires, in place of what is there. It must not keep either slice.
	Put(ctx context.Context, id, session []byte, expires time.Time) error

	// Get returns the session that is kept under id, as bytes that are the caller's, or nil if there is none or it has expired. With
	// take it is removed at once: of all callers that take an ID, one gets its session.
	Get(ctx context.Context, id []byte, take bool) ([]byte, error)

	// Remove forgets a session, if it is there.
	Remove(ctx context.Context, id []byte) error
}
