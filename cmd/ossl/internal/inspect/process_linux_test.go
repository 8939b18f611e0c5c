package inspect_test

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/cmd/ossl/internal/inspect"
	"github.com/ossl-go/ossl/internal/status"
)

// reportVariable makes this program a process that answers with the report that it holds.
const reportVariable = "OSSL_TEST_REPORT"

func TestMain(m *testing.M) {
	text := os.Getenv(reportVariable)
	if text == "" {
		os.Exit(m.Run())
	}
	var r status.Report
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		panic(err)
	}
	status.Start(func() status.Report { return r })
	os.Stdout.Close()
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// answering starts a process that answers with a report, and returns its ID.
func answering(t *testing.T, report string) int {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Args[0] = "program" // not a test
	cmd.Env = append(os.Environ(), reportVariable+"="+report)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	if _, err := io.ReadAll(out); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

func TestProcess(t *testing.T) {
	for _, c := range []struct {
		name, report, require string
		ok                    bool
		reason                string
	}{
		{"prefer", `{"mode":"prefer"}`, "", true, ""},
		{"require", `{"mode":"require"}`, "require", true, ""},
		{"less than required", `{"mode":"prefer"}`, "require", false, "prefer, not require"},
		{"off", `{"mode":"off"}`, "", false, "off"},
		{"no OpenSSL", `{"mode":"prefer","openssl":{"problem":"none was found"}}`, "", false, "none was found"},
		{"some on crypto/tls", `{"mode":"prefer","connections":[{"engine":"crypto/tls","role":"client","count":2},
			{"engine":"ossl","role":"server","count":1}]}`, "", true, ""},
		{"all on crypto/tls", `{"mode":"prefer","connections":[{"engine":"crypto/tls","role":"client","count":2},
			{"engine":"ossl","role":"client","count":0}]}`, "", false, "2"},
		{"QUIC", `{"mode":"prefer","connections":[{"engine":"crypto/tls","role":"QUIC","count":2}]}`, "", true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := inspect.ReadProcess(t.Context(), answering(t, c.report))
			if err != nil || p.Report == nil || p.Program != nil {
				t.Fatalf("%+v, %v", p, err)
			}
			if v := p.Judge(c.require); v.OK != c.ok || (v.Reason == "") != c.ok || !strings.Contains(v.Reason, c.reason) {
				t.Errorf("%+v, want %v, %q", v, c.ok, c.reason)
			}
		})
	}
	t.Run("silent", func(t *testing.T) {
		p, err := inspect.ReadProcess(t.Context(), os.Getpid())
		if err != nil || p.Report != nil || p.Silent == "" || p.Program == nil {
			t.Fatalf("%+v, %v", p, err)
		}
		if v := p.Judge(""); v.OK || v.Reason == "" {
			t.Errorf("%+v, want a reason: this program has no TLS", v)
		}
	})
	t.Run("none", func(t *testing.T) {
		if p, err := inspect.ReadProcess(t.Context(), 1<<30); err == nil {
			t.Errorf("%+v", p)
		}
	})
}
