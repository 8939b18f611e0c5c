package stdtls

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestFingerprint: a change of any field but ServerName changes the fingerprint, and a copy has the same one.
func TestFingerprint(t *testing.T) {
	if !FingerprintsAreComplete() {
		t.Fatal("tls.Config, tls.Certificate or x509.CertPool has an unknown field")
	}
	mark := func(c *tls.Config) string { return string(Fingerprint(c)) }
	base := tlstest.ServerConfig(func(c *tls.Config) {
		c.ClientCAs = tlstest.CA().Pool()
		c.NextProtos = []string{"a", "b"}
		c.Certificates[0].SignedCertificateTimestamps = [][]byte{{1}, {2}}
	})
	if p := mark(base); p != mark(base.Clone()) || p != NewSnapshot(base).Fingerprint || p != NewSnapshot(base.Clone()).Fingerprint {
		t.Error("a copy has another fingerprint")
	}
	named := base.Clone()
	if named.ServerName += "x"; mark(named) != mark(base) || NewSnapshot(named).Config.ServerName != "" {
		t.Error("the ServerName is in the fingerprint or the snapshot")
	}

	// Each field by itself, set to something else.
	edits := map[string]func(*tls.Config){}
	config := reflect.TypeFor[tls.Config]()
	for i := range config.NumField() {
		if f := config.Field(i); f.IsExported() && f.Name != "ServerName" {
			edits[f.Name] = func(c *tls.Config) {
				v := reflect.ValueOf(c).Elem().Field(i)
				v.Set(other(t, v))
			}
		}
	}
	// Changes that are easily missed.
	withCert := func(edit func(*tls.Certificate)) func(*tls.Config) {
		return func(c *tls.Config) {
			c.Certificates = slices.Clone(c.Certificates)
			edit(&c.Certificates[0])
		}
	}
	clone := func(list [][]byte) [][]byte { return slices.Clone(list) }
	for name, edit := range map[string]func(*tls.Config){
		"NextProtos joined":   func(c *tls.Config) { c.NextProtos = []string{"ab"} },
		"NextProtos parted":   func(c *tls.Config) { c.NextProtos = []string{"a", "", "b"} },
		"NextProtos empty":    func(c *tls.Config) { c.NextProtos = []string{} },
		"NextProtos none":     func(c *tls.Config) { c.NextProtos = nil },
		"CipherSuites empty":  func(c *tls.Config) { c.CipherSuites = []uint16{} },
		"certificate's key":   withCert(func(c *tls.Certificate) { c.PrivateKey = tlstest.Key(tlstest.P256, "another") }),
		"certificate's leaf":  withCert(func(c *tls.Certificate) { c.Leaf = &x509.Certificate{} }),
		"certificate's chain": withCert(func(c *tls.Certificate) { c.Certificate = append(clone(c.Certificate), c.Certificate[0]) }),
		"certificate's bytes": withCert(func(c *tls.Certificate) {
			c.Certificate = clone(c.Certificate)
			c.Certificate[0] = bytes.Clone(c.Certificate[0])
		}),
		"certificate's staple": withCert(func(c *tls.Certificate) { c.OCSPStaple = []byte{1} }),
		"certificate's SCT":    withCert(func(c *tls.Certificate) { c.SignedCertificateTimestamps = [][]byte{{1}, {2}} }),
		"certificate's algorithms": withCert(func(c *tls.Certificate) {
			c.SupportedSignatureAlgorithms = []tls.SignatureScheme{tls.Ed25519}
		}),
		"another certificate":  func(c *tls.Config) { c.Certificates = []tls.Certificate{tlstest.ServerCert(tlstest.P384)} },
		"SetSessionTicketKeys": func(c *tls.Config) { c.SetSessionTicketKeys([][32]byte{{1}}) },
		"SetSessionTicketKeys, again": func(c *tls.Config) {
			c.SetSessionTicketKeys([][32]byte{{1}})
		},
		"ClientCAs of the same": func(c *tls.Config) { c.ClientCAs = c.ClientCAs.Clone() },
	} {
		edits[name] = edit
	}
	seen := map[string]string{mark(base): "unchanged"}
	var keep []*tls.Config // otherwise an address could be used twice
	for name, edit := range edits {
		c := base.Clone()
		edit(c)
		keep = append(keep, c)
		if same, ok := seen[mark(c)]; ok {
			t.Errorf("%s has the fingerprint of %s", name, same)
		}
		seen[mark(c)] = name
		for what, other := range map[string]*tls.Config{"the unchanged one": base, "it": c, "its copy": c.Clone()} {
			if NewSnapshot(c).Matches(other) != (mark(c) == mark(other)) || NewSnapshot(other).Matches(c) != (mark(c) == mark(other)) {
				t.Errorf("%s: Matches differs from fingerprints, with %s", name, what)
			}
		}
		if mark(c) != mark(c.Clone()) {
			t.Errorf("%s: a copy has another fingerprint", name)
		}
	}
	runtime.KeepAlive(keep)

	// Changed in place, which programs shouldn't do.
	for name, edit := range map[string]func(*tls.Config){
		"NextProtos":                     func(c *tls.Config) { c.NextProtos[0] = "c" },
		"CipherSuites":                   func(c *tls.Config) { c.CipherSuites[0]++ },
		"CurvePreferences":               func(c *tls.Config) { c.CurvePreferences[0]++ },
		"EncryptedClientHelloConfigList": func(c *tls.Config) { c.EncryptedClientHelloConfigList[0]++ },
	} {
		c := base.Clone()
		c.NextProtos, c.CipherSuites, c.CurvePreferences = []string{"a"}, []uint16{1}, []tls.CurveID{1}
		c.EncryptedClientHelloConfigList = []byte{1}
		snapshot := NewSnapshot(c)
		if edit(c); snapshot.Matches(c) || snapshot.Fingerprint == mark(c) || mark(snapshot.Config) != snapshot.Fingerprint {
			t.Errorf("an element of %s replaced in place makes no difference", name)
		}
	}
	before, snapshot := mark(base), NewSnapshot(base)
	base.Certificates[0] = tlstest.ServerCert(tlstest.P384)
	if mark(base) == before || snapshot.Matches(base) {
		t.Error("a certificate replaced in place makes no difference")
	}
	before, snapshot = mark(base), NewSnapshot(base)
	base.ClientCAs.AddCert(tlstest.OtherCA().Cert)
	if mark(base) == before || snapshot.Matches(base) {
		t.Error("a certificate added to ClientCAs makes no difference")
	}
}

