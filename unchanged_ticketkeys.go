//go:build ossl_unchanged

package ossl

import (
	"bytes"
	"slices"
	"time"

	"github.com/ossl-go/ossl/internal/unchanged"
	"github.com/ossl-go/ossl/session"
)

// ringPeriod is the time after which files of ticket keys are read again.
var ringPeriod = time.Minute

// A ringOfFiles is a ring with the ticket keys in files.
type ringOfFiles struct {
	files  []string
	period time.Duration
	ring   *session.Ring
	keys   []session.TicketKey
	failed string // why the files could not be read again, or ""
}

func readRing(files []string) (*session.Ring, error) {
	keys, err := session.ReadTicketKeyFiles(files...)
	if err != nil {
		return nil, err
	}
	ring, err := session.NewRing(keys...)
	if err != nil {
		return nil, err
	}
	r := &ringOfFiles{files: files, period: ringPeriod, ring: ring, keys: keys}
	time.AfterFunc(r.period, r.again)
	return ring, nil
}

// again reads the files again, now and after each period. If that fails, the ring stays as it is.
func (r *ringOfFiles) again() {
	defer time.AfterFunc(r.period, r.again)
	keys, err := session.ReadTicketKeyFiles(r.files...)
	if err == nil && !slices.EqualFunc(keys, r.keys, sameTicketKey) {
		if err = r.ring.Set(keys...); err == nil {
			r.keys = keys
		}
	}
	failed := ""
	if err != nil {
		failed = err.Error()
	}
	if counter, err := unchanged.Process(); err == nil && failed != "" && failed != r.failed {
		counter.Log("servers.ticket_keys: the keys stay as they are: " + failed)
	}
	r.failed = failed
}

func sameTicketKey(a, b session.TicketKey) bool {
	return a.Name == b.Name && bytes.Equal(a.MAC, b.MAC) && bytes.Equal(a.Cipher, b.Cipher)
}
