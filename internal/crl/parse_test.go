package crl

import (
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/internal/tlstest"
)

func unknown([sha256.Size]byte) *List { return nil }

// extension makes an extension whose value is DER.
func extension(critical bool, value []byte, oid ...int) pkix.Extension {
	return pkix.Extension{Id: oid, Critical: critical, Value: value}
}

func extra(e pkix.Extension) func(*x509.RevocationList) {
	return func(l *x509.RevocationList) { l.ExtraExtensions = append(l.ExtraExtensions, e) }
}

// element makes an element of DER.
func element(tag byte, body ...[]byte) []byte {
	var all []byte
	for _, b := range body {
		all = append(all, b...)
	}
	return append(appendHeader(nil, tag, len(all)), all...)
}

// distribution makes the extension issuingDistributionPoint.
func distribution(fields ...[]byte) func(*x509.RevocationList) {
	return extra(extension(true, element(tagSequence, fields...), 2, 5, 29, 28))
}

func partition(uri string) []byte {
	return element(0xa0, element(0xa0, element(0x86, []byte(uri))))
}

// entryExtension adds an extension to the first entry.
func entryExtension(e pkix.Extension) func(*x509.RevocationList) {
	return func(l *x509.RevocationList) {
		entry := &l.RevokedCertificateEntries[0]
		entry.ReasonCode, entry.ExtraExtensions = 0, []pkix.Extension{e}
	}
}

func reason(code int) func(*x509.RevocationList) {
	return func(l *x509.RevocationList) { l.RevokedCertificateEntries[0].ReasonCode = code }
}

// TestRefusedLists: lists that can't be applied in full are refused, with the reason in the error.
func TestRefusedLists(t *testing.T) {
	ca, leaf := tlstest.CA(), tlstest.ClientCert(tlstest.P256).Leaf
	for _, test := range []struct {
		name, want string
		edit       func(*x509.RevocationList)
	}{
		{"delta", "delta list", extra(extension(true, []byte{2, 1, 1}, 2, 5, 29, 27))},
		{"delta, not critical", "delta list", extra(extension(false, []byte{2, 1, 1}, 2, 5, 29, 27))},
		{"indirect", "indirect list", distribution(element(0x84, []byte{0xff}))},
		{"entry of another issuer", "indirect list", entryExtension(extension(true, element(tagSequence), 2, 5, 29, 29))},
		{"some reasons", "some reasons", distribution(element(0x83, []byte{4, 0x10}))},
		{"attribute certificates", "attribute certificates", distribution(element(0x85, []byte{0xff}))},
		{"both kinds", "malformed", distribution(element(0x81, []byte{0xff}), element(0x82, []byte{0xff}))},
		{"default written", "malformed", distribution(element(0x81, []byte{0}))},
		{"wrong order", "malformed", distribution(element(0x82, []byte{0xff}), element(0x81, []byte{0xff}))},
		{"unknown field", "malformed", distribution(element(0x86, []byte{0xff}))},
		{"a directory's name", "other than a URI", distribution(element(0xa0, element(0xa0, element(0xa4, element(tagSequence)))))},
		{"a relative name", "other than a URI", distribution(element(0xa0, element(0xa1)))},
		{"unknown critical extension", "unknown critical", extra(extension(true, []byte{5, 0}, 1, 2, 3))},
		{"unknown critical extension of an entry", "unknown critical", entryExtension(extension(true, []byte{5, 0}, 1, 2, 3))},
		{"unknown reason", "reason code", reason(11)},
		{"an extension twice", "twice", func(l *x509.RevocationList) {
			e := extension(false, []byte{5, 0}, 1, 2, 3)
			l.ExtraExtensions = []pkix.Extension{e, e}
		}},
		{"no nextUpdate", "nextUpdate", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			der := ca.List(1, test.edit, leaf)
			if test.name == "no nextUpdate" {
				der = withoutNextUpdate(t, der)
			}
			if _, err := x509.ParseRevocationList(der); err != nil {
				t.Fatal("crypto/x509:", err)
			}
			_, err := Lists("file", der, unknown)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "file: ") {
				t.Errorf("got %v, want an error about %q", err, test.want)
			}
		})
	}
}

