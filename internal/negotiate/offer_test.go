//go:build cgo || ossl_nocgo

package negotiate

import (
	"cmp"
	"crypto/tls"
	"errors"
	"slices"
	"testing"

	"github.com/ossl-go/ossl/internal/libssl"
)

// offer returns the offer of a configuration after the filters, or the refusal.
func offer(t *testing.T, asked *Asked, filters ...Filter) (*Offer, *Refusal) {
	t.Helper()
	if _, err := libssl.Load(""); err != nil {
		t.Fatal(err)
	}
	if asked.Config == nil {
		asked.Config = new(tls.Config)
	}
	o, err := NewOffer(asked, filters...)
	if err == nil {
		return o, nil
	}
	var r *Refusal
	if !errors.As(err, &r) {
		t.Fatalf("error of type %T: %v", err, err)
	}
	return nil, r
}

// host returns a policy that edit restricts.
func host(edit func(*Host), commands ...libssl.HostCommand) *Host {
	h := &Host{Policy: Policy{ConfigFile: "openssl.cnf", MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS13}}
	h.commands = commands
	edit(h)
	return h
}

// inOrder reports whether part has elements of whole only, in the order of whole.
func inOrder[ID comparable](part, whole []ID) bool {
	for _, id := range part {
		i := slices.Index(whole, id)
		if i < 0 {
			return false
		}
		whole = whole[i+1:]
	}
	return true
}

// TestFiltersKeepOrder: each filter keeps a part of the choice that crypto/tls makes, in its order.
func TestFiltersKeepOrder(t *testing.T) {
	all, _ := offer(t, new(Asked))
	if len(all.CipherSuites) == 0 || len(all.TLS13CipherSuites) == 0 || len(all.Groups) == 0 || len(all.SignatureSchemes) == 0 {
		t.Fatalf("crypto/tls's choice is %+v", all)
	}
	var nobody *Host
	narrow := host(func(h *Host) {
		h.CipherSuites = []uint16{tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}
		h.Groups = []tls.CurveID{tls.CurveP384, tls.CurveP256}
		h.SignatureSchemes = []tls.SignatureScheme{tls.PKCS1WithSHA256, tls.PSSWithSHA256}
	})
	for name, filter := range map[string]Filter{"HTTP/2": HTTP2{}, "host": narrow, "no policy": nobody, "library": Library{}} {
		o, r := offer(t, new(Asked), filter)
		if r != nil {
			t.Errorf("%s: %v", name, r)
			continue
		}
		if !inOrder(o.CipherSuites, all.CipherSuites) || !inOrder(o.TLS13CipherSuites, all.TLS13CipherSuites) ||
			!inOrder(o.Groups, all.Groups) || !inOrder(o.SignatureSchemes, all.SignatureSchemes) {
			t.Errorf("%s: %+v is not a part of %+v", name, o, all)
		}
		if name == "no policy" && len(o.CipherSuites) != len(all.CipherSuites) {
			t.Errorf("%s: left out %d suites", name, len(all.CipherSuites)-len(o.CipherSuites))
		}
		if name == "host" && (len(o.CipherSuites) != 2 || len(o.Groups) != 2 || len(o.SignatureSchemes) != 2) {
			t.Errorf("%s: leaves %+v", name, o)
		}
	}
}

// TestVersionsWithoutSuites: a version for which no suite is left is dropped; the last one is
// refused.
func TestVersionsWithoutSuites(t *testing.T) {
	none := []uint16{}
	no12 := host(func(h *Host) { h.CipherSuites = none })
	no13 := host(func(h *Host) { h.TLS13CipherSuites = none })
	for _, c := range []struct {
		name    string
		config  *tls.Config
		filters []Filter
		min     uint16
		max     uint16
		field   string
	}{
		{"all", &tls.Config{}, nil, tls.VersionTLS12, tls.VersionTLS13, ""},
		{"no suite of 1.2", &tls.Config{}, []Filter{no12}, tls.VersionTLS13, tls.VersionTLS13, ""},
		{"no suite of 1.3", &tls.Config{}, []Filter{no13}, tls.VersionTLS12, tls.VersionTLS12, ""},
		{"none", &tls.Config{}, []Filter{no12, no13}, 0, 0, "MinVersion"},
		{"1.2 without", &tls.Config{MaxVersion: tls.VersionTLS12}, []Filter{no12}, 0, 0, "CipherSuites"},
		{"1.3 without", &tls.Config{MinVersion: tls.VersionTLS13}, []Filter{no13}, 0, 0, "MinVersion"},
		{"only suites of 1.3 named", &tls.Config{CipherSuites: []uint16{tls.TLS_AES_128_GCM_SHA256}}, []Filter{Library{}},
			tls.VersionTLS13, tls.VersionTLS13, ""},
		{"suites of 1.3 for 1.2", &tls.Config{CipherSuites: []uint16{tls.TLS_AES_128_GCM_SHA256}, MaxVersion: tls.VersionTLS12},
			[]Filter{Library{}}, 0, 0, "CipherSuites"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, r := offer(t, &Asked{Config: c.config}, c.filters...)
			switch {
			case r != nil && r.Field != c.field || r == nil && c.field != "":
				t.Errorf("refusal %v, want one of %q", r, c.field)
			case r == nil && (o.MinVersion() != c.min || o.MaxVersion() != c.max):
				t.Errorf("versions %x", o.Versions)
			}
		})
	}
}

