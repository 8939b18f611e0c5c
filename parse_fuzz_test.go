package ossl

import (
	"bytes"
	"crypto/tls"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// These tests run every parser of a peer's bytes. The results must lie within the input.

func FuzzSCTs(f *testing.F) {
	for _, scts := range [][][]byte{nil, {{1}}, {{1, 2, 3}, {4}}} {
		list, err := sctList(scts)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(list)
	}
	f.Add([]byte{0, 2, 0, 0})
	f.Fuzz(func(t *testing.T, list []byte) {
		scts, ok := parseSCTs(list)
		if !ok {
			return
		}
		again, err := sctList(scts)
		if err != nil || !bytes.Equal(again, list) {
			t.Fatalf("%x becomes %x, %v", list, again, err)
		}
	})
}

func FuzzStaple(f *testing.F) {
	f.Add([]byte{0x30, 0x03, 0x0a, 0x01, 0x01})
	f.Add([]byte{0x30, 0x00})
	f.Fuzz(func(t *testing.T, der []byte) {
		if checkStaple(der) == nil && (len(der) < 5 || der[0] != 0x30) {
			t.Fatalf("%x taken for an OCSPResponse", der)
		}
	})
}

// FuzzClientSession reads sessions from a user's cache.
func FuzzClientSession(f *testing.F) {
	f.Add((&clientSession{version: tls.VersionTLS13, group: 29, der: []byte{0x30, 0}, chain: []byte{0, 0, 0, 1, 0x30}}).marshal())
	f.Add((&clientSession{der: []byte{1}, chain: []byte{4}, identity: &clientIdentity{[]byte{5}, []byte{6}}}).marshal())
	f.Add((&clientSession{der: []byte{1}, ocsp: []byte{2}, scts: []byte{3}, chain: []byte{4}, roots: make([]byte, 32)}).marshal())
	f.Add([]byte(sessionMark))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseClientSession(b)
		if err != nil {
			return
		}
		for _, part := range [][]byte{s.der, s.ocsp, s.scts, s.chain} {
			tlstest.Within(t, part, b)
		}
		if !bytes.Equal(s.marshal(), b) {
			t.Fatal("written again it differs")
		}
	})
}

// FuzzWithoutPeer checks that a session gets shorter by one field only.
func FuzzWithoutPeer(f *testing.F) {
	f.Add([]byte{0x30, 0x0c, 2, 1, 1, 0xa1, 1, 5, 0xa3, 1, 0x30, 0xa4, 1, 9})
	f.Add([]byte{0x30, 3, 2, 1, 1})
	f.Fuzz(func(t *testing.T, der []byte) {
		short := withoutPeer(der)
		if len(short) > len(der) {
			t.Fatalf("%x became %x", der, short)
		}
		if again := withoutPeer(short); !bytes.Equal(again, short) {
			t.Fatalf("%x, then %x", short, again)
		}
	})
}

// FuzzPSKOffer reads the identities in a client's pre_shared_key.
func FuzzPSKOffer(f *testing.F) {
	f.Add([]byte("\x00\x0f\x00\x09meter-17x\x00\x00\x00\x00\x00\x21\x20" + strings.Repeat("b", 32)))
	f.Add([]byte("\x00\x0e\x00\x01a\x00\x00\x00\x00\x00\x01b\x00\x00\x00\x00\x00\x04\x01x\x01y"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, body []byte) {
		offered, ok := parsePSKOffer(body)
		if len(offered) > maxIdentities || ok && len(offered) == 0 && len(body) != 4 {
			t.Fatalf("%d identities, %v", len(offered), ok)
		}
		seen := map[string]bool{}
		for _, o := range offered {
			if len(o.identity) == 0 || o.sha256 && o.sha384 || seen[string(o.identity)] || !bytes.Contains(body, o.identity) {
				t.Fatalf("%+v from %x", offered, body)
			}
			seen[string(o.identity)] = true
		}
	})
}
