package redisstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ossl-go/ossl/session"
)

// A sharedKey is a ticket key with its times, which are published with it so that all members use
// the same.
type sharedKey struct {
	session.TicketKey
	published time.Time
	sealFrom  time.Time     // no member seals with it before this time
	sealUntil time.Time     // nor from this time on
	lifetime  time.Duration // of the tickets
}

// confirmFrom returns the time from which a member that finds the key in the store confirms it. By
// then all others had half the lead, which is two polls or more, to find it there.
func (k *sharedKey) confirmFrom() time.Time {
	return k.published.Add(k.sealFrom.Sub(k.published) / 2)
}

// openUntil returns the time at which the last ticket that a member may have sealed with the key
// expires.
func (k *sharedKey) openUntil() time.Time { return k.sealUntil.Add(k.lifetime) }

// maxKeys bounds the keys in a record.
const maxKeys = 128

// recordVersion is raised when members with an older version must not touch the record.
const recordVersion = 1

// errNewerRecord keeps a member from overwriting a record of a newer version.
var errNewerRecord = errors.New("redisstore: the ticket keys were published by a newer version")

// A wireRecord is the form in which keys are sealed in the store. Times are in milliseconds since
// 1970.
type wireRecord struct {
	Version int       `json:"v"`
	Keys    []wireKey `json:"keys"`
}

type wireKey struct {
	Name      []byte `json:"name"`
	Cipher    []byte `json:"cipher"`
	MAC       []byte `json:"mac"`
	Published int64  `json:"published"`
	SealFrom  int64  `json:"sealFrom"`
	SealUntil int64  `json:"sealUntil"`
	Lifetime  int64  `json:"lifetime"`
}

func encodeRecord(keys []*sharedKey) []byte {
	r := wireRecord{Version: recordVersion}
	for _, k := range keys {
		r.Keys = append(r.Keys, wireKey{
			Name: k.Name[:], Cipher: k.Cipher, MAC: k.MAC,
			Published: k.published.UnixMilli(), SealFrom: k.sealFrom.UnixMilli(), SealUntil: k.sealUntil.UnixMilli(),
			Lifetime: k.lifetime.Milliseconds(),
		})
	}
	b, err := json.Marshal(r)
	if err != nil {
		panic("redisstore: " + err.Error()) // numbers and bytes can't fail
	}
	return b
}

// decodeRecord parses a record. It checks everything, though only members can have sealed it.
func decodeRecord(b []byte) ([]*sharedKey, error) {
	var version struct {
		Version int `json:"v"`
	}
	if err := json.Unmarshal(b, &version); err != nil {
		return nil, errRecord("malformed record")
	}
	if version.Version > recordVersion {
		return nil, errNewerRecord
	}
	var r wireRecord
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil || r.Version != recordVersion {
		return nil, errRecord("malformed record of this version")
	}
	if len(r.Keys) > maxKeys {
		return nil, errRecord("too many keys")
	}
	keys := make([]*sharedKey, 0, len(r.Keys))
	all := make([]session.TicketKey, 0, len(r.Keys))
	for _, w := range r.Keys {
		k := &sharedKey{
			TicketKey: session.TicketKey{Cipher: w.Cipher, MAC: w.MAC},
			published: time.UnixMilli(w.Published),
			sealFrom:  time.UnixMilli(w.SealFrom),
			sealUntil: time.UnixMilli(w.SealUntil),
			lifetime:  time.Duration(w.Lifetime) * time.Millisecond,
		}
		const longest = 100 * 365 * 24 * time.Hour
		if copy(k.Name[:], w.Name) != len(k.Name) || len(w.Name) != len(k.Name) ||
			w.Lifetime <= 0 || w.Lifetime > longest.Milliseconds() ||
			w.Published < 0 || w.SealFrom < w.Published || w.SealUntil <= w.SealFrom || w.SealUntil > 1<<43 {
			return nil, errRecord("invalid key")
		}
		keys, all = append(keys, k), append(all, k.TicketKey)
	}
	if len(all) > 0 {
		if _, err := session.NewRing(all...); err != nil { // checks sizes and names
			return nil, errRecord("keys that a ring refuses")
		}
	}
	return keys, nil
}

func errRecord(what string) error {
	return fmt.Errorf("redisstore: reading the ticket keys: %s", what)
}

// newestFirst sorts keys by sealFrom, the latest first; keys with the same time by name, so that
// all members have the same order.
func newestFirst(keys []*sharedKey) {
	slices.SortFunc(keys, func(a, b *sharedKey) int {
		if c := b.sealFrom.Compare(a.sealFrom); c != 0 {
			return c
		}
		return bytes.Compare(b.Name[:], a.Name[:])
	})
}
