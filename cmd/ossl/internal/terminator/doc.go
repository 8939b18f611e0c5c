// Package terminator is the server of "ossl serve" and "ossl proxy": it terminates TLS and answers
// with files, or passes requests and connections on to backends.
//
// A connection goes this way: a gate accepts it, bounds it, and reads its PROXY header; the current
// generation shakes hands, chooses the site by the server name, and serves it. A generation is a
// configuration in effect. A reload makes a new one for new connections, and shuts the old one down
// as its connections become idle.
package terminator
