//go:build cgo || ossl_nocgo

package libssl_test

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"hash"
	"math"
	"sync"
	"testing"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// The record path compared with an independent one: tlstest's, which uses Go's AEADs and its own
// ChaCha20-Poly1305.

const (
	alertUnexpectedMessage = 10
	alertBadRecordMAC      = 20
	alertRecordOverflow    = 22
	alertProtocolVersion   = 70
	alertInternalError     = 80

	headerLen = 5
	tagLen    = 16
	maxText   = 1 << 14
	// keyLimit is the number of records that a key seals.
	keyLimit = 1 << 24
)

var suites13 = []uint16{tls.TLS_AES_128_GCM_SHA256, tls.TLS_AES_256_GCM_SHA384, tls.TLS_CHACHA20_POLY1305_SHA256}

func hashOf(suite uint16) func() hash.Hash {
	if suite == tls.TLS_AES_256_GCM_SHA384 {
		return sha512.New384
	}
	return sha256.New
}

func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

// secretOf returns a secret for a suite, another one for each seed.
func secretOf(suite uint16, seed byte) []byte {
	h := hashOf(suite)()
	h.Write([]byte{seed})
	return h.Sum(nil)
}

// textOf returns text without zeros, and without 0xaa, which the tests fill buffers with.
func textOf(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(1 + (i*7+i/151)%160)
	}
	return b
}

const filler = 0xaa

func filled(n int) []byte { return bytes.Repeat([]byte{filler}, n) }

var trafficContext = sync.OnceValues(func() (*libssl.Context, error) {
	return libssl.NewContext(&libssl.ContextConfig{
		MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS13, SecurityLevel: -1, DirectRecords: true, SealRefusals: true,
	})
})

// contextOf returns the context that all these tests share.
func contextOf(t testing.TB) *libssl.Context {
	t.Helper()
	if _, err := libssl.Load(""); err != nil {
		t.Fatal(err)
	}
	ctx, err := trafficContext()
	if err != nil {
		t.Fatal(err)
	}
	return ctx
}

// ofSecrets makes a connection that is freed with the test.
func ofSecrets(t testing.TB, suite uint16, read, write []byte) sides {
	t.Helper()
	c, err := contextOf(t).OfSecrets(libssl.TrafficSecrets(suite, read, write))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Free(false, nil) })
	return sidesOf(c)
}

// sides are the two sides of a connection, with results by value.
type sides struct {
	read  *libssl.ReadSide
	write *libssl.WriteSide
}

func sidesOf(c *libssl.Conn) (s sides) {
	s.read, s.write = c.Sides()
	return s
}

func (s sides) Open(in, dst []byte) (o libssl.Opened) {
	s.read.Open(&o, in, dst)
	return o
}

func (s sides) Seal(typ uint8, src, out []byte, payload, first, grown int) (step libssl.Step) {
	s.write.Seal(&step, typ, src, out, payload, first, grown)
	return step
}

