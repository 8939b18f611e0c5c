//go:build ossl_unchanged

package ossl

import (
	"context"
	"time"

	"github.com/ossl-go/ossl/internal/unchanged"
	"github.com/ossl-go/ossl/session"
)

// ringPeriod is the time after which files of ticket keys are looked at again.
var ringPeriod = time.Minute

// readRing returns a ring with the ticket keys in files, which follows them.
func readRing(files []string) (*session.Ring, error) {
	ring := new(session.Ring)
	watch := NewWatch(func() error {
		keys, err := session.ReadTicketKeyFiles(files...)
		if err != nil {
			return err
		}
		return ring.Set(keys...)
	}, files...)
	watch.OnEvent = func(e WatchEvent) {
		if counter, err := unchanged.Process(); err == nil && e.Err != nil {
			counter.Log("servers.ticket_keys: the keys stay as they are: " + e.Err.Error())
		}
	}
	return ring, watch.Start(context.Background(), ringPeriod)
}
