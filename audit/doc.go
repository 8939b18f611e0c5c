// Package audit measures and judges the TLS of a server from outside: what the server offers, what
// each client would get, what a returning client pays, and what every finding costs.
package audit
