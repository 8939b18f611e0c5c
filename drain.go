package ossl

import "crypto/tls"

// maxDrained bounds the number of bytes that Close reads from its socket. The tickets of a
// handshake take a few hundred bytes, or some kilobytes if they hold a client's certificates. More
// can only be data that the user didn't want, and the peer may go on sending.
const maxDrained = 64 << 10

// drain discards the data that has arrived at a TLS 1.3 client's socket and was not read. It
// doesn't wait. Servers send tickets after the handshake, and a client that only writes leaves them
// unread. If a socket with unread data is closed, the kernel sends a reset, which destroys data
// that was written and not yet delivered. Data that arrives after drain still has that effect: only
// a client that reads to the server's end avoids it.
func (c *Conn) drain() {
	if !c.isClient || c.state.Version < tls.VersionTLS13 || !c.in.tryLock() { // a Read under way takes the data
		return
	}
	defer c.in.unlock()
	c.in.Drain(maxDrained)
}
