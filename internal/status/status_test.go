package status_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/internal/status"
)

// TestBound: no report is longer than the bound, the most frequent reasons stay, and no connection is lost.
func TestBound(t *testing.T) {
	long := strings.Repeat("\x01", 10_000)
	r := status.Report{Version: long, Mode: long, OpenSSL: status.OpenSSL{Version: long, Path: long, FIPS: long, Problem: long}}
	sum := uint64(0)
	for i := range 1000 {
		r.Settings = append(r.Settings, status.Setting{Name: long, Value: long, Refused: long})
		r.Left = append(r.Left, status.Reason{Text: fmt.Sprint(i, long), Count: uint64(i)})
		r.Connections = append(r.Connections, status.Connections{Engine: long, Role: long})
		sum += uint64(i)
	}
	r.Left = append(r.Left, status.Reason{Text: status.OtherReasons, Count: 1_000_000})
	r.Refused, sum = r.Left, sum+1_000_000
	got := r.Bound()
	text, err := json.Marshal(got)
	if err != nil || len(text) >= status.MaxBytes {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if got.Left[0].Count != 999 {
		t.Errorf("the most frequent reason has count %d, want 999", got.Left[0].Count)
	}
	for _, reason := range got.Left {
		sum -= reason.Count
	}
	if last := got.Left[len(got.Left)-1]; sum != 0 || last.Text != status.OtherReasons {
		t.Errorf("%d connections were lost, and the last reason is %q", sum, last.Text)
	}
	if !reflect.DeepEqual(got.Left, got.Refused) {
		t.Errorf("the same reasons are bounded differently: %v and %v", got.Left, got.Refused)
	}
	if again := got.Bound(); !reflect.DeepEqual(again, got) {
		t.Error("a bounded report changes when it is bounded again")
	}
	if len(r.Left[0].Text) < 10_000 {
		t.Error("the caller's report was changed")
	}
}

// TestSecrets: no password or PIN is in a report.
func TestSecrets(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"plain text: nothing", "plain text: nothing"},
		{"pkcs11:token=a?pin-value=1234&module-name=b", "pkcs11:token=a?pin-value=…&module-name=b"},
		{"pkcs11:?pin-value=1234 and pkcs11:?pin-value=56", "pkcs11:?pin-value=… and pkcs11:?pin-value=…"},
		{"pin-value=", "pin-value=…"},
		{`open "rediss://user:p@ss@host:6379/0": refused`, `open "rediss://user:…@host:6379/0": refused`},
		{"a://:secret@b c://:secret@d", "a://:…@b c://:…@d"},
		{"https://host:443/a:b@c", "https://host:443/a:b@c"},
		{"https://user@host", "https://user@host"},
		{"://", "://"},
	} {
		r := status.Report{Settings: []status.Setting{{Name: "a", Value: c.text, Refused: c.text}},
			Left: []status.Reason{{Text: c.text}}, Refused: []status.Reason{{Text: c.text}},
			OpenSSL: status.OpenSSL{Problem: c.text}}.Bound()
		for _, got := range []string{r.Settings[0].Value, r.Settings[0].Refused, r.Left[0].Text, r.Refused[0].Text, r.OpenSSL.Problem} {
			if got != c.want {
				t.Errorf("%q becomes %q, want %q", c.text, got, c.want)
			}
		}
	}
}
