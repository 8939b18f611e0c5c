// Package revocation tests revocation lists in handshakes: in both roles, when sessions are resumed,
// when chains are remembered, and when lists are replaced.
package revocation
