// Package resumption tests sessions: tickets and their keys, session caches on both sides, the
// conditions under which a session is resumed, and the state and memory of resumed connections.
package resumption
