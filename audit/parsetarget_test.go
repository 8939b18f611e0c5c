package audit_test

import (
	"strings"
	"testing"

	"github.com/ossl-go/ossl/audit"
)

func TestParseTarget(t *testing.T) {
	for _, test := range []struct {
		in   string
		want audit.Target
		text string // of String
	}{
		{"example.com", audit.Target{Host: "example.com", Port: 443, Protocol: "https"}, "example.com"},
		{"Example.COM.", audit.Target{Host: "example.com", Port: 443, Protocol: "https"}, "example.com"},
		{"example.com:8443", audit.Target{Host: "example.com", Port: 8443, Protocol: "https"}, "https://example.com:8443"},
		{"example.com:12345", audit.Target{Host: "example.com", Port: 12345, Protocol: "tls"}, "tls://example.com:12345"},
		{"mail.example:25", audit.Target{Host: "mail.example", Port: 25, Protocol: "smtp"}, "smtp://mail.example"},
		{"mail.example:587", audit.Target{Host: "mail.example", Port: 587, Protocol: "smtp"}, "submission://mail.example"},
		{"mail.example:993", audit.Target{Host: "mail.example", Port: 993, Protocol: "tls"}, "imaps://mail.example"},
		{"https://example.com/", audit.Target{Host: "example.com", Port: 443, Protocol: "https"}, "example.com"},
		{"HTTPS://example.com:1", audit.Target{Host: "example.com", Port: 1, Protocol: "https"}, "https://example.com:1"},
		{"tls://example.com", audit.Target{Host: "example.com", Port: 443, Protocol: "tls"}, "tls://example.com"},
		{"smtp://mail.example:2525", audit.Target{Host: "mail.example", Port: 2525, Protocol: "smtp"}, "smtp://mail.example:2525"},
		{"submission://mail.example", audit.Target{Host: "mail.example", Port: 587, Protocol: "smtp"}, "submission://mail.example"},
		{"postgresql://db", audit.Target{Host: "db", Port: 5432, Protocol: "postgres"}, "postgres://db"},
		{"postgres-direct://db", audit.Target{Host: "db", Port: 5432, Protocol: "postgres-direct"}, "postgres-direct://db"},
		{"xmpp-server://im.example", audit.Target{Host: "im.example", Port: 5269, Protocol: "xmpp-server"}, "xmpp-server://im.example"},
		{"127.0.0.1:443", audit.Target{Host: "127.0.0.1", Port: 443, Protocol: "https"}, "127.0.0.1"},
		{"[::1]", audit.Target{Host: "::1", Port: 443, Protocol: "https"}, "[::1]"},
		{"[::1]:853", audit.Target{Host: "::1", Port: 853, Protocol: "tls"}, "tls://[::1]:853"},
		{"ldap://[2001:DB8::1]", audit.Target{Host: "2001:db8::1", Port: 389, Protocol: "ldap"}, "ldap://[2001:db8::1]"},
		{"bücher.example", audit.Target{Host: "xn--bcher-kva.example", Port: 443, Protocol: "https"}, "xn--bcher-kva.example"},
		{"_xmpp.example_host.test", audit.Target{Host: "_xmpp.example_host.test", Port: 443, Protocol: "https"},
			"_xmpp.example_host.test"},
	} {
		got, err := audit.ParseTarget(test.in)
		if err != nil || got != test.want {
			t.Errorf("%q: %+v, %v", test.in, got, err)
		}
		if got.String() != test.text {
			t.Errorf("%q: text %q, want %q", test.in, got.String(), test.text)
		}
	}
}

func TestParseTargetRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"":                                 "the host is missing",
		":443":                             "the host is missing",
		"https://":                         "the host is missing",
		"http://example.com":               "plain HTTP has no TLS",
		"gopher://example.com":             `unknown scheme "gopher"`,
		"ftp://example.com":                "not supported",
		"https://example.com/index.html":   "a path",
		"https://example.com?x":            "a query",
		"postgres://user:secret@db":        "a user",
		"example.com:":                     "the port is missing",
		"example.com:0":                    "from 1 to 65535",
		"example.com:65536":                "from 1 to 65535",
		"example.com:99999999999999999999": "from 1 to 65535",
		"example.com:-1":                   "not a number",
		"example.com:https":                "not a number",
		"::1":                              "needs brackets: [::1]",
		"::1:443":                          "needs brackets",
		"a:b:c":                            "more than one colon",
		"[::1":                             "closing bracket",
		"[::1]x":                           "not a port",
		"[::1]:":                           "not a port",
		"[127.0.0.1]":                      "not an IPv6 address",
		"[example.com]:443":                "not an IPv6 address",
		"1.2.3":                            "neither a name nor an address",
		"1.2.3.256":                        "neither a name nor an address",
		"0x7f000001":                       "neither a name nor an address",
		"example..com":                     "an empty label",
		"-example.com":                     "hyphen",
		"exam ple.com":                     "the character ' '",
		"example.com\n":                    "the character '\\n'",
		"--help":                           "hyphen",
		strings.Repeat("a", 64) + ".test":  "longer than 63",
		strings.Repeat("a.", 150) + "test": "longer than 253",
		"\xff\xfe.example":                 "not UTF-8",
		"b\u200d\u00fc.example":            "not an international name",
	} {
		got, err := audit.ParseTarget(in)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v; want an error with %q", in, got, err, want)
		}
	}
}

func FuzzParseTarget(f *testing.F) {
	for _, seed := range []string{"example.com:8443", "smtp://mail.example", "[fe80::1%eth0]:443", "::1", "bücher.example",
		"x://y", "ℌost.example"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		target, err := audit.ParseTarget(s)
		if err != nil {
			return
		}
		again, err := audit.ParseTarget(target.String())
		if err != nil || again != target {
			t.Fatalf("%q: %+v, and %q: %+v, %v", s, target, target.String(), again, err)
		}
	})
}
