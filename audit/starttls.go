package audit

import "net"

// startTLS speaks the target's protocol as far as the point where TLS begins.
func (r *run) startTLS(conn net.Conn) error {
	return nil // "tls" and "https" begin with TLS; the other protocols are refused by ParseTarget
}
