package libssl

import (
	"crypto/tls"
	"slices"
	"strings"
	"testing"
)

// TestNames: every crypto/tls suite has a name, except RC4, and all names are different.
func TestNames(t *testing.T) {
	for _, suite := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		if rc4 := strings.Contains(suite.Name, "RC4"); (SuiteName(suite.ID) == "") != rc4 {
			t.Errorf("%s has the name %q", suite.Name, SuiteName(suite.ID))
		}
		if versions := suite.SupportedVersions; IsTLS13Suite(suite.ID) != slices.Equal(versions, []uint16{tls.VersionTLS13}) {
			t.Errorf("IsTLS13Suite(%s) is %v", suite.Name, IsTLS13Suite(suite.ID))
		}
	}
	if n := len(Suites(tls.VersionTLS12)) + len(Suites(tls.VersionTLS13)); n != len(suiteNames()) {
		t.Errorf("%d suites of %d belong to a version", n, len(suiteNames()))
	}
	seen := map[string]bool{}
	for _, name := range suiteNames() {
		if seen[name] {
			t.Errorf("%s is the name of two suites", name)
		}
		seen[name] = true
	}
	if _, err := list([]uint16{tls.TLS_AES_128_GCM_SHA256, 0x9999}, suiteNames()); err == nil {
		t.Error("a list with an unknown suite has no error")
	}
}

// TestGroupList: from 3.5 on, the first hybrid and the first other group get key shares.
func TestGroupList(t *testing.T) {
	for _, c := range []struct {
		ids             []tls.CurveID
		before, since35 string
	}{
		{nil, "", ""},
		{[]tls.CurveID{tls.X25519, tls.CurveP256}, "X25519:P-256", "X25519:P-256"},
		{[]tls.CurveID{tls.CurveP256, tls.X25519MLKEM768}, "P-256:X25519MLKEM768", "P-256:X25519MLKEM768"},
		{[]tls.CurveID{tls.X25519MLKEM768}, "X25519MLKEM768", "*X25519MLKEM768"},
		{[]tls.CurveID{tls.X25519MLKEM768, 0x11eb, tls.X25519, tls.CurveP256}, "X25519MLKEM768:SecP256r1MLKEM768:X25519:P-256",
			"*X25519MLKEM768:SecP256r1MLKEM768:*X25519:P-256"},
		{[]tls.CurveID{tls.X25519MLKEM768, 0x0202, tls.X25519}, "X25519MLKEM768:MLKEM1024:X25519", "*X25519MLKEM768:MLKEM1024:*X25519"},
		{[]tls.CurveID{0x0202, tls.X25519}, "MLKEM1024:X25519", "MLKEM1024:X25519"},
	} {
		want := c.before
		if AtLeast(Version3_5) {
			want = c.since35
		}
		if got, err := groupList(c.ids); got != want || err != nil {
			t.Errorf("%v becomes %q, %v; want %q", c.ids, got, err, want)
		}
	}
}

// TestTopics: commands are recognized in any case.
func TestTopics(t *testing.T) {
	for _, c := range []struct {
		command                HostCommand
		topic                  Topic
		level, suiteB, padding bool
	}{
		{HostCommand{Name: "MinProtocol", Value: "TLSv1.3"}, TopicVersions, false, false, false},
		{HostCommand{Name: "CIPHERSTRING", Value: "DEFAULT@SECLEVEL=3"}, TopicCipherSuites, true, false, false},
		{HostCommand{Name: "CipherString", Value: "SUITEB128"}, TopicCipherSuites, false, true, false},
		{HostCommand{Name: "Curves", Value: "P-256"}, TopicGroups, false, false, false},
		{HostCommand{Name: "ECDHParameters", Value: "+Automatic"}, TopicOther, false, false, false},
		{HostCommand{Name: "ECDHParameters", Value: "P-256"}, TopicGroups, false, false, false},
		{HostCommand{Name: "RecordPadding", Value: "1"}, TopicPadding, false, false, false},
		{HostCommand{Name: "RecordPadding", Value: "0, 0x40"}, TopicPadding, false, false, true},
		{HostCommand{Name: "RecordPadding", Value: "much"}, TopicPadding, false, false, true},
		{HostCommand{Name: "VerifyMode", Value: "Peer"}, TopicOther, false, false, false},
	} {
		if c.command.Topic() != c.topic || c.command.SetsLevel() != c.level || c.command.SetsSuiteB() != c.suiteB ||
			c.command.Pads() != c.padding {
			t.Errorf("%v has topic %d, level %v, Suite B %v, padding %v", c.command, c.command.Topic(), c.command.SetsLevel(),
				c.command.SetsSuiteB(), c.command.Pads())
		}
	}
}
