package policy_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/ossl-go/ossl/policy"
)

func get(t *testing.T, name string) *policy.Policy {
	t.Helper()
	p, err := policy.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDiff(t *testing.T) {
	d := policy.Diff(get(t, "mozilla-intermediate-5.7"), get(t, "mozilla-intermediate-6.0"))
	want := []policy.Difference{
		{Field: "suites12", Name: "TLS_DHE_RSA_WITH_AES_128_GCM_SHA256", A: "recommended"},
		{Field: "suites12", Name: "TLS_DHE_RSA_WITH_AES_256_GCM_SHA384", A: "recommended"},
		{Field: "suites12", Name: "TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256", A: "recommended"},
		{Field: "groups", Name: "X25519MLKEM768", B: "recommended"},
	}
	if !reflect.DeepEqual(d, want) {
		t.Errorf("differences %+v, want %+v", d, want)
	}
	for _, p := range policy.All() {
		if d := policy.Diff(p, get(t, p.Name)); d != nil {
			t.Errorf("%s differs from itself: %v", p.Name, d)
		}
	}
}

// TestDiffFields: a change of any kind is a difference, and its mirror image in the other direction.
func TestDiffFields(t *testing.T) {
	until := &policy.Date{Time: time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC)}
	for name, c := range map[string]struct {
		edit func(*policy.Policy)
		want policy.Difference
	}{
		"level": {func(p *policy.Policy) { p.Groups[0].Level = policy.Required },
			policy.Difference{Field: "groups", Name: "X25519MLKEM768", A: "recommended", B: "required"}},
		"until": {func(p *policy.Policy) { p.Versions[1].Until = until },
			policy.Difference{Field: "versions", Name: "TLS 1.2", A: "allowed", B: "allowed, until 2040-01-01"}},
		"setting": {func(p *policy.Policy) { p.Resumption.Early.Value = "yes" },
			policy.Difference{Field: "resumption.early", A: "no", B: "yes"}},
		"limit": {func(p *policy.Policy) { p.Resumption.Lifetime.Value = 60 },
			policy.Difference{Field: "resumption.lifetime", A: "600, recommended", B: "60, recommended"}},
		"open": {func(p *policy.Policy) { p.Order = policy.Setting{} },
			policy.Difference{Field: "order", A: "server"}},
		"key": {func(p *policy.Policy) { p.Keys[1].Bits = 3072 },
			policy.Difference{Field: "keys", Name: "RSA", A: "2048", B: "3072"}},
		"condition": {func(p *policy.Policy) { p.Suites12[0].Needs = policy.EncryptThenMAC },
			policy.Difference{Field: "suites12", Name: "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", A: "recommended",
				B: "recommended, with encrypt-then-mac only"}},
		"hash": {func(p *policy.Policy) { p.Chain.Hashes = p.Chain.Hashes[:2] },
			policy.Difference{Field: "chain.hashes", Name: "SHA-512", A: "allowed"}},
		"order of a list": {func(p *policy.Policy) { slices.Reverse(p.Versions) },
			policy.Difference{Field: "versions", A: "order TLS 1.3 TLS 1.2", B: "order TLS 1.2 TLS 1.3"}},
		"FIPS": {func(p *policy.Policy) { p.FIPS = true },
			policy.Difference{Field: "fips", B: "yes, required"}},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := get(t, ""), get(t, "")
			c.edit(b)
			if d := policy.Diff(a, b); len(d) != 1 || d[0] != c.want {
				t.Errorf("differences %+v, want %+v", d, c.want)
			}
			mirror := c.want
			mirror.A, mirror.B = mirror.B, mirror.A
			if d := policy.Diff(b, a); len(d) != 1 || d[0] != mirror {
				t.Errorf("differences %+v, want %+v", d, mirror)
			}
		})
	}
}

// TestAt: settings and limits pass too, and the policy itself doesn't change.
func TestAt(t *testing.T) {
	p := get(t, "")
	day := func(y int) *policy.Date { return &policy.Date{Time: time.Date(y, 6, 1, 0, 0, 0, 0, time.UTC)} }
	p.Order.Until, p.Sockets.SendFileChunk.Until = day(2030), day(2030)
	p.Keys[1].Until, p.Chain.Hashes[0].Until = day(2030), day(2030)
	p.Resumption.Lifetime.Until = day(2031)
	later := p.At(time.Date(2030, 6, 2, 0, 0, 0, 0, time.UTC))
	if later.Order.Value != "" || later.Sockets.SendFileChunk.Value != 0 || len(later.Keys) != 1 || len(later.Chain.Hashes) != 2 {
		t.Errorf("values that have passed: %+v", later)
	}
	if later.Resumption.Lifetime.Value != 600 || later.Resumption.Lifetime.Until.String() != "2031-06-01" {
		t.Errorf("a value that has not passed: %+v", later.Resumption.Lifetime)
	}
	if p.Order.Value == "" || len(p.Keys) != 2 {
		t.Error("At changed the policy")
	}
}

// TestAtSharesNothing: At returns all of a policy whose dates are to come, in memory of its own.
func TestAtSharesNothing(t *testing.T) {
	for _, p := range policy.All() {
		c := p.At(time.Time{})
		if !reflect.DeepEqual(c, p) {
			t.Errorf("%s: got %+v\nwant %+v", p.Name, c, p)
		}
		original := map[uintptr]string{}
		walk(reflect.ValueOf(p), "", func(place string, at uintptr) { original[at] = place })
		walk(reflect.ValueOf(c), "", func(place string, at uintptr) {
			if original[at] != "" {
				t.Errorf("%s: %s is shared", p.Name, place)
			}
		})
		if len(original) == 0 {
			t.Errorf("%s: there is nothing that may be shared", p.Name)
		}
	}
}

// walk calls f with the address in each pointer, slice and map.
func walk(v reflect.Value, place string, f func(place string, at uintptr)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			f(place+"*", v.Pointer())
			walk(v.Elem(), place, f)
		}
	case reflect.Map:
		if v.Len() > 0 {
			f(place+"{}", v.Pointer())
		}
	case reflect.Slice:
		if v.Len() > 0 {
			f(place+"[]", v.Pointer())
		}
		for i := range v.Len() {
			walk(v.Index(i), fmt.Sprintf("%s[%d]", place, i), f)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() { // its Location is shared by all
			return
		}
		for i := range v.NumField() {
			walk(v.Field(i), place+"."+v.Type().Field(i).Name, f)
		}
	}
}
