package tlstest

import "crypto/tls"

// OneTicket is a NewSessionTicket: RFC 8446, section 4.6.1.
var OneTicket = []byte{4, 0, 0, 4 + 4 + 1 + 1 + 2 + 8 + 2, 0, 0, 100, 0, 1, 2, 3, 4, 1, 0, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0}

// OneSlot is a faulty ClientSessionCache: it answers every key with the last session.
type OneSlot struct{ State *tls.ClientSessionState }

// Get implements tls.ClientSessionCache.
func (s *OneSlot) Get(string) (*tls.ClientSessionState, bool) { return s.State, s.State != nil }

// Put implements tls.ClientSessionCache.
func (s *OneSlot) Put(_ string, state *tls.ClientSessionState) { s.State = state }
