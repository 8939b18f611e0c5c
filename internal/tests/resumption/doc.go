// Package resumption tests sessions: tickets and their keys, session caches on both sides, who may
// resume a session, and what state and memory a resumed connection has.
package resumption
