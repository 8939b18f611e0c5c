package ossl

import "crypto/tls"

// maxDrained bounds what a Close takes from its socket. The tickets of a handshake have a few hundred bytes, or some kilobytes
// if they hold a client's certificates. More can only be data that the user did not want, from a peer that may go on sending.
const maxDrained = 64 << 10

// drain takes what has arrived and nobody has read from a TLS 1.3 client's socket, without waiting, and forgets it. Servers
// send tickets after the handshake, which a client that only writes leaves unread; and a kernel answers the close of a socket
// with unread data by a reset, which destroys what was written and has not been delivered yet. What arrives later still has that
// effect: only who reads to the server's end is safe from it.
func (c *Conn) drain() {
	if !c.isClient || c.state.Version < tls.VersionTLS13 || !c.readMu.TryLock() { // the Read under way takes what there is
		return
	}
	defer c.unlockRead()
	if c.in.raw == nil {
		return
	}
	buf := getBuffer(smallBuffers)
	defer buf.put()
	// Control, and not Read, which fails after the read deadline.
	_ = c.in.raw.Control(func(fd uintptr) {
		for left := maxDrained; left > 0; {
			part := buf.mem[:min(left, len(buf.mem))]
			n := receiveNow(fd, part)
			if n < len(part) {
				return
			}
			left -= n
		}
	})
}
