//go:build (cgo || ossl_nocgo) && linux

package ossl

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestKernelRefusesNextKey makes the kernel refuse the key that follows a KeyUpdate, which has been
// sent: the peer waits for records under that key, so nothing may follow, neither data nor an
// alert. The socket was never prepared for keys, so every kernel refuses; the socket sends all
// bytes unchanged.
func TestKernelRefusesNextKey(t *testing.T) {
	for name, update := range map[string]func(t *testing.T, c *Conn){
		"the key is used up": func(t *testing.T, c *Conn) {
			c.out.sender.(*kernelSender).budget = 0
			if _, err := c.Write([]byte("data")); err == nil {
				t.Error("Write succeeds")
			}
		},
		"the peer asks": func(t *testing.T, c *Conn) {
			if !c.engine.sealer.(*directSealer).answerKeyUpdate(&c.engine) {
				t.Error("there was no room for an answer")
			}
			c.flushQueue(byCall)
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, server := contextOf(t, tlstest.ClientConfig()), contextOf(t, tlstest.ServerConfig(), WithRecordPath(RecordsDirect))
			a, b := tlstest.Loopback()
			defer a.Close()
			peer, c := client.Client(a, tlstest.ServerName), server.Server(b)
			done := make(chan error, 1)
			go func() { done <- c.Handshake() }()
			if err := errors.Join(peer.Handshake(), <-done); err != nil {
				t.Fatal(err)
			}
			// Pretend that the kernel was given the first key.
			tcp := c.conn.(*net.TCPConn)
			raw, err := tcp.SyscallConn()
			if err != nil {
				t.Fatal(err)
			}
			c.engine.mu.Lock()
			c.engine.queue.take() // the tickets would go first
			s := c.engine.sealer.(*directSealer)
			var key libssl.KernelKey
			if !s.side.KernelKey(&key) {
				t.Fatal("there is no key to give")
			}
			s.side.KernelSeals()
			s.kernel = &kernelSender{sealer: s, tcp: tcp, raw: raw, budget: recordsPerKey}
			c.out.kernelAsked, c.out.sender = true, s.kernel
			c.engine.mu.Unlock()

			update(t, c)
			if _, err := c.Write([]byte("more")); err == nil {
				t.Error("a later Write succeeds")
			}
			s.alert(&c.engine, alertInternalError)
			c.flushQueue(byCall)
			if err := c.CloseWrite(); err == nil && !c.out.closeNotifySent && c.out.err == nil {
				t.Error("CloseWrite goes on")
			}
			c.Close()
			a.SetReadDeadline(time.Now().Add(tlstest.Patience))
			got, err := io.ReadAll(a)
			if err != nil || string(got) != string(keyUpdateMessage) {
				t.Errorf("what was sent is %x, %v, want %x and nothing else", got, err, keyUpdateMessage)
			}
		})
	}
}
