package crl

import (
	"cmp"
	"encoding/asn1"
	"encoding/binary"
	"math/big"
	"slices"
)

// A table holds the serial numbers of revoked certificates.
type table struct {
	entries []entry          // sorted
	others  map[string]uint8 // the reasons by the DER of serial numbers that are negative or longer than 20 bytes
}

// An entry is a serial number, as a number of 20 bytes, with the reason. A list has millions of
// them, so it has no pointers.
type entry struct {
	high, middle uint64
	low          uint32
	reason       uint8
}

const serialSize = 20 // RFC 5280, section 4.1.2.2

func newEntry(serial *[serialSize]byte, reason uint8) entry {
	order := binary.BigEndian
	return entry{order.Uint64(serial[:]), order.Uint64(serial[8:]), order.Uint32(serial[16:]), reason}
}

func compareSerials(a, b entry) int {
	switch {
	case a.high != b.high:
		return cmp.Compare(a.high, b.high)
	case a.middle != b.middle:
		return cmp.Compare(a.middle, b.middle)
	}
	return cmp.Compare(a.low, b.low)
}

// add adds the serial number with this body in DER. It doesn't keep the body.
func (t *table) add(body []byte, reason uint8) {
	magnitude := body
	for len(magnitude) > 0 && magnitude[0] == 0 {
		magnitude = magnitude[1:]
	}
	if body[0] >= 0x80 || len(magnitude) > serialSize {
		if t.others == nil {
			t.others = make(map[string]uint8)
		}
		t.others[string(body)] = reason
		return
	}
	var serial [serialSize]byte
	copy(serial[serialSize-len(magnitude):], magnitude)
	t.entries = append(t.entries, newEntry(&serial, reason))
}

// sort must be called after the last add.
func (t *table) sort() {
	if !slices.IsSortedFunc(t.entries, compareSerials) {
		slices.SortFunc(t.entries, compareSerials)
	}
}

// find returns the reason for which a certificate was revoked.
func (t *table) find(serial *big.Int) (reason uint8, revoked bool) {
	if serial.Sign() < 0 || serial.BitLen() > 8*serialSize {
		if len(t.others) == 0 {
			return 0, false
		}
		der, err := asn1.Marshal(serial)
		r := reader(der)
		body, ok := r.read(tagInteger)
		if err != nil || !ok {
			return 0, false
		}
		reason, revoked = t.others[string(body)]
		return reason, revoked
	}
	var bytes [serialSize]byte
	serial.FillBytes(bytes[:])
	i, found := slices.BinarySearchFunc(t.entries, newEntry(&bytes, 0), compareSerials)
	if !found {
		return 0, false
	}
	return t.entries[i].reason, true
}

func (t *table) len() int { return len(t.entries) + len(t.others) }
