package connstate_test

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"reflect"
	"testing"

	"github.com/ossl-go/ossl/internal/connstate"
	"github.com/ossl-go/ossl/internal/libssl"
)

// full returns a state in which each field has a value of its own.
func full(t testing.TB) *connstate.State {
	t.Helper()
	s := &connstate.State{Number: 1 << 63, Opened: -5, SentRecords: 7, SentBytes: 1 << 40, Text: 3, Tail: 2, Ignored: 9,
		Version: 0x0304, Suite: 0x1301, Group: 29, Client: true, Held: true, HelloRetry: true}
	s.Secrets = libssl.Secrets{Suite: 0x1301, Server: 1, Sides: 3, Kernel: 1, ReadSeq: 1<<64 - 1, WriteSeq: 2, Nonce: 1<<63 + 1}
	for _, b := range [][]byte{s.Process[:], s.Secrets.Read[:], s.Secrets.Write[:], s.Secrets.Exporter[:], s.Secrets.Randoms[:]} {
		if _, err := rand.Read(b); err != nil {
			t.Fatal(err)
		}
	}
	for i, text := range []*[]byte{&s.Protocol, &s.ServerName, &s.Unique, &s.PSKIdentity, &s.SessionID, &s.Kernel, &s.Message,
		&s.Output, &s.OCSP} {
		*text = bytes.Repeat([]byte{byte(i + 1)}, i+1)
	}
	s.Input = []byte("texttail and more")
	leaf, ca, root := []byte("leaf"), []byte("ca"), []byte("root")
	s.Peer, s.Verified = [][]byte{leaf, ca}, [][][]byte{{leaf, ca, root}, {leaf, root}}
	s.Local, s.SCTs = [][]byte{ca}, [][]byte{[]byte("a"), []byte("bc")}
	return s
}

func encode(t testing.TB, s *connstate.State) []byte {
	t.Helper()
	b, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestEncode(t *testing.T) {
	for _, s := range []*connstate.State{full(t), {}} {
		b := encode(t, s)
		got, err := connstate.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, s) {
			t.Errorf("%+v, want %+v", got, s)
		}
		if len(b) != cap(b) {
			t.Errorf("%d bytes in %d: append has left copies", len(b), cap(b))
		}
	}
}

// TestFlags: each flag comes back, and no other.
func TestFlags(t *testing.T) {
	v := reflect.ValueOf(connstate.State{})
	flags := 0
	for i := range v.NumField() {
		if v.Field(i).Kind() != reflect.Bool {
			continue
		}
		flags++
		var s connstate.State
		reflect.ValueOf(&s).Elem().Field(i).SetBool(true)
		got, err := connstate.Decode(encode(t, &s))
		if err != nil || !reflect.DeepEqual(got, &s) {
			t.Errorf("%s: %+v, %v", v.Type().Field(i).Name, got, err)
		}
	}
	if flags != 9 {
		t.Errorf("%d flags", flags)
	}
}

// TestDamaged: a state that is cut, longer, or changed in any byte is refused.
func TestDamaged(t *testing.T) {
	b := encode(t, full(t))
	for n := range b {
		if _, err := connstate.Decode(b[:n]); !errors.Is(err, connstate.ErrDamaged) {
			t.Errorf("%d bytes of %d: %v", n, len(b), err)
		}
		changed := bytes.Clone(b)
		changed[n] ^= 0x40
		want := connstate.ErrDamaged
		if n == 4 || n == 5 {
			want = connstate.ErrVersion
		}
		if _, err := connstate.Decode(changed); !errors.Is(err, want) {
			t.Errorf("byte %d changed: %v", n, err)
		}
	}
	if _, err := connstate.Decode(append(bytes.Clone(b), 0)); !errors.Is(err, connstate.ErrDamaged) {
		t.Errorf("a byte more: %v", err)
	}
}

func TestSplit(t *testing.T) {
	b := encode(t, full(t))
	core, blobs, err := connstate.Split(b)
	if err != nil {
		t.Fatal(err)
	}
	sums := map[[sha256.Size]byte][]byte{}
	for _, blob := range blobs {
		sums[sha256.Sum256(blob)] = blob
	}
	if len(sums) != 6 || len(blobs) != 6 { // three certificates, two SCTs, the OCSP response
		t.Errorf("%d blobs, %d different ones", len(blobs), len(sums))
	}
	joined, err := connstate.Join(core, func(sum [sha256.Size]byte) []byte { return sums[sum] })
	if err != nil || !bytes.Equal(joined, b) {
		t.Errorf("joined: %v", err)
	}
	if _, err := connstate.Join(core, func([sha256.Size]byte) []byte { return nil }); !errors.Is(err, connstate.ErrDamaged) {
		t.Errorf("without the blobs: %v", err)
	}
	joined, err = connstate.Join(core, func([sha256.Size]byte) []byte { return []byte("another") })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := connstate.Decode(joined); !errors.Is(err, connstate.ErrDamaged) {
		t.Errorf("with other blobs: %v", err)
	}
}

func TestLong(t *testing.T) {
	for name, s := range map[string]*connstate.State{
		"input": {Input: make([]byte, 1<<24)},
		"name":  {ServerName: make([]byte, 1<<16)},
		"blob":  {OCSP: make([]byte, 1<<24)},
	} {
		if _, err := s.Encode(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// FuzzDecode: what Decode accepts, Encode makes of it again. The MAC is right for a part of the inputs only, so
// the fuzzer also changes a state's fields.
func FuzzDecode(f *testing.F) {
	f.Add(encode(f, full(f)))
	f.Add(encode(f, &connstate.State{}))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, b := range [][]byte{b, connstate.Resign(b)} {
			s, err := connstate.Decode(b)
			core, _, splitErr := connstate.Split(b)
			if splitErr == nil {
				_, _ = connstate.Join(core, func([sha256.Size]byte) []byte { return []byte("blob") })
			}
			if err != nil {
				continue
			}
			if splitErr != nil {
				t.Error(splitErr)
			}
			again, err := connstate.Decode(encode(t, s))
			if err != nil || !reflect.DeepEqual(again, s) {
				t.Errorf("%+v, %v", again, err)
			}
		}
	})
}
