//go:build cgo || ossl_nocgo

package libssl_test

import (
	"bytes"
	"crypto/tls"
	"testing"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestTrafficLimits tests the limits in RFC 8446, sections 5.1, 5.2 and 5.4: the last allowed value
// and the next one.
func TestTrafficLimits(t *testing.T) {
	const data = tlstest.TypeApplicationData
	raw := func(typ byte, version uint16, n int) func(*tlstest.Keys) []byte {
		return func(*tlstest.Keys) []byte { return tlstest.MakeRecord(typ, version, textOf(n)) }
	}
	padded := func(typ byte, n, padding int) func(*tlstest.Keys) []byte {
		return func(k *tlstest.Keys) []byte { return k.SealPadded(typ, textOf(n), padding) }
	}
	inner := func(b []byte) func(*tlstest.Keys) []byte {
		return func(k *tlstest.Keys) []byte { return k.SealInner(b) }
	}
	relabelled := func(typ byte) func(*tlstest.Keys) []byte {
		return func(k *tlstest.Keys) []byte {
			// Authentic, but with another outer type: only a peer with the keys can make it.
			return k.SealOuter(typ, append(textOf(4), data))
		}
	}
	const accepted = 0
	for _, test := range []struct {
		name   string
		record func(*tlstest.Keys) []byte
		alert  uint8
	}{
		{"content of 2^14", padded(data, maxText, 0), accepted},
		{"content of 2^14+1", padded(data, maxText+1, 0), alertRecordOverflow},
		{"content of 2^14+1, a handshake message", padded(tlstest.TypeHandshake, maxText+1, 0), alertRecordOverflow},
		{"content of 2^14+1, an alert", padded(tlstest.TypeAlert, maxText+1, 0), alertRecordOverflow},
		{"padding up to 2^14", padded(data, 4, maxText-4), accepted},
		{"padding one over", padded(data, 4, maxText-3), alertRecordOverflow},
		{"padding of an empty text up to 2^14", padded(data, 0, maxText), accepted},
		{"padding of an empty text one over", padded(data, 0, maxText+1), alertRecordOverflow},
		{"the longest ciphertext", inner(append(textOf(maxText+240-1), data)), alertRecordOverflow},
		{"the longest ciphertext, padded", inner(append([]byte{1, data}, make([]byte, maxText+240-2)...)), alertRecordOverflow},
		{"the longest ciphertext, all zeros", inner(make([]byte, maxText+240)), alertRecordOverflow},
		{"a length of 2^14+256, not authentic", raw(data, tls.VersionTLS12, maxText+256), alertBadRecordMAC},
		{"a length of 2^14+257", raw(data, tls.VersionTLS12, maxText+257), alertRecordOverflow},
		{"a length of 2^16-1", raw(data, tls.VersionTLS12, 1<<16-1), alertRecordOverflow},
		{"no content", padded(data, 0, 0), accepted},
		{"no content, a handshake message", padded(tlstest.TypeHandshake, 0, 0), accepted}, // for record.Reader to refuse
		{"no inner plaintext", inner(nil), alertUnexpectedMessage},
		{"one zero", inner([]byte{0}), alertUnexpectedMessage},
		{"16 zeros", inner(make([]byte, 16)), alertUnexpectedMessage},
		{"1023 zeros", inner(make([]byte, 1023)), alertUnexpectedMessage},
		{"2^14 zeros", inner(make([]byte, maxText)), alertUnexpectedMessage},
		{"2^14+1 zeros", inner(make([]byte, maxText+1)), alertUnexpectedMessage},
		{"2^14+2 zeros", inner(make([]byte, maxText+2)), alertRecordOverflow},
		{"outer type handshake", relabelled(tlstest.TypeHandshake), alertUnexpectedMessage},
		{"outer type alert", relabelled(tlstest.TypeAlert), alertUnexpectedMessage},
		{"outer type 0", relabelled(0), alertUnexpectedMessage},
		{"version 3.1", raw(data, tls.VersionTLS10, 40), alertProtocolVersion},
		{"version 3.4", raw(data, tls.VersionTLS13, 40), alertProtocolVersion},
		{"version 2.3", raw(data, 0x0203, 40), alertProtocolVersion},
		{"version 0", raw(data, 0, 40), alertProtocolVersion},
		{"version before length", raw(data, tls.VersionTLS13, maxText+257), alertProtocolVersion},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, suite := range suites13 {
				for _, room := range []int{1, 16, 100, maxText, maxText + 1, maxText + 1000} {
					secret := secretOf(suite, 7)
					c, keys := ofSecrets(t, suite, secret, nil), keysOf(t, suite, secret)
					record := test.record(keys)
					if test.alert == accepted {
						opened(t, c, record, room)
					} else {
						refuses(t, c, record, room, test.alert)
					}
				}
			}
		})
	}
	// Records too short to hold a tag, and some that are just long enough.
	for n := range 40 {
		c := ofSecrets(t, suites13[n%3], secretOf(suites13[n%3], 8), nil)
		refuses(t, c, tlstest.MakeRecord(data, tls.VersionTLS12, textOf(n)), 100, alertBadRecordMAC)
	}
}

