//go:build cgo || ossl_nocgo

package differential

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// The differential suite plays one case over crypto/tls and this package in all four pairings. A
// run of crypto/tls client and server gives the right outcome: the handshake errors, by their
// classes to errors.Is and errors.As, the whole ConnectionState, the data that was read, and the
// alerts on the wire, deciphered from a recording with the key log. Each difference that libssl
// forces has a row in [deviations], and there are no others.

// pairings are all four, crypto/tls with itself first.
func pairings() []tlstest.Pairing { return tlstest.Pairings(tlstest.Std, ossltest.UnderTest) }

// differ plays a case in all pairings, compares each with crypto/tls's own outcome and returns
// that.
func differ(t *testing.T, c tlstest.Case) *tlstest.Outcome {
	t.Helper()
	return differIn(t, c, pairings()...)
}

// differIn is differ for some pairings; the first is the one that is right.
func differIn(t *testing.T, c tlstest.Case, pairings ...tlstest.Pairing) *tlstest.Outcome {
	t.Helper()
	want := tlstest.Run(pairings[0], c)
	for _, p := range pairings[1:] {
		compare(t, p, want, tlstest.Run(p, c))
	}
	return want
}

// against returns the pairings in which role is played by the implementation that is compared, and
// the other side by crypto/tls.
func against(role tlstest.Role) []tlstest.Pairing {
	if role == tlstest.ClientRole {
		return []tlstest.Pairing{{Client: tlstest.Std, Server: tlstest.Std}, {Client: ossltest.UnderTest, Server: tlstest.Std}}
	}
	return []tlstest.Pairing{{Client: tlstest.Std, Server: tlstest.Std}, {Client: tlstest.Std, Server: ossltest.UnderTest}}
}

func compare(t *testing.T, p tlstest.Pairing, want, got *tlstest.Outcome) {
	t.Helper()
	if want.Hung || got.Hung {
		// The other results of a run that hung mean nothing.
		if want.Hung != got.Hung {
			t.Errorf("%s hung: %v (crypto/tls: %v)\nclient %v, %v\nserver %v, %v", p.Name(), got.Hung, want.Hung,
				got.Client.HandshakeErr, got.Client.TalkErr, got.Server.HandshakeErr, got.Server.TalkErr)
		}
		return
	}
	for _, role := range []tlstest.Role{tlstest.ClientRole, tlstest.ServerRole} {
		w, g := want.Of(role), got.Of(role)
		for _, field := range tlstest.Fields {
			if w.Field(field) == g.Field(field) {
				continue
			}
			if field == "Name" && w.Name == "" && w.Handshake != "ok" {
				continue // crypto/tls notes it somewhat later
			}
			explain := func() string {
				return fmt.Sprintf("handshake error: %v\ntalk error: %v\ncrypto/tls's handshake error: %v\ncrypto/tls's talk error: %v",
					g.HandshakeErr, g.TalkErr, w.HandshakeErr, w.TalkErr)
			}
			differs(t, p, role, field, w.Field(field), g.Field(field), explain)
		}
	}
}

// same compares one observation outside of a Run. The side is the one observed, as in "ossl
// client".
func same(t *testing.T, role tlstest.Role, field, want, got string, explain func() string) {
	t.Helper()
	if want == got {
		return
	}
	p := tlstest.Pairing{Client: tlstest.Std, Server: tlstest.Std}
	if role == tlstest.ClientRole {
		p.Client = ossltest.UnderTest
	} else {
		p.Server = ossltest.UnderTest
	}
	differs(t, p, role, field, want, got, explain)
}

func differs(t *testing.T, p tlstest.Pairing, role tlstest.Role, field, want, got string, explain func() string) {
	t.Helper()
	if field == "State" || field == "Calls" {
		want, got = diffWords(want, got)
	}
	where := p.Impl(role).Name() + " " + string(role)
	name := strings.Replace(strings.TrimPrefix(t.Name(), "TestDifferential"), "TestFIPSV", "TestV", 1)
	for i := range deviations {
		d := &deviations[i]
		if d.applies(name, p, where, field, want, got) {
			d.seen.Add(1)
			if testing.Verbose() {
				t.Logf("%s, %s: %s is %q instead of %q: %s", p.Name(), where, field, got, want, d.Reason)
			}
			return
		}
	}
	t.Errorf("%s, %s: %s\n got %s\nwant %s\n%s", p.Name(), where, field, got, want, explain())
}

// diffWords returns the words that differ of two texts with ConnectionStates in them.
func diffWords(want, got string) (string, string) {
	w, g := fieldsOf(want), fieldsOf(got)
	if len(w) != len(g) {
		return want, got
	}
	var dw, dg []string
	for i := range w {
		if w[i] != g[i] {
			dw, dg = append(dw, w[i]), append(dg, g[i])
		}
	}
	return strings.Join(dw, " "), strings.Join(dg, " ")
}

var stateField = regexp.MustCompile(`(?:^| |\()[A-Z][A-Za-z]+=`)

func fieldsOf(state string) (fields []string) {
	at := stateField.FindAllStringIndex(state, -1)
	for i, m := range at {
		end := len(state)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		fields = append(fields, strings.Trim(state[m[0]:end], " ("))
	}
	return fields
}

// mustFail checks that a case is worth comparing: with crypto/tls itself it must fail, as the case
// expects.
func mustFail(t *testing.T, o *tlstest.Outcome) {
	t.Helper()
	if o.Hung {
		t.Error("crypto/tls hangs in this case")
	}
	if o.Client.Handshake == "ok" && o.Client.Talk == "ok" && o.Server.Handshake == "ok" && o.Server.Talk == "ok" {
		t.Error("crypto/tls finds nothing wrong with this case")
	}
}

func mustPass(t *testing.T, o *tlstest.Outcome) {
	t.Helper()
	if o.Hung {
		t.Error("crypto/tls hangs in this case")
	}
	for _, role := range []tlstest.Role{tlstest.ClientRole, tlstest.ServerRole} {
		if s := o.Of(role); s.Handshake != "ok" || s.Talk != "ok" {
			t.Errorf("crypto/tls's %s: handshake %v, then %v", role, s.HandshakeErr, s.TalkErr)
		}
	}
}

// readEOF reads to the end of a connection that should send nothing more.
func readEOF(c tlstest.Conn) (int, error) {
	b, err := io.ReadAll(c)
	if err == nil && len(b) > 0 {
		return len(b), fmt.Errorf("%d more bytes: %q", len(b), b)
	}
	return len(b), err
}
