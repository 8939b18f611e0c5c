package record

import (
	"bytes"
	"crypto/tls"
	"errors"
	"testing"
)

func TestMaxCiphertext(t *testing.T) {
	if got := MaxCiphertext(tls.VersionTLS13); got != 16384+256 {
		t.Errorf("TLS 1.3: %d", got)
	}
	if got := MaxCiphertext(tls.VersionTLS12); got != 16384+2048 {
		t.Errorf("TLS 1.2: %d", got)
	}
}

func TestCheckFirst(t *testing.T) {
	for _, test := range []struct {
		name   string
		header []byte
		alert  int
		msg    string
	}{
		{"hello", []byte{Handshake, 3, 1, 0, 1}, NoAlert, ""},
		{"alert", []byte{Alert, 3, 3, 0, 2}, NoAlert, ""},
		{"length is ignored", []byte{Handshake, 3, 3, 0xff, 0xff}, NoAlert, ""},
		{"SSLv2", []byte{0x80, 46, 1, 0, 2}, AlertProtocolVersion, "unsupported SSLv2 handshake received"},
		{"data", []byte{ApplicationData, 3, 3, 0, 1}, NoAlert, "first record does not look like a TLS handshake"},
		{"HTTP", []byte("GET /"), NoAlert, "first record does not look like a TLS handshake"},
		{"version", []byte{Handshake, 0x10, 0, 0, 1}, NoAlert, "first record does not look like a TLS handshake"},
	} {
		t.Run(test.name, func(t *testing.T) {
			alert, err := CheckFirst(test.header, nil)
			var header tls.RecordHeaderError
			if alert != test.alert || errors.As(err, &header) != (test.msg != "") || header.Msg != test.msg {
				t.Errorf("alert %d, %v, want %d, %q", alert, err, test.alert, test.msg)
			}
			if err != nil && !bytes.Equal(header.RecordHeader[:], test.header) {
				t.Errorf("the error has the header %x", header.RecordHeader)
			}
		})
	}
}

func TestLongHello(t *testing.T) {
	for _, test := range []struct {
		name string
		data []byte
		want int
	}{
		{"longest", []byte{Handshake, 3, 1, 0, 4, 1, 1, 0, 0}, 0},
		{"too long", []byte{Handshake, 3, 1, 0, 4, 1, 1, 0, 1}, 65537},
		{"another record", []byte{Alert, 3, 1, 0, 4, 1, 1, 0, 1}, 0},
		{"split header", []byte{Handshake, 3, 1, 0, 3, 1, 1, 0, Handshake, 3, 1, 0, 1, 1}, 0},
		{"incomplete record", []byte{Handshake, 3, 1, 0, 5, 1, 1, 0, 1}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := LongHello(test.data); got != test.want {
				t.Errorf("%d, want %d", got, test.want)
			}
		})
	}
}

func TestEndsWithAlert(t *testing.T) {
	hello := []byte{Handshake, 3, 3, 0, 1, 0}
	sealed := append([]byte{ApplicationData, 3, 3, 0, 19}, make([]byte, 19)...)
	for _, test := range []struct {
		name string
		data []byte
		want bool
	}{
		{"nothing", nil, false},
		{"handshake", hello, false},
		{"plaintext alert", PlaintextAlert(AlertBadCertificate), true},
		{"handshake, alert", append(hello[:len(hello):len(hello)], PlaintextAlert(AlertBadCertificate)...), true},
		{"alert, handshake", append(PlaintextAlert(AlertBadCertificate), hello...), false},
		{"of an alert's length", sealed, true},
		{"longer", append([]byte{ApplicationData, 3, 3, 0, 20}, make([]byte, 20)...), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := EndsWithAlert(test.data); got != test.want {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}

// FuzzScanner compares following a stream in one piece with following it in two.
func FuzzScanner(f *testing.F) {
	f.Add([]byte{22, 3, 3, 0, 2, 1, 2, 20, 3, 3, 0, 1, 1}, 3)
	f.Add([]byte{23, 3, 3, 0, 0, 23, 3, 3, 0, 0}, 5)
	f.Fuzz(func(t *testing.T, stream []byte, cut int) {
		cut = max(0, min(cut, len(stream)))
		var one, two Scanner
		one.Scan(stream)
		two.Scan(stream[:cut])
		two.Scan(stream[cut:])
		if one.AtBoundary() != two.AtBoundary() || one.left != two.left || one.have != two.have {
			t.Fatalf("%+v and %+v", one, two)
		}
		rest := stream
		for len(rest) >= HeaderLen {
			n := HeaderLen + ParseHeader(rest).Len
			if n > len(rest) {
				break
			}
			rest = rest[n:]
		}
		if one.AtBoundary() != (len(rest) == 0) {
			t.Fatalf("at a boundary: %v, with %d bytes left", one.AtBoundary(), len(rest))
		}
	})
}

// FuzzReplaceAlert checks that only the description of a plaintext fatal alert at the end changes.
func FuzzReplaceAlert(f *testing.F) {
	f.Add([]byte{21, 3, 3, 0, 2, 2, 40}, byte(42))
	f.Add([]byte{23, 3, 3, 0, 2, 2, 40}, byte(42))
	f.Add([]byte{2, 40}, byte(42))
	f.Fuzz(func(t *testing.T, out []byte, alert byte) {
		before := bytes.Clone(out)
		ReplaceAlert(out, alert)
		if n := len(out) - 1; n >= 0 && !bytes.Equal(before[:n], out[:n]) {
			t.Fatal("changed more than the description")
		}
		isAlert := len(out) >= 7 && before[len(out)-7] == Alert && before[len(out)-6] == 3 &&
			before[len(out)-4] == 0 && before[len(out)-3] == 2 && before[len(out)-2] == LevelFatal
		if changed := !bytes.Equal(before, out); changed && !isAlert {
			t.Fatal("changed a record that isn't an alert")
		} else if isAlert && out[len(out)-1] != alert {
			t.Fatal("did not change an alert")
		}
	})
}