// TestFingerprintAfterUse: a server of crypto/tls, which changes the configuration, leaves the
// fingerprint as it is.
func TestFingerprintAfterUse(t *testing.T) {
	config := tlstest.ServerConfig(func(c *tls.Config) { c.SessionTicketsDisabled = false })
	before, snapshot := string(Fingerprint(config)), NewSnapshot(config)
	a, b := tlstest.Buffered()
	tlstest.Shake(t, tls.Client(a, tlstest.ClientConfig(func(c *tls.Config) {
		c.ServerName, c.ClientSessionCache = tlstest.ServerName, tls.NewLRUClientSessionCache(1)
	})), tls.Server(b, config))
	//lint:ignore SA1019 deprecated, and still honoured by crypto/tls
	if config.SessionTicketKey == [32]byte{} {
		t.Fatal("crypto/tls doesn't change SessionTicketKey: secretKind isn't needed")
	}
	if string(Fingerprint(config)) != before || !snapshot.Matches(config) || !NewSnapshot(config).Matches(config) {
		t.Error("the fingerprint has changed")
	}
}

// TestMatchesAllocatesNothing: connections are compared with their configuration's snapshot.
func TestMatchesAllocatesNothing(t *testing.T) {
	config := tlstest.ServerConfig(func(c *tls.Config) {
		c.ClientCAs, c.NextProtos = tlstest.CA().Pool(), []string{"a", "b"}
		for range 99 {
			c.Certificates = append(c.Certificates, c.Certificates[0])
		}
	})
	snapshot := NewSnapshot(config)
	if n := testing.AllocsPerRun(100, func() {
		if !snapshot.Matches(config) {
			t.Error("a configuration doesn't match its snapshot")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// other returns a value of v's type that is not v's.
func other(t *testing.T, v reflect.Value) reflect.Value {
	n := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.Bool:
		n.SetBool(!v.Bool())
	case reflect.Int:
		n.SetInt(v.Int() + 1)
	case reflect.Uint16:
		n.SetUint(v.Uint() + 1)
	case reflect.Uint8:
		n.SetUint(v.Uint() + 1)
	case reflect.String:
		n.SetString(v.String() + "x")
	case reflect.Array:
		n.Index(0).Set(other(t, v.Index(0)))
	case reflect.Slice:
		n.Set(reflect.MakeSlice(v.Type(), v.Len()+1, v.Len()+1))
	case reflect.Map:
		n.Set(reflect.MakeMap(v.Type()))
	case reflect.Pointer:
		n.Set(reflect.New(v.Type().Elem()))
	case reflect.Func:
		n.Set(reflect.MakeFunc(v.Type(), func([]reflect.Value) []reflect.Value { return nil }))
	case reflect.Interface:
		for _, made := range []any{new(bytes.Buffer), tls.NewLRUClientSessionCache(1)} {
			if reflect.TypeOf(made).AssignableTo(v.Type()) {
				n.Set(reflect.ValueOf(made))
				return n
			}
		}
		t.Fatalf("no value for %v", v.Type())
	default:
		t.Fatalf("no value for %v", v.Type())
	}
	return n
}
