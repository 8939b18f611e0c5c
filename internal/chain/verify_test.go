package chain

import (
	"bytes"
	"crypto/tls"
	"errors"
	"testing"
	"time"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/record"
	"github.com/ossl-go/ossl/internal/tlstest"
)

func pack(ders [][]byte) []byte { return libssl.PackChain(ders) }

// TestVerifierRemembers: a hit gives the same certificates and chains as the verification. Another
// name is verified, and so is the chain once its time has passed.
func TestVerifierRemembers(t *testing.T) {
	v := New(Config{RootCAs: tlstest.CA().Pool(), CacheSize: 10})
	packed, now := pack(tlstest.ServerCert(tlstest.P256).Certificate), time.Now()
	first, chains, refused := v.VerifyServer(packed, tlstest.ServerName, now)
	if refused != nil {
		t.Fatal(refused.Err)
	}
	again, hit, refused := v.VerifyServer(packed, tlstest.ServerName, now)
	if refused != nil {
		t.Fatal(refused.Err)
	}
	if len(v.cache.entries) != 1 {
		t.Fatalf("%d entries after two verifications of one chain", len(v.cache.entries))
	}
	if again[0] != first[0] || len(hit) != len(chains) || &hit[0][0] == &chains[0][0] {
		t.Error("the second verification did not hit, or shares its slices")
	}
	if _, _, refused := v.VerifyServer(packed, tlstest.OtherName, now); refused == nil {
		t.Error("accepted for another name")
	}
	if _, _, refused := v.VerifyServer(packed, tlstest.ServerName, now.Add(200*365*24*time.Hour)); refused == nil {
		t.Error("accepted after the certificate's end")
	}
	if len(v.cache.entries) != 0 {
		t.Error("a refusal is remembered, or a dead entry stays")
	}
}

// TestVerifierRoles: the same chain may be a client's and a server's, and is verified for each.
func TestVerifierRoles(t *testing.T) {
	v := New(Config{RootCAs: tlstest.CA().Pool(), ClientCAs: tlstest.CA().Pool(), ClientAuth: tls.RequireAndVerifyClientCert,
		CacheSize: 10})
	packed, now := pack(tlstest.ServerCert(tlstest.P256).Certificate), time.Now()
	if _, _, refused := v.VerifyServer(packed, tlstest.ServerName, now); refused != nil {
		t.Error(refused.Err)
	}
	if _, _, refused := v.VerifyClient(packed, now); refused == nil {
		t.Error("the certificate of a server is accepted as that of a client")
	}
}

// TestVerifierZeroTime: to crypto/x509, and so to crypto/tls, the zero time means now.
func TestVerifierZeroTime(t *testing.T) {
	v := New(Config{RootCAs: tlstest.CA().Pool(), CacheSize: 10})
	machine := time.Now()
	v.cache.clock = func() time.Time { return machine }
	packed := pack(tlstest.ServerCert(tlstest.P256).Certificate)
	if _, _, refused := v.VerifyServer(packed, tlstest.ServerName, time.Time{}); refused != nil {
		t.Fatal(refused.Err)
	}
	before := time.Now()
	if len(v.cache.entries) != 1 {
		t.Fatalf("%d chains are remembered", len(v.cache.entries))
	}
	for key, e := range v.cache.entries {
		if e.verified.IsZero() || e.from.After(before) || v.cache.hit(key, before) == nil {
			t.Errorf("the entry is of %v, from %v", e.verified, e.from)
		}
		if v.cache.hit(key, before.Round(0).Add(200*365*24*time.Hour)) != nil {
			t.Error("hit after the certificate's end")
		}
	}
}

// TestVerifierRefusesMalformed: a chain that is malformed, or that has no certificate, is refused.
func TestVerifierRefusesMalformed(t *testing.T) {
	for _, v := range []*Verifier{
		New(Config{RootCAs: tlstest.CA().Pool(), CacheSize: 10}),
		New(Config{InsecureSkipVerify: true}),
	} {
		for _, packed := range [][]byte{nil, {0}, {0, 0, 0, 2, 1}, {0, 0, 0, 0}} {
			certs, chains, refused := v.VerifyServer(packed, tlstest.ServerName, time.Now())
			if certs != nil || chains != nil || refused == nil || refused.Alert != record.AlertInternalError {
				t.Errorf("%x: %v, %v, %+v", packed, certs, chains, refused)
			}
		}
		_, _, refused := v.VerifyServer([]byte{0, 0, 0, 1, 7}, tlstest.ServerName, time.Now())
		if refused == nil || refused.Alert != record.AlertDecodeError || errors.Unwrap(refused.Err) == nil {
			t.Errorf("a certificate that can't be parsed: %+v", refused)
		}
	}
}

// FuzzSplit: each certificate lies within the input, and all of them make up the input.
func FuzzSplit(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 0, 0, 1, 7})
	f.Add([]byte{0, 0, 0, 2, 7, 8, 0, 0, 0, 1, 9})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, packed []byte) {
		ders, ok := split(packed)
		if !ok {
			return
		}
		for _, der := range ders {
			tlstest.Within(t, der, packed)
		}
		if again := pack(ders); !bytes.Equal(again, packed) {
			t.Fatalf("%x becomes %x", packed, again)
		}
	})
}