// TestTrafficChangeCipherSpec: in TLS 1.3 such a record is never protected, and does not count.
func TestTrafficChangeCipherSpec(t *testing.T) {
	eachSuite(t, func(t *testing.T, suite uint16) {
		secret := secretOf(suite, 9)
		c, keys := ofSecrets(t, suite, secret, nil), keysOf(t, suite, secret)
		for _, text := range [][]byte{{1}, {}, {2}, textOf(300), textOf(maxText + 256)} {
			in := append(tlstest.MakeRecord(tlstest.TypeChangeCipherSpec, tls.VersionTLS12, text), keys.Seal(23, []byte("data"))...)
			dst := filled(100)
			o := c.Open(in, dst)
			if o.Status != libssl.Record || o.Type != tlstest.TypeChangeCipherSpec || o.N != 0 ||
				!bytes.Equal(in[o.At:o.At+o.Len], text) || o.Consumed != headerLen+len(text) {
				t.Fatalf("ChangeCipherSpec of %d bytes: %+v", len(text), o)
			}
			if _, got := opened(t, c, in[o.Consumed:], 100); string(got) != "data" {
				t.Fatalf("then %q", got)
			}
		}
		refuses(t, c, tlstest.MakeRecord(tlstest.TypeChangeCipherSpec, tls.VersionTLS12, textOf(maxText+257)), 100, alertRecordOverflow)
	})
}

// TestTrafficTruncated: nothing happens before a record is complete, at whichever byte it is cut.
func TestTrafficTruncated(t *testing.T) {
	eachSuite(t, func(t *testing.T, suite uint16) {
		secret := secretOf(suite, 10)
		c, keys := ofSecrets(t, suite, secret, nil), keysOf(t, suite, secret)
		text := textOf(70)
		record := keys.Seal(tlstest.TypeApplicationData, text)
		for n := range record {
			in, dst := bytes.Clone(record[:n]), filled(100)
			o := c.Open(in, dst)
			if o.Status != libssl.WantRead || o.Consumed != 0 || o.N != 0 {
				t.Fatalf("%d of %d bytes: %+v", n, len(record), o)
			}
			if !bytes.Equal(in, record[:n]) || !bytes.Equal(dst, filled(100)) {
				t.Fatalf("%d of %d bytes: a buffer was changed", n, len(record))
			}
		}
		// The same after a complete record. Its content type may be left behind its text: io.Reader
		// allows that.
		second := keys.Seal(tlstest.TypeApplicationData, text)
		in, dst := append(record, second[:len(second)-1]...), filled(200)
		o := c.Open(in, dst)
		if o.Status != libssl.WantRead || o.Consumed != len(record) || !bytes.Equal(dst[:70], text) ||
			!bytes.Equal(dst[71:], filled(129)) {
			t.Fatalf("one and a part: %+v", o)
		}
		if _, got := opened(t, c, second, 100); !bytes.Equal(got, text) {
			t.Fatalf("then %q", got)
		}
	})
}

// TestTrafficFlippedBits changes each bit of a record once. None of its text may be left anywhere,
// and the previous record, from the same call, stays.
func TestTrafficFlippedBits(t *testing.T) {
	eachSuite(t, func(t *testing.T, suite uint16) {
		secret := secretOf(suite, 11)
		for _, n := range []int{1, 70} {
			for _, room := range []int{10, 10 + n/2, 10 + n, 10 + n + 1, 200} {
				keys := keysOf(t, suite, secret)
				good, record := keys.Seal(tlstest.TypeApplicationData, textOf(10)), keys.Seal(tlstest.TypeApplicationData, textOf(n))
				for bit := range 8 * len(record) {
					bad := bytes.Clone(record)
					bad[bit/8] ^= 1 << (bit % 8)
					flipped(t, suite, secret, good, bad, bit, room)
				}
			}
		}
	})
}

