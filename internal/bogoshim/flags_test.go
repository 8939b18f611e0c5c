package main

import (
	"errors"
	"reflect"
	"testing"
)

func TestParseFlags(t *testing.T) {
	parsed, err := parseFlags([]string{
		"-port", "1234", "-shim-id", "18446744073709551615", "-server", "-cert-file", "default", "-curves", "29", "-curves", "23",
		"-new-x509-credential", "-cert-file", "first", "-signing-prefs", "1027", "-new-x509-credential", "-cert-file", "second",
		"-expect-selected-credential", "-1", "-on-initial-expect-alpn", "foo", "-ocsp-response", "AQID",
		"-resume-count", "2", "-on-resume-max-version", "771", "-on-retry-max-version", "772", "-on-resume-new-x509-credential",
		"-on-resume-cert-file", "third",
	})
	if err != nil {
		t.Fatal(err)
	}
	one := -1
	both := func() settings {
		return settings{
			port: 1234, shimID: 1<<64 - 1, server: true, curves: []uint16{29, 23}, expectSelectedCredential: &one, resumeCount: 2,
			credential: credential{certFile: "default"},
			credentials: []*credential{
				{certFile: "first", signingPrefs: []uint16{1027}},
				{certFile: "second", ocspResponse: []byte{1, 2, 3}},
			},
		}
	}
	want := &test{both(), both()}
	want.initial.expectALPN = "foo"
	want.resume.maxVersion = 771
	want.resume.credentials = append(want.resume.credentials, &credential{certFile: "third"})
	if !reflect.DeepEqual(parsed, want) {
		t.Errorf("got %+v, want %+v", parsed, want)
	}
}

func TestParseFlagsRefuses(t *testing.T) {
	for _, c := range []struct {
		args          []string
		unimplemented bool
	}{
		{[]string{"-no-such-flag"}, true},
		{[]string{"-on-resume-no-such-flag"}, true},
		{[]string{"-on-retry-no-such-flag"}, true},
		{[]string{"-on-resume-server", "-on-resume-new-x509-credential", "-on-resume-must-match-issuer"}, true},
		{[]string{"-on-retry-resume-count"}, false},
		{[]string{"-server", "-new-x509-credential", "-must-match-issuer"}, true},
		{[]string{"-port"}, false},
		{[]string{"-port", "x"}, false},
		{[]string{"-curves", "65536"}, false},
		{[]string{"-ocsp-response", "!"}, false},
	} {
		_, err := parseFlags(c.args)
		var u unimplemented
		if err == nil || errors.As(err, &u) != c.unimplemented {
			t.Errorf("%q: %v; unimplemented should be %v", c.args, err, c.unimplemented)
		}
	}
}

func TestProtocols(t *testing.T) {
	got, err := protocols("\x03foo\x01b")
	if err != nil || !reflect.DeepEqual(got, []string{"foo", "b"}) {
		t.Errorf("got %q, %v", got, err)
	}
	for _, wire := range []string{"\x04foo", "\x03foo\x01"} {
		if got, err := protocols(wire); err == nil {
			t.Errorf("%q: got %q", wire, got)
		}
	}
}
