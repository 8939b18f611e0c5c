package libp2ptls

import (
	"net"
	"sync"
	"testing"
)

// A recording is the bytes that each side of a connection has written.
type recording struct {
	client, server net.Conn // the connections to use

	mu                     sync.Mutex
	fromClient, fromServer []byte // guarded by mu
}

func record(t testing.TB, client, server net.Conn) *recording {
	t.Helper()
	r := &recording{}
	r.client, r.server = &tap{client, &r.mu, &r.fromClient}, &tap{server, &r.mu, &r.fromServer}
	return r
}

type tap struct {
	net.Conn
	mu *sync.Mutex
	to *[]byte
}

func (c *tap) Write(b []byte) (int, error) {
	c.mu.Lock()
	*c.to = append(*c.to, b...)
	c.mu.Unlock()
	return c.Conn.Write(b)
}

// records returns the records that the client or the server sent, with headers.
func (r *recording) records(ofClient bool) (records [][]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sent := r.fromServer
	if ofClient {
		sent = r.fromClient
	}
	for len(sent) >= 5 {
		n := min(5+(int(sent[3])<<8|int(sent[4])), len(sent))
		records = append(records, sent[:n])
		sent = sent[n:]
	}
	return records
}

// certificateSent reports whether the client has sent a record after its ClientHello that could
// hold a certificate.
func (r *recording) certificateSent() bool {
	for _, record := range r.records(true)[1:] {
		if len(record) > 100 {
			return true
		}
	}
	return false
}
