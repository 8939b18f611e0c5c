//go:build cgo || ossl_nocgo

package ossl_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestSilentClientGetsTicket checks that a client that waits for a ticket before it sends anything
// gets one from a server that only reads, and that a client that has sent something doesn't.
func TestSilentClientGetsTicket(t *testing.T) {
	for name, path := range map[string]ossl.RecordPath{"direct": ossl.RecordsDirect, "libssl": ossl.RecordsLibssl} {
		for _, speaks := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/speaks=%t", name, speaks), func(t *testing.T) {
				cc, sc := tlstest.Resuming(tls.VersionTLS13)
				came := make(chan bool, 1)
				cc.ClientSessionCache = ticketSeen{cc.ClientSessionCache, came}
				a, b := tlstest.Loopback()
				s := ossltest.NewContext(t, sc, ossl.WithRecordPath(path)).Server(b)
				defer s.Close()
				go io.Copy(io.Discard, s)
				c := tls.Client(a, cc)
				defer c.Close()
				if err := c.Handshake(); err != nil {
					t.Fatal(err)
				}
				if speaks {
					c.Write([]byte("data"))
				}
				c.SetReadDeadline(time.Now().Add(tlstest.Patience))
				if speaks { // that a ticket doesn't come can't be waited for any longer
					c.SetReadDeadline(time.Now().Add(2 * ossl.Silence))
				}
				go c.Read(make([]byte, 1))
				if speaks {
					select {
					case <-came:
						t.Error("a ticket came")
					case <-time.After(2 * ossl.Silence):
					}
					return
				}
				<-came
			})
		}
	}
}

// A ticketSeen is a cache that signals each ticket that is put into it.
type ticketSeen struct {
	tls.ClientSessionCache
	came chan bool
}

func (c ticketSeen) Put(key string, state *tls.ClientSessionState) {
	c.ClientSessionCache.Put(key, state)
	if state != nil {
		c.came <- true
	}
}