func flipped(t *testing.T, suite uint16, secret, good, bad []byte, bit, room int) {
	t.Helper()
	conn, err := contextOf(t).OfSecrets(libssl.TrafficSecrets(suite, secret, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Free(false, nil)
	c := sidesOf(conn)
	want := uint8(alertBadRecordMAC)
	switch length := int(bad[3])<<8 | int(bad[4]); {
	case bit/8 == 1 || bit/8 == 2:
		want = alertProtocolVersion
	case length > maxText+256:
		want = alertRecordOverflow
	case length > len(bad)-headerLen: // not whole
		bad = append(bad, filled(length)...)
	}
	in, dst := append(bytes.Clone(good), bad...), filled(room)
	before := bytes.Clone(in)
	o := c.Open(in, dst)
	if o.Status == libssl.Done && o.Consumed == len(good) && o.N == 10 { // no room for both: the second one comes alone
		if !unused(dst[10:]) || !bytes.Equal(in[len(good):], before[len(good):]) {
			t.Fatalf("bit %d, room for %d: a buffer was changed beyond the first record", bit, room)
		}
		in, dst = in[o.Consumed:], append(textOf(10), filled(room)...)
		before = bytes.Clone(in)
		o = c.Open(in, dst[10:])
		o.N, o.Consumed = o.N+10, o.Consumed+len(good)
		good = nil
	}
	if o.Status != libssl.Fatal || o.Alert != want || o.N != 10 {
		t.Fatalf("bit %d, room for %d: %+v, want alert %d", bit, room, o, want)
	}
	if !bytes.Equal(dst[:10], textOf(10)) {
		t.Errorf("bit %d, room for %d: the record before it is gone", bit, room)
	}
	if room > 10 && dst[10] == tlstest.TypeApplicationData { // the previous record's content type
		dst[10] = 0
	}
	for i, b := range dst[10:] {
		if b != filler && b != 0 {
			t.Fatalf("bit %d, room for %d: byte %d of the destination is %#x", bit, room, 10+i, b)
		}
	}
	for i := len(good); i < len(in); i++ {
		if in[i] != before[i] && in[i] != 0 {
			t.Fatalf("bit %d, room for %d: byte %d of the input is %#x", bit, room, i, in[i])
		}
	}
	// It stays refused: the sequence number is unchanged, and the input is no longer the original.
	if o := c.Open(in[len(good):], filled(room)); o.N != 0 || o.Status == libssl.Done {
		t.Fatalf("bit %d, room for %d: then %+v", bit, room, o)
	}
}

// TestTrafficDestinations reads a stream of records through destinations of all kinds of sizes: the
// same bytes come out.
func TestTrafficDestinations(t *testing.T) {
	eachSuite(t, func(t *testing.T, suite uint16) {
		secret := secretOf(suite, 12)
		for _, size := range []int{1, 2, 16, 17, 100, 1000, 1023, 1024, 5000, maxText, 20000} {
			text := textOf(3*size + size/2)
			keys := keysOf(t, suite, secret)
			var stream []byte
			for rest := text; len(rest) > 0; {
				n := min(size, len(rest), maxText)
				stream = append(stream, keys.SealPadded(tlstest.TypeApplicationData, rest[:n], min(n%5, maxText-n))...)
				rest = rest[n:]
			}
			for _, room := range []int{0, 1, 2, 15, 16, 17, 18, 99, 100, 101, 999, 1000, 1001, 1023, 1024, 1025, 5000, maxText - 1,
				maxText, maxText + 1, maxText + 17, 19999, 20000, 20001, 70000} {
				if room > 0 && len(text)/room > 3000 {
					continue // a byte at a time of the longest
				}
				readInParts(t, suite, secret, stream, text, size, room)
			}
		}
	})
}

func readInParts(t *testing.T, suite uint16, secret, stream, text []byte, size, room int) {
	t.Helper()
	conn, err := contextOf(t).OfSecrets(libssl.TrafficSecrets(suite, secret, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Free(false, nil)
	c := sidesOf(conn)
	in, before := bytes.Clone(stream), stream
	var got []byte
	for len(in) > 0 {
		buf := filled(room + 10)
		o := c.Open(in, buf[:room])
		if o.Status == libssl.Fatal || o.N > room || !unused(buf[o.N:room]) {
			t.Fatalf("records of %d into %d: %+v", size, room, o)
		}
		if !bytes.Equal(buf[room:], filled(10)) {
			t.Fatalf("records of %d into %d: written beyond the destination", size, room)
		}
		if room == 0 {
			if o.Status != libssl.Done || o.Consumed != 0 || !bytes.Equal(in, before) {
				t.Fatalf("no room at all: %+v", o)
			}
			return
		}
		got = append(got, buf[:o.N]...)
		if o.Status == libssl.Record {
			if o.Type != tlstest.TypeApplicationData || o.Len == 0 {
				t.Fatalf("records of %d into %d: %+v", size, room, o)
			}
			got = append(got, in[o.At:o.At+o.Len]...)
		} else if o.N == 0 {
			t.Fatalf("records of %d into %d: no progress, %+v", size, room, o)
		}
		in = in[o.Consumed:]
	}
	if !bytes.Equal(got, text) {
		t.Fatalf("records of %d into %d: %d bytes of %d, or others", size, room, len(got), len(text))
	}
}

// unused reports whether only padding, which is zeros, and content types were written to b.
func unused(b []byte) bool {
	for _, v := range b {
		if v != 0 && v != filler && v != tlstest.TypeApplicationData {
			return false
		}
	}
	return true
}