// withoutNextUpdate takes a list's nextUpdate out, which CreateRevocationList demands.
func withoutNextUpdate(t *testing.T, der []byte) []byte {
	var list struct {
		TBS struct {
			Version    int
			Algorithm  asn1.RawValue
			Issuer     asn1.RawValue
			ThisUpdate time.Time
			NextUpdate time.Time     `asn1:"optional"`
			Entries    asn1.RawValue `asn1:"optional"`
			Extensions asn1.RawValue `asn1:"optional,tag:0,explicit"`
		}
		Algorithm asn1.RawValue
		Signature asn1.BitString
	}
	if _, err := asn1.Unmarshal(der, &list); err != nil {
		t.Fatal(err)
	}
	list.TBS.NextUpdate = time.Time{}
	der, err := asn1.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// TestGarbage: bytes that aren't lists, or not only lists, are refused.
func TestGarbage(t *testing.T) {
	der := tlstest.CA().List(1, nil, tlstest.ClientCert(tlstest.P256).Leaf)
	text := pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der})
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tlstest.CA().Cert.Raw})
	for name, b := range map[string][]byte{
		"nothing": nil, "a page": []byte("<html>404 Not Found</html>"), "cut": der[:len(der)-1],
		"more": append(der[:len(der):len(der)], 0), "a certificate": tlstest.CA().Cert.Raw, "a certificate as PEM": cert,
		"a list and a certificate": append(text[:len(text):len(text)], cert...),
		"PEM that is cut":          text[:len(text)-3], "sequence": {0x30, 0}, "long length": {0x30, 0x84, 0xff, 0xff, 0xff, 0xff},
	} {
		if lists, err := Lists("x", b, unknown); err == nil {
			t.Errorf("%s: %d lists", name, len(lists))
		}
	}
	if lists, err := Lists("x", append(text, text...), unknown); err != nil || len(lists) != 2 {
		t.Errorf("PEM with two lists: %d lists, %v", len(lists), err)
	}
}

// serials are at the edges of a table's entries.
func serials() []*big.Int {
	one := big.NewInt(1)
	var all []*big.Int
	for _, bits := range []uint{0, 7, 8, 31, 32, 63, 64, 96, 127, 128, 159, 160, 161, 200} {
		power := new(big.Int).Lsh(one, bits)
		all = append(all, power, new(big.Int).Sub(power, one), new(big.Int).Add(power, one))
	}
	return all
}

// TestTable: exactly the serial numbers in a list are found, long ones too, in any order.
func TestTable(t *testing.T) {
	in, listed := make(map[string]bool), serials()
	for range 2000 {
		var b [serialSize]byte
		for i := range b[:1+rand.IntN(serialSize)] {
			b[i] = byte(rand.Uint32())
		}
		listed = append(listed, new(big.Int).SetBytes(b[:]))
	}
	rand.Shuffle(len(listed), func(i, j int) { listed[i], listed[j] = listed[j], listed[i] })
	der := tlstest.CA().List(1, func(l *x509.RevocationList) {
		for i, n := range listed {
			in[n.String()] = true
			l.RevokedCertificateEntries = append(l.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: n,
				RevocationTime: time.Now(), ReasonCode: []int{0, 1, 6}[i%3]})
		}
	})
	lists, err := Lists("x", der, unknown)
	if err != nil {
		t.Fatal(err)
	}
	one := big.NewInt(1)
	for _, n := range listed {
		for _, n := range []*big.Int{n, new(big.Int).Neg(n), new(big.Int).Add(n, one), new(big.Int).Sub(n, one)} {
			if _, found := lists[0].revoked.find(n); found != in[n.String()] {
				t.Errorf("%x: found is %v", n, found)
			}
		}
	}
}

// TestRemovedAndHeld: RFC 5280, section 6.3.3, step (k), and section 5.3.1.
func TestRemovedAndHeld(t *testing.T) {
	leaf := tlstest.ClientCert(tlstest.P256).Leaf
	for code, want := range map[int]bool{1: true, 6: true, removeFromCRL: false} {
		lists, err := Lists("x", tlstest.CA().List(1, reason(code), leaf), unknown)
		if err != nil {
			t.Fatal(err)
		}
		if got, revoked := lists[0].revoked.find(leaf.SerialNumber); revoked != want || want && int(got) != code {
			t.Errorf("reason %d: revoked is %v, for reason %d", code, revoked, got)
		}
	}
}