// after is a filter after another one.
type after [2]Filter

func (a after) narrow(o *Offer, p part) error { return cmp.Or(a[0].narrow(o, p), a[1].narrow(o, p)) }

// TestRefusals: an ID that the user has named is refused if a filter takes it away, with its field.
func TestRefusals(t *testing.T) {
	strict := host(func(h *Host) {
		h.CipherSuites = []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}
		h.TLS13CipherSuites = []uint16{tls.TLS_AES_256_GCM_SHA384}
		h.Groups = []tls.CurveID{tls.CurveP384}
		h.SignatureSchemes = []tls.SignatureScheme{tls.ECDSAWithP384AndSHA384}
		h.ClientSignatureSchemes = []tls.SignatureScheme{tls.ECDSAWithP384AndSHA384}
	})
	for _, c := range []struct {
		name   string
		asked  Asked
		filter Filter
		field  string // "" if it is not refused
	}{
		{"host/suite", Asked{Config: &tls.Config{CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}}}, strict,
			"CipherSuites"},
		{"host/suite without its version", Asked{Config: &tls.Config{MinVersion: tls.VersionTLS13,
			CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}}}, strict, ""},
		{"host/suite of 1.3", Asked{TLS13CipherSuites: []uint16{tls.TLS_AES_128_GCM_SHA256}}, strict, "WithTLS13CipherSuites"},
		{"host/group", Asked{Config: &tls.Config{CurvePreferences: []tls.CurveID{tls.CurveP384, tls.CurveP256}}}, strict,
			"CurvePreferences"},
		{"host/hybrid for 1.2", Asked{Config: &tls.Config{MaxVersion: tls.VersionTLS12,
			CurvePreferences: []tls.CurveID{tls.X25519MLKEM768, tls.CurveP384}}}, strict, ""},
		{"host/signature", Asked{SignatureSchemes: []tls.SignatureScheme{tls.PSSWithSHA256}}, strict, "WithSignatureAlgorithms"},
		{"host/version", Asked{},
			host(func(h *Host) { h.MinVersion, h.MaxVersion = tls.VersionTLS13, tls.VersionTLS12 }), "MinVersion"},
		{"host/ceiling", Asked{Config: &tls.Config{MaxVersion: tls.VersionTLS12}},
			host(func(h *Host) { h.MinVersion = tls.VersionTLS13 }), "MaxVersion"},
		{"host/clients' signatures", Asked{}, host(func(h *Host) { h.ClientSignatureSchemes = []tls.SignatureScheme{0x0999} }),
			"WithSignatureAlgorithms"},
		{"library/suite", Asked{Config: &tls.Config{CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_RC4_128_SHA}}}, Library{},
			"CipherSuites"},
		{"library/suite beside another", Asked{Config: &tls.Config{CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_RC4_128_SHA,
			tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}}}, Library{}, ""},
		{"library/suite beside another, all named", Asked{All: true, Config: &tls.Config{CipherSuites: []uint16{
			tls.TLS_ECDHE_RSA_WITH_RC4_128_SHA, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}}}, Library{}, "CipherSuites"},
		{"library/no suites", Asked{All: true, Config: &tls.Config{CipherSuites: []uint16{0x5600, 0x00ff, 0x5a5a}}}, Library{}, ""},
		{"library/no suites, TLS 1.2", Asked{Config: &tls.Config{CipherSuites: []uint16{0x5600}, MaxVersion: tls.VersionTLS12}},
			Library{}, "CipherSuites"},
		{"host/suite beside another that the library lacks", Asked{Config: &tls.Config{CipherSuites: []uint16{
			tls.TLS_ECDHE_RSA_WITH_RC4_128_SHA, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}}}, after{Library{}, strict}, ""},
		{"host/no suite", Asked{Config: &tls.Config{CipherSuites: []uint16{0x5600, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}}},
			strict, ""},
		{"host/no group", Asked{Config: &tls.Config{CurvePreferences: []tls.CurveID{0x5a5a, tls.CurveP384}}}, strict, ""},
		{"library/suite of 1.3", Asked{TLS13CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}}, Library{},
			"WithTLS13CipherSuites"},
		{"library/signature", Asked{SignatureSchemes: []tls.SignatureScheme{0x0999}}, Library{}, "WithSignatureAlgorithms"},
		{"library/CCM", Asked{TLS13CipherSuites: []uint16{0x1304}}, Library{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, r := offer(t, &c.asked, c.filter); (r == nil) != (c.field == "") || r != nil && r.Field != c.field {
				t.Errorf("refusal %v, want one of %q", r, c.field)
			}
		})
	}
}

