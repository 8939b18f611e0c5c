package stdtls

import (
	"crypto/tls"
	"errors"
	"net"
	"testing"
)

// TestAlert finds the alert in a crypto/tls error. The server sends it without having a
// certificate.
func TestAlert(t *testing.T) {
	client, server := net.Pipe()
	go func() { _ = tls.Server(server, &tls.Config{MinVersion: tls.VersionTLS13}).Handshake() }()
	err := tls.Client(client, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}).Handshake()
	var op *net.OpError
	if !errors.As(err, &op) {
		t.Fatalf("the handshake fails with %v", err)
	}
	const protocolVersion = 70
	if n, ok := Alert(op.Err); !ok || n != protocolVersion {
		t.Errorf("Alert(%v) is %d, %v", op.Err, n, ok)
	}
	for _, other := range []error{nil, net.ErrClosed, err} {
		if _, ok := Alert(other); ok {
			t.Errorf("%v is an alert", other)
		}
	}
}
