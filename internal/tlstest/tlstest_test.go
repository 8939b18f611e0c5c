package tlstest_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/ossl-go/ossl/internal/tlstest"
)

func TestPipeKeepsWhatWasWrittenBeforeClose(t *testing.T) {
	a, b := tlstest.NewPipe()
	a.Write([]byte("last words"))
	a.Close()
	got, err := io.ReadAll(b)
	if string(got) != "last words" || err != nil {
		t.Fatalf("read %q, %v", got, err)
	}
	if n, err := b.Write([]byte("too late")); n != 8 || err != nil {
		t.Errorf("a write to a closed peer: %d, %v", n, err)
	}
	if _, err := a.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("reading a closed end: %v", err)
	}
	if _, err := a.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("writing a closed end: %v", err)
	}
}

func TestPipeDeadline(t *testing.T) {
	a, b := tlstest.NewPipe()
	defer b.Close()
	done := make(chan error)
	go func() {
		_, err := a.Read(make([]byte, 1))
		done <- err
	}()
	a.WaitStarved()
	a.SetReadDeadline(time.Now().Add(time.Millisecond))
	if err := <-done; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	a.SetReadDeadline(time.Time{})
	b.Write([]byte("x"))
	if _, err := a.Read(make([]byte, 1)); err != nil {
		t.Errorf("after the deadline was taken back: %v", err)
	}
}

func TestFaults(t *testing.T) {
	for _, test := range []struct {
		name  string
		fault tlstest.Fault
		want  string
	}{
		{"cut", tlstest.CutAfter(4), "\x16\x03\x03\x00"},
		{"hang", tlstest.HangAfter(7), "\x16\x03\x03\x00\x02ab"},
		{"flip", tlstest.FlipAt(6, 0x20), "\x16\x03\x03\x00\x02aB\x17\x03\x03\x00\x01c"},
		{"chunks", tlstest.Chunks(1), "\x16\x03\x03\x00\x02ab\x17\x03\x03\x00\x01c"},
		{"coalesce", tlstest.Coalesce(), "\x16\x03\x03\x00\x02ab\x17\x03\x03\x00\x01c"},
		{"insert", tlstest.Insert(7, []byte("zz")), "\x16\x03\x03\x00\x02abzz\x17\x03\x03\x00\x01c"},
		{"drop a record", tlstest.Records(func(i int, r []byte) [][]byte {
			if i == 0 {
				return nil
			}
			return [][]byte{r}
		}), "\x17\x03\x03\x00\x01c"},
		{"end at a record", tlstest.Records(func(i int, r []byte) [][]byte {
			if i == 1 {
				return [][]byte{nil}
			}
			return [][]byte{r}
		}), "\x16\x03\x03\x00\x02ab"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, b := tlstest.NewPipe()
			defer a.Close()
			c := tlstest.WithFault(a, test.fault)
			for _, p := range []string{"\x16\x03\x03", "\x00\x02ab\x17", "\x03\x03\x00\x01c"} {
				if n, err := c.Write([]byte(p)); n != len(p) || err != nil {
					t.Fatalf("Write: %d, %v", n, err)
				}
			}
			b.CloseWrite()
			c.Read(make([]byte, 1)) // flushes the coalesced bytes
			a.CloseWrite()
			got, err := io.ReadAll(b)
			if string(got) != test.want || err != nil {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

// The recording of a crypto/tls connection deciphers to the bytes that client and server wrote, and
// keys taken from it seal records that crypto/tls accepts. The differential suite's claims on
// alerts depend on this.
func TestDecipherAndSeal(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, suite := range []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384} {
			t.Run(tls.VersionName(version)+"/"+tls.CipherSuiteName(suite), func(t *testing.T) {
				edit := func(c *tls.Config) {
					c.MinVersion, c.MaxVersion, c.CipherSuites = version, version, []uint16{suite}
				}
				o := tlstest.Run(tlstest.Pairing{Client: tlstest.Std, Server: tlstest.Std}, tlstest.Case{
					Client: func() *tls.Config { return tlstest.ClientConfig(edit) },
					Server: func() *tls.Config { return tlstest.ServerConfig(edit) },
				})
				if o.Hung || o.Client.Talk != "ok" || o.Server.Talk != "ok" {
					t.Fatalf("hung %v, client %v %v, server %v %v", o.Hung, o.Client.HandshakeErr, o.Client.TalkErr,
						o.Server.HandshakeErr, o.Server.TalkErr)
				}
				for _, role := range []tlstest.Role{tlstest.ClientRole, tlstest.ServerRole} {
					var data []byte
					records := o.Recording.Decipher(role, o.ClientLog)
					for _, r := range records {
						if r.Opaque {
							t.Errorf("%s: a record of type %d stayed opaque", role, r.Type)
						}
						if r.Type == tlstest.TypeApplicationData {
							data = append(data, r.Payload...)
						}
					}
					if string(data) != "hello over TLS" {
						t.Errorf("%s wrote %q", role, data)
					}
					if a := tlstest.Alerts(records); len(a) != 1 || a[0] != (tlstest.Alert{Level: 1, Description: 0}) {
						t.Errorf("%s sent alerts %v, want its close_notify", role, a)
					}
				}
			})
		}
	}
}

// Sealed records of every direction and version are accepted by crypto/tls.
func TestSealedRecordsAreAccepted(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, from := range []tlstest.Role{tlstest.ClientRole, tlstest.ServerRole} {
			t.Run(tls.VersionName(version)+"/"+string(from), func(t *testing.T) {
				edit := func(c *tls.Config) { c.MinVersion, c.MaxVersion = version, version }
				s := tlstest.Hijack(t, tlstest.Std, from, tlstest.ClientConfig(edit), tlstest.ServerConfig(edit))
				s.Send(tlstest.TypeApplicationData, []byte("sealed by hand"))
				if version == tls.VersionTLS13 {
					s.Send(tlstest.TypeHandshake, []byte{tlstest.MsgKeyUpdate, 0, 0, 1, 1})
					s.Rekey()
					s.Send(tlstest.TypeApplicationData, []byte(" and again"))
				}
				s.Send(tlstest.TypeAlert, []byte{1, 0})
				got, err := io.ReadAll(s.Victim)
				want := "sealed by hand"
				if version == tls.VersionTLS13 {
					want += " and again"
				}
				if string(got) != want || err != nil {
					t.Fatalf("read %q, %v", got, err)
				}
				if _, err := s.Victim.Write([]byte("answer")); err != nil {
					t.Fatal(err)
				}
				var data []byte
				for _, r := range s.Received() {
					if r.Type == tlstest.TypeApplicationData {
						data = append(data, r.Payload...)
					}
				}
				if !bytes.Equal(data, []byte("answer")) {
					t.Errorf("the victim's records hold %q", data)
				}
			})
		}
	}
}

func TestLoopback(t *testing.T) {
	o := tlstest.Run(tlstest.Pairing{Client: tlstest.Std, Server: tlstest.Std}, tlstest.Case{Pair: tlstest.Loopback})
	if o.Hung || o.Client.Talk != "ok" || o.Server.Talk != "ok" {
		t.Fatalf("hung %v, client %v %v, server %v %v", o.Hung, o.Client.HandshakeErr, o.Client.TalkErr,
			o.Server.HandshakeErr, o.Server.TalkErr)
	}
}