func keysOf(t testing.TB, suite uint16, secret []byte) *tlstest.Keys {
	t.Helper()
	k, err := tlstest.Keys13(suite, secret)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func eachSuite(t *testing.T, test func(t *testing.T, suite uint16)) {
	for _, suite := range suites13 {
		t.Run(tls.CipherSuiteName(suite), func(t *testing.T) { test(t, suite) })
	}
}

// seal seals one record.
func seal(t testing.TB, c sides, typ uint8, text []byte) []byte {
	t.Helper()
	out := make([]byte, len(text)+100)
	step := c.Seal(typ, text, out, 0, 0, 0)
	if step.Status != libssl.Done || step.N != len(text) || step.Records != 1 {
		t.Fatalf("sealing %d bytes: %+v", len(text), step)
	}
	return out[:step.Produced]
}

// opened is the result of opening one record: its type and its text, wherever that was left.
func opened(t testing.TB, c sides, record []byte, room int) (uint8, []byte) {
	t.Helper()
	in, dst := bytes.Clone(record), make([]byte, room)
	o := c.Open(in, dst)
	if o.Status == libssl.Fatal || o.Consumed != len(in) {
		t.Fatalf("opening %d bytes: %+v", len(in), o)
	}
	text := dst[:o.N]
	if o.Status == libssl.Record {
		return o.Type, append(text, in[o.At:o.At+o.Len]...)
	}
	return tlstest.TypeApplicationData, text
}

// refuses checks that opening in fails with an alert, that none of it is consumed, and that neither
// the input nor the destination holds any new bytes except zeros: none of the text.
func refuses(t testing.TB, c sides, in []byte, room int, alert uint8) {
	t.Helper()
	before, dst := bytes.Clone(in), filled(room)
	o := c.Open(in, dst)
	if o.Status != libssl.Fatal || o.Alert != alert || o.N != 0 || o.Consumed != 0 {
		t.Fatalf("%+v, want alert %d", o, alert)
	}
	for i := range in {
		if in[i] != before[i] && in[i] != 0 {
			t.Fatalf("byte %d of the input is %#x, was %#x", i, in[i], before[i])
		}
	}
	for i := range dst {
		if dst[i] != filler && dst[i] != 0 {
			t.Fatalf("byte %d of the destination is %#x", i, dst[i])
		}
	}
}

// rfc8448 is the application data of RFC 8448, section 3: the records after the handshake, in
// order.
var rfc8448 = struct{ client, server []byte }{
	client: unhex("9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5"),
	server: unhex("a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643"),
}

var rfc8448Records = []struct {
	name       string
	fromServer bool
	typ        uint8
	text       []byte
	record     []byte
}{
	{
		"NewSessionTicket", true, tlstest.TypeHandshake,
		unhex("040000c90000001efad6aac502000000b22c035d829359ee5ff7af4ec900000000262a6494dc486d2c8a34cb33fa90bf1b0070ad3c" +
			"498883c9367c09a2be785abc55cd226097a3a982117283f82a03a143efd3ff5dd36d64e861be7fd61d2827db279cce145077d454a3664d" +
			"4e6da4d29ee03725a6a4dafcd0fc67d2aea70529513e3da2677fa5906c5b3f7d8f92f228bda40dda721470f9fbf297b5aea617646fac5c" +
			"03272e970727c621a79141ef5f7de6505e5bfbc388e93343694093934ae4d3570008002a000400000400"),
		unhex("17030300de3a6b8f90414a97d6959c3487680de5134a2b240e6cffac116e95d41d6af8f6b580dcf3d11d63c758db289a0159402" +
			"52f55713e061dc13e078891a38efbcf5753ad8ef170ad3c7353d16d9da773b9ca7f2b9fa1b6c0d4a3d03f75e09c30ba1e62972ac46f75f7" +
			"b981be63439b2999ce13064615139891d5e4c5b406f16e3fc181a77ca475840025db2f0a77f81b5ab05b94c01346755f69232c86519d86c" +
			"beeac87aac347d143f9605d64f650db4d023e70e952ca49fe5137121c74bc2697687e248746d6df353005f3bce18696129c8153556b3b6c" +
			"6779b37bf15985684f"),
	},
	{
		"client data", false, tlstest.TypeApplicationData,
		unhex("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f3031"),
		unhex("1703030043a23f7054b62c94d0affafe8228ba55cbefacea42f914aa66bcab3f2b9819a8a5b46b395bd54a9a20441e2b62974e1f" +
			"5a6292a2977014bd1e3deae63aeebb21694915e4"),
	},
	{
		"server data", true, tlstest.TypeApplicationData,
		unhex("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f3031"),
		unhex("17030300432e937e11ef4ac740e538ad36005fc4a46932fc3225d05f82aa1b36e30efaf97d90e6dffc602dcb501a59a8fcc49c4b" +
			"f2e5f0a21c0047c2abf332540dd032e167c2955d"),
	},
	{
		"client close_notify", false, tlstest.TypeAlert, []byte{1, 0},
		unhex("1703030013c9872760655666b74d7ff1153efd6db6d0b0e3"),
	},
	{
		"server close_notify", true, tlstest.TypeAlert, []byte{1, 0},
		unhex("1703030013b58fd67166ebf599d24720cfbe7efa7a8864a9"),
	},
}

// TestTrafficRFC8448 plays both sides of the trace: each record that one seals is the RFC's, and
// the other opens it.
func TestTrafficRFC8448(t *testing.T) {
	const suite = tls.TLS_AES_128_GCM_SHA256
	client := ofSecrets(t, suite, rfc8448.server, rfc8448.client)
	server := ofSecrets(t, suite, rfc8448.client, rfc8448.server)
	// The same trace with Go's own cryptography, to exclude errors in the vectors.
	reference := map[bool]*tlstest.Keys{false: keysOf(t, suite, rfc8448.client), true: keysOf(t, suite, rfc8448.server)}
	for _, r := range rfc8448Records {
		t.Run(r.name, func(t *testing.T) {
			if got := reference[r.fromServer].Seal(r.typ, r.text); !bytes.Equal(got, r.record) {
				t.Fatalf("the vector is wrong: Go seals\n%x", got)
			}
			sender, receiver := client, server
			if r.fromServer {
				sender, receiver = server, client
			}
			if got := seal(t, sender, r.typ, r.text); !bytes.Equal(got, r.record) {
				t.Errorf("sealed\n%x, want\n%x", got, r.record)
			}
			if typ, text := opened(t, receiver, r.record, 1000); typ != r.typ || !bytes.Equal(text, r.text) {
				t.Errorf("opened type %d %x", typ, text)
			}
		})
	}
}

// sizes are text lengths around every boundary: none, blocks of the AEADs, the limit for copying
// small texts, the maximum.
var sizes = []int{1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 1022, 1023, 1024, 1025, 4096, 16383, maxText}

// TestTrafficSeal opens with Go's cryptography records that libcrypto sealed.
func TestTrafficSeal(t *testing.T) {
	eachSuite(t, func(t *testing.T, suite uint16) {
		secret := secretOf(suite, 1)
		c, keys := ofSecrets(t, suite, nil, secret), keysOf(t, suite, secret)
		for _, n := range sizes {
			for _, typ := range []uint8{tlstest.TypeApplicationData, tlstest.TypeHandshake, tlstest.TypeAlert} {
				text := textOf(n)
				records, rest := tlstest.SplitRecords(seal(t, c, typ, text))
				if len(records) != 1 || len(rest) != 0 {
					t.Fatalf("%d bytes: %d records and %d bytes", n, len(records), len(rest))
				}
				if r := records[0]; r.Type != tlstest.TypeApplicationData || r.Version != tls.VersionTLS12 || len(r.Payload) != n+1+tagLen {
					t.Fatalf("%d bytes: a record of type %d, version %x, with %d bytes", n, r.Type, r.Version, len(r.Payload))
				}
				plain, err := keys.Open(records[0])
				if err != nil || plain.Type != typ || !bytes.Equal(plain.Payload, text) {
					t.Fatalf("%d bytes of type %d: type %d, %d bytes, %v", n, typ, plain.Type, len(plain.Payload), err)
				}
			}
		}
	})
}

// TestTrafficOpen opens with libcrypto records that Go's cryptography sealed, with and without
// padding.
func TestTrafficOpen(t *testing.T) {
	eachSuite(t, func(t *testing.T, suite uint16) {
		secret := secretOf(suite, 2)
		c, keys := ofSecrets(t, suite, secret, nil), keysOf(t, suite, secret)
		for _, n := range append([]int{0}, sizes...) {
			for _, padding := range []int{0, 1, 15, 16, 17, 1000, maxText - n} {
				for _, typ := range []uint8{tlstest.TypeApplicationData, tlstest.TypeHandshake, tlstest.TypeAlert, 1, 99, 255} {
					if padding > maxText-n {
						continue
					}
					text := textOf(n)
					got, gotText := opened(t, c, keys.SealPadded(typ, text, padding), maxText+1000)
					if got != typ || !bytes.Equal(gotText, text) {
						t.Fatalf("%d bytes of type %d with %d of padding: type %d, %d bytes", n, typ, padding, got, len(gotText))
					}
				}
			}
		}
	})
}

// TestTrafficKeyUpdates follows chains of traffic secrets, in both directions. The test computes
// the secrets itself.
func TestTrafficKeyUpdates(t *testing.T) {
	eachSuite(t, func(t *testing.T, suite uint16) {
		secret := secretOf(suite, 3)
		sealing, opening := ofSecrets(t, suite, nil, secret), ofSecrets(t, suite, secret, nil)
		for update := range 6 {
			keys := keysOf(t, suite, secret)
			for i := range 3 {
				text := fmt.Appendf(nil, "update %d, record %d", update, i)
				records, _ := tlstest.SplitRecords(seal(t, sealing, tlstest.TypeApplicationData, text))
				if plain, err := keys.Open(records[0]); err != nil || !bytes.Equal(plain.Payload, text) {
					t.Fatalf("after %d updates, record %d: %q, %v", update, i, plain.Payload, err)
				}
			}
			keys.SkipTo(0)
			for i := range 3 {
				text := fmt.Appendf(nil, "update %d, record %d", update, i)
				if _, got := opened(t, opening, keys.Seal(tlstest.TypeApplicationData, text), 100); !bytes.Equal(got, text) {
					t.Fatalf("after %d updates, record %d: %q", update, i, got)
				}
			}
			if !sealing.write.Update() || !opening.read.Update() {
				t.Fatal("an update failed")
			}
			size := hashOf(suite)().Size()
			info := append([]byte{0, byte(size), 17}, "tls13 traffic upd\x00"...)
			next, err := hkdf.Expand(hashOf(suite), secret, string(info), size)
			if err != nil {
				t.Fatal(err)
			}
			// A record sealed under the old keys is refused.
			old := keys.Seal(tlstest.TypeApplicationData, []byte("under the old keys"))
			refuses(t, ofSecrets(t, suite, next, nil), old, 100, alertBadRecordMAC)
			secret = next
		}
	})
}

// TestTrafficUnusedSide uses sides that have no secret.
func TestTrafficUnusedSide(t *testing.T) {
	const suite = tls.TLS_AES_128_GCM_SHA256
	secret := secretOf(suite, 4)
	record := keysOf(t, suite, secret).Seal(tlstest.TypeApplicationData, []byte("data"))
	refuses(t, ofSecrets(t, suite, nil, secret), record, 100, alertInternalError)
	out := filled(100)
	if step := ofSecrets(t, suite, secret, nil).Seal(tlstest.TypeApplicationData, []byte("data"), out, 0, 0, 0); step.Status !=
		libssl.Fatal || step.Produced != 0 || !bytes.Equal(out, filled(100)) {
		t.Errorf("sealing without a secret: %+v %x", step, out)
	}
	cbc := libssl.TrafficSecrets(tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, secret, secret)
	if _, err := contextOf(t).OfSecrets(cbc); err == nil {
		t.Error("a suite that is libssl's")
	}
}

// TestTrafficSequence seals and opens on both sides of the numbers at which a shorter counter would
// wrap.
func TestTrafficSequence(t *testing.T) {
	eachSuite(t, func(t *testing.T, suite uint16) {
		secret := secretOf(suite, 5)
		c, keys := ofSecrets(t, suite, secret, secret), keysOf(t, suite, secret)
		for _, start := range []uint64{0, 254, 1<<16 - 2, keyLimit - 2, 1<<31 - 2, 1<<32 - 2, 1<<33 - 2, 1<<48 - 2, 1<<56 - 2,
			1<<63 - 2, math.MaxUint64 - 4} {
			if start > 0 && (!c.write.Skip(start) || !c.read.Skip(start)) {
				t.Fatalf("can't skip to %d", start)
			}
			for i := range uint64(4) {
				text := fmt.Appendf(nil, "record %d", start+i)
				keys.SkipTo(start + i)
				// Alerts: application data would reach the limit of records for a key.
				want := keys.Seal(tlstest.TypeAlert, text)
				if got := seal(t, c, tlstest.TypeAlert, text); !bytes.Equal(got, want) {
					t.Fatalf("record %d sealed as\n%x, want\n%x", start+i, got, want)
				}
				if typ, got := opened(t, c, want, 100); typ != tlstest.TypeAlert || !bytes.Equal(got, text) {
					t.Fatalf("record %d opened as %q", start+i, got)
				}
			}
		}
		// The last number is never used: there would be no next one.
		for range 3 {
			out := filled(200)
			if step := c.Seal(tlstest.TypeAlert, []byte("x"), out, 0, 0, 0); step.Status != libssl.Fatal || step.Produced != 0 ||
				!bytes.Equal(out, filled(200)) {
				t.Fatalf("sealed record 2^64-1: %+v", step)
			}
			keys.SkipTo(math.MaxUint64)
			refuses(t, c, keys.Seal(tlstest.TypeApplicationData, []byte("the last one")), 100, alertBadRecordMAC)
			keys.SkipTo(0)
			refuses(t, c, keys.Seal(tlstest.TypeApplicationData, []byte("the first one")), 100, alertBadRecordMAC)
		}
		if c.write.Skip(5) || c.read.Skip(5) {
			t.Error("skipped back")
		}
	})
}

// TestTrafficKeyLimit: a key seals no application data beyond its limit, but the message that
// updates it can still be sent.
func TestTrafficKeyLimit(t *testing.T) {
	eachSuite(t, func(t *testing.T, suite uint16) {
		secret := secretOf(suite, 6)
		c, keys := ofSecrets(t, suite, nil, secret), keysOf(t, suite, secret)
		c.write.Skip(keyLimit - 2)
		keys.SkipTo(keyLimit - 2)
		text, out := textOf(3*maxText), filled(4*maxText)
		step := c.Seal(tlstest.TypeApplicationData, text, out, 0, 0, 0)
		if step.Status != libssl.NeedUpdate || step.N != 2*maxText || step.Records != 2 {
			t.Fatalf("two records before the limit: %+v", step)
		}
		if !bytes.Equal(out[step.Produced:], filled(len(out)-step.Produced)) {
			t.Error("written beyond what was produced")
		}
		records, rest := tlstest.SplitRecords(out[:step.Produced])
		if len(records) != 2 || len(rest) > 0 {
			t.Fatalf("%d records and %d bytes", len(records), len(rest))
		}
		for i, r := range records {
			plain, err := keys.Open(r)
			if err != nil || !bytes.Equal(plain.Payload, text[i*maxText:(i+1)*maxText]) {
				t.Fatalf("record %d: %v", i, err)
			}
		}
		for range 2 {
			out = filled(100)
			if step = c.Seal(tlstest.TypeApplicationData, []byte("x"), out, 0, 0, 0); step.Status != libssl.NeedUpdate ||
				step.Produced != 0 || step.N != 0 || !bytes.Equal(out, filled(100)) {
				t.Fatalf("at the limit: %+v", step)
			}
		}
		message := []byte{24, 0, 0, 1, 0}
		if got, want := seal(t, c, tlstest.TypeHandshake, message), keys.Seal(tlstest.TypeHandshake, message); !bytes.Equal(got, want) {
			t.Errorf("KeyUpdate at the limit: %x, want %x", got, want)
		}
		if !c.write.Update() {
			t.Fatal("no update")
		}
		if got, want := seal(t, c, tlstest.TypeApplicationData, []byte("x")), keys.Next().Seal(tlstest.TypeApplicationData,
			[]byte("x")); !bytes.Equal(got, want) {
			t.Errorf("after the update: %x, want %x", got, want)
		}
	})
}
