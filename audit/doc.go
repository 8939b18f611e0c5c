// Package audit measures and judges the TLS of a server from outside: the server's offer, the
// outcome for common clients, the costs for a returning client, and the price of every finding.
package audit