// FuzzParse: crypto/x509 accepts each list that is accepted, and has the same entries. It refuses
// each list that is refused as malformed, except for what its parser passes over.
func FuzzParse(f *testing.F) {
	ca, leaf := tlstest.CA(), tlstest.ClientCert(tlstest.P256).Leaf
	for _, edit := range []func(*x509.RevocationList){nil, reason(6), reason(8), distribution(partition("http://a/1")),
		distribution(element(0x81, []byte{0xff})), extra(extension(true, []byte{2, 1, 1}, 2, 5, 29, 27)),
		entryExtension(extension(false, []byte{24, 15, 50, 48, 50, 48, 48, 49, 48, 49, 48, 48, 48, 48, 48, 48, 90}, 2, 5, 29, 24)),
		func(l *x509.RevocationList) {
			l.ThisUpdate = time.Date(2060, 1, 1, 0, 0, 0, 0, time.UTC)
			l.NextUpdate = l.ThisUpdate
		}} {
		f.Add(ca.List(7, edit, leaf, tlstest.ServerCert(tlstest.P256).Leaf))
	}
	f.Add(ca.List(1, nil))
	f.Fuzz(func(t *testing.T, der []byte) {
		l, err := parse(der)
		theirs, theirErr := x509.ParseRevocationList(der)
		if err != nil {
			return
		}
		if theirErr != nil {
			t.Fatalf("accepted, and refused by crypto/x509: %v", theirErr)
		}
		if !l.ThisUpdate.Equal(theirs.ThisUpdate) || !l.NextUpdate.Equal(theirs.NextUpdate) ||
			string(l.rawIssuer) != string(theirs.RawIssuer) ||
			string(l.tbs) != string(theirs.RawTBSRevocationList) || l.algorithm != theirs.SignatureAlgorithm {
			t.Fatal("another list than crypto/x509's")
		}
		n := 0
		for _, e := range theirs.RevokedCertificateEntries {
			_, found := l.revoked.find(e.SerialNumber)
			if !found && e.ReasonCode != removeFromCRL {
				t.Fatalf("%x is not revoked", e.SerialNumber)
			}
			if e.ReasonCode != removeFromCRL {
				n++
			}
		}
		if l.Len() > n {
			t.Fatalf("%d certificates are revoked, for crypto/x509 %d", l.Len(), n)
		}
	})
}

// bigList returns a list of n certificates with random serial numbers of 16 bytes, and the last one.
func bigList(n int) (der []byte, last *big.Int) {
	entries := make([]byte, 0, 36*n)
	r := rand.New(rand.NewPCG(1, 2))
	date := element(tagUTCTime, []byte("260101000000Z"))
	for range n {
		var b [17]byte
		for i := range b[1:] {
			b[1+i] = byte(r.Uint32())
		}
		b[1] |= 0x80
		last = new(big.Int).SetBytes(b[:])
		entries = append(entries, element(tagSequence, element(tagInteger, b[:]), date)...)
	}
	small := tlstest.CA().List(1, nil)
	body, _ := (*reader)(&small).read(tagSequence)
	in := reader(body)
	tbs, _ := in.read(tagSequence)
	before, _, after, _ := split(tbs)
	tbs = element(tagSequence, before, element(tagSequence, entries), after)
	// The signature is wrong, so only parsing is measured.
	return element(tagSequence, tbs, in), last
}

// bigLen is the number of entries of a big list, which has 100 MB if OSSL_SOAK is set.
func bigLen() int {
	if os.Getenv("OSSL_SOAK") != "" {
		return 2_700_000
	}
	return 100_000
}

// TestBigList: parsing a list takes 24 bytes of memory for an entry besides its own size. -v prints the time.
func TestBigList(t *testing.T) {
	n := bigLen()
	der, last := bigList(n)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	l, err := parse(der)
	if err != nil {
		t.Fatal(err)
	}
	parsed := time.Since(start)
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > uint64(n)*24+1<<20 {
		t.Errorf("parsing has allocated %d bytes for %d entries", got, n)
	}
	if _, found := l.revoked.find(last); !found || l.Len() != n {
		t.Errorf("%d entries; the last one is there: %v", l.Len(), found)
	}
	t.Logf("%d MB, %d entries: parsed in %v", len(der)>>20, n, parsed)
}

// BenchmarkFind looks serial numbers up in a big list.
func BenchmarkFind(b *testing.B) {
	der, serial := bigList(bigLen())
	l, err := parse(der)
	if err != nil {
		b.Fatal(err)
	}
	for i := uint64(0); b.Loop(); i++ {
		serial.SetUint64(i * 0x9e3779b97f4a7c15)
		serial.Lsh(serial, 64)
		l.revoked.find(serial)
	}
}

// TestWeakSignature: a list signed with SHA-1 is refused, as are certificates.
func TestWeakSignature(t *testing.T) {
	ca := tlstest.NewAuthorityOf(tlstest.RSA2048, "RSA", nil, nil)
	der := ca.List(1, func(l *x509.RevocationList) { l.SignatureAlgorithm = x509.SHA1WithRSA })
	_, err := Lists("x", der, unknown)
	var weak x509.InsecureAlgorithmError
	if !errors.As(err, &weak) {
		t.Errorf("got %v", err)
	}
	if _, err := Lists("x", ca.List(1, nil), unknown); err != nil {
		t.Error(fmt.Errorf("SHA-256: %w", err))
	}
}
