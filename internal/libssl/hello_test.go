package libssl

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"testing"
)

func TestParseClientHello(t *testing.T) {
	whole := []byte{3, 3, 0, 4, 0x13, 1, 0x13, 2,
		0, 0, 1, 7, // server_name, which is not read
		10, 0, 4, 0, 2, 0, 29,
		13, 0, 4, 0, 2, 8, 4,
		16, 0, 6, 0, 4, 2, 'h', '2', 0,
		43, 0, 5, 4, 3, 4, 3, 3}
	want := ClientHello{Version: 0x303, Versions: []uint16{0x304, 0x303}, CipherSuites: []uint16{0x1301, 0x1302},
		Groups: []uint16{29}, SignatureSchemes: []uint16{0x804}, Protocols: []string{"h2", ""}}
	if got, ok := ParseClientHello(whole); !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("%v %+v, want %+v", ok, got, want)
	}
	// Malformed bodies give empty lists.
	got, ok := ParseClientHello([]byte{3, 1, 0, 0, 10, 0, 1, 0, 13, 0, 2, 0, 9, 16, 0, 3, 0, 1, 5, 43, 0, 0})
	want = ClientHello{Version: 0x301, Versions: []uint16{}, CipherSuites: []uint16{}, Groups: []uint16{},
		SignatureSchemes: []uint16{}, Protocols: []string{}}
	if !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("%v %+v, want %+v", ok, got, want)
	}
	for _, cut := range [][]byte{nil, {3}, {3, 3}, {3, 3, 0}, {3, 3, 0, 2, 1}, {3, 3, 0, 0, 10}, {3, 3, 0, 0, 10, 0, 1}} {
		if _, ok := ParseClientHello(cut); ok {
			t.Errorf("%x was parsed", cut)
		}
	}
}

// TestParseManyProtocols parses as many protocols as a ClientHello can have: a client must not make a
// server hold them all.
func TestParseManyProtocols(t *testing.T) {
	const n = 21000
	parts := []byte{3, 3, 0, 0, 16}
	list := bytes.Repeat([]byte{2, 'h', '2'}, n)
	parts = binary.BigEndian.AppendUint16(parts, uint16(len(list)+2))
	parts = append(binary.BigEndian.AppendUint16(parts, uint16(len(list))), list...)
	h, ok := ParseClientHello(parts)
	if !ok || len(h.Protocols) != MaxProtocols || h.MoreProtocols != n-MaxProtocols {
		t.Errorf("%v, %d protocols and %d more", ok, len(h.Protocols), h.MoreProtocols)
	}
	if n := testing.AllocsPerRun(10, func() { ParseClientHello(parts) }); n > 2*MaxProtocols {
		t.Errorf("%v allocations", n)
	}
}

func FuzzParseClientHello(f *testing.F) {
	f.Add([]byte{3, 3, 0, 2, 0x13, 1, 16, 0, 5, 0, 3, 2, 'h', '2', 43, 0, 3, 2, 3, 4})
	f.Fuzz(func(t *testing.T, parts []byte) {
		h, _ := ParseClientHello(parts)
		n := 2 * (len(h.Versions) + len(h.CipherSuites) + len(h.Groups) + len(h.SignatureSchemes))
		for _, name := range h.Protocols {
			n += 1 + len(name)
		}
		// An extension that comes twice, which libssl refuses, counts once.
		if n > len(parts) {
			t.Fatalf("%+v has more than %d bytes", h, len(parts))
		}
	})
}
