//go:build cgo || ossl_nocgo

package conns

import (
	"bytes"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// An ext is a ClientHello's extension.
type ext struct {
	typ  uint16
	body []byte
}

func sized8(b []byte) []byte { return append([]byte{byte(len(b))}, b...) }

func sniExt(name string) ext {
	return ext{0, tlstest.Sized16(append([]byte{0}, tlstest.Sized16([]byte(name))...))}
}

func alpnExt(protos ...[]byte) ext {
	var list []byte
	for _, p := range protos {
		list = append(list, sized8(p)...)
	}
	return ext{16, tlstest.Sized16(list)}
}

// facts are extensions as internal/libssl/callbacks.c concatenates them.
func facts(exts ...ext) (b []byte) {
	for _, e := range exts {
		b = append(b, byte(e.typ))
		b = append(b, tlstest.Sized16(e.body)...)
	}
	return b
}

// rawHello is a record with a TLS 1.3 ClientHello.
func rawHello(suites []byte, exts ...ext) []byte {
	body := append([]byte{3, 3}, bytes.Repeat([]byte{7}, 32)...)
	body = append(body, sized8(bytes.Repeat([]byte{9}, 32))...)
	body = append(body, tlstest.Sized16(suites)...)
	body = append(body, 1, 0)
	var list []byte
	for _, e := range exts {
		list = binary.BigEndian.AppendUint16(list, e.typ)
		list = append(list, tlstest.Sized16(e.body)...)
	}
	body = append(body, tlstest.Sized16(list)...)
	message := append([]byte{1, 0}, binary.BigEndian.AppendUint16(nil, uint16(len(body)))...)
	return tlstest.MakeRecord(tlstest.TypeHandshake, tls.VersionTLS10, append(message, body...))
}

// TestSecondHelloCantCollide sends two ClientHellos that differ in everything important, but whose
// suites and extensions, concatenated without the length of the suites, are the same bytes: the
// first hello's suites are the second's first extensions, and the second's last protocol is the
// first's extensions.
func TestSecondHelloCantCollide(t *testing.T) {
	curve := func(c ecdh.Curve, group uint16) ext {
		key, err := c.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		share := append(binary.BigEndian.AppendUint16(nil, group), tlstest.Sized16(key.PublicKey().Bytes())...)
		return ext{51, tlstest.Sized16(share)}
	}
	suite := []byte{0x13, 0x01}
	groups := ext{10, tlstest.Sized16([]byte{0, 29, 0, 23})}
	sigalgs := ext{13, tlstest.Sized16([]byte{4, 3})}
	tail := []ext{{43, []byte{2, 3, 4}}, {45, []byte{1, 1}}}

	first := []ext{sniExt("public.test"), groups, sigalgs, alpnExt([]byte("proto1"))}
	hidden := facts(first...) // without their common end
	var second []ext
	var firstSuites []byte
	for padding := range 2 { // the suites' length must be even
		second = []ext{sniExt("secret.test"), groups, sigalgs,
			alpnExt([]byte("proto2"), bytes.Repeat([]byte("p"), padding+1), hidden)}
		whole := append(slices.Clone(suite), facts(second...)...)
		firstSuites = whole[:len(whole)-len(hidden)]
		if len(firstSuites)%2 == 0 {
			break
		}
	}
	one := append(slices.Clone(firstSuites), facts(append(slices.Clone(first), tail...)...)...)
	two := append(slices.Clone(suite), facts(append(slices.Clone(second), tail...)...)...)
	if !bytes.Equal(one, two) {
		t.Fatalf("the two are no collision:\n%x\n%x", one, two)
	}

	config := tlstest.ServerConfig()
	config.CurvePreferences = []tls.CurveID{tls.CurveP256}
	config.NextProtos = []string{"proto1", "proto2"}
	a, b := tlstest.Buffered()
	done := make(chan error, 1)
	server := ossltest.NewContext(t, config).Server(b)
	go func() {
		done <- server.Handshake()
		server.Close()
	}()
	a.Write(rawHello(firstSuites, slices.Concat(first, tail, []ext{curve(ecdh.X25519(), 29)})...))
	a.Write(rawHello(suite, slices.Concat(second, tail, []ext{curve(ecdh.P256(), 23)})...))
	var answer []byte
	buf := make([]byte, 10000)
	for {
		n, err := a.Read(buf)
		answer = append(answer, buf[:n]...)
		if err != nil {
			break
		}
		if records, _ := tlstest.SplitRecords(answer); len(tlstest.Alerts(records)) > 0 || len(records) > 4 {
			a.Close()
			break
		}
	}
	err := <-done
	records, _ := tlstest.SplitRecords(answer)
	if alerts := tlstest.Alerts(records); len(alerts) != 1 || alerts[0].Description != 47 {
		t.Errorf("%d records, alerts %v, %v: the second hello was taken", len(records), alerts, err)
	}
	if messages := tlstest.Messages(records); len(messages) != 1 {
		t.Errorf("%d messages, want the HelloRetryRequest alone", len(messages))
	}
}