// TestHTTP2: suites that HTTP/2 prohibits are left out, unless the user names them.
func TestHTTP2(t *testing.T) {
	o, _ := offer(t, new(Asked), HTTP2{})
	if len(o.CipherSuites) != 6 || slices.ContainsFunc(o.CipherSuites, func(id uint16) bool { return !isHTTP2Suite(id) }) {
		t.Errorf("HTTP/2 leaves %x", o.CipherSuites)
	}
	named := []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA}
	if o, _ := offer(t, &Asked{Config: &tls.Config{CipherSuites: named}}, HTTP2{}); !slices.Equal(o.CipherSuites, named) {
		t.Errorf("of %x, HTTP/2 leaves %x", named, o.CipherSuites)
	}
}

// TestHostLevel: the policy's level is used unless the user names a lower one, which is refused.
func TestHostLevel(t *testing.T) {
	var nobody *Host
	strict := host(func(h *Host) { h.level = 3 }, libssl.HostCommand{Name: "CipherString", Value: "DEFAULT@SECLEVEL=3"})
	for _, c := range []struct {
		host  *Host
		asked int
		named bool
		want  int // -1: refused
	}{
		{nobody, 2, false, 2}, {nobody, 1, true, 1},
		{strict, 2, false, 3}, {strict, 2, true, -1}, {strict, 3, true, 3}, {strict, 4, true, 4},
	} {
		level, err := c.host.Level(c.asked, c.named)
		if (err != nil) != (c.want < 0) || err == nil && level != c.want {
			t.Errorf("level %d, named %v: %d, %v", c.asked, c.named, level, err)
		}
	}
	cause := errors.New("too weak")
	if r := strict.ExplainCertificate("Certificates", "", cause, 2, false); r == nil || !errors.Is(r, cause) {
		t.Errorf("ExplainCertificate gives %v", r)
	}
	if nobody.ExplainCertificate("Certificates", "", cause, 2, false) != nil ||
		strict.ExplainCertificate("Certificates", "", cause, 2, true) != nil {
		t.Error("the policy is blamed for another level")
	}
}

// TestForCertificate: a certificate's algorithms are those that both of the policy's lists have.
func TestForCertificate(t *testing.T) {
	h := host(func(h *Host) {
		h.SignatureSchemes = []tls.SignatureScheme{tls.PSSWithSHA256, tls.PSSWithSHA384}
		h.ClientSignatureSchemes = []tls.SignatureScheme{tls.PSSWithSHA384, tls.PSSWithSHA512}
	})
	left, err := h.ForCertificate([]tls.SignatureScheme{tls.PSSWithSHA512, tls.PSSWithSHA384, tls.PSSWithSHA256})
	if err != nil || !slices.Equal(left, []tls.SignatureScheme{tls.PSSWithSHA384}) {
		t.Errorf("left are %v, %v", left, err)
	}
	if _, err := h.ForCertificate([]tls.SignatureScheme{tls.PSSWithSHA256}); err == nil {
		t.Error("an algorithm that clients may not use is left")
	}
	if left, err := h.ForCertificate(nil); err != nil || left != nil {
		t.Errorf("no limit becomes %v, %v", left, err)
	}
}
