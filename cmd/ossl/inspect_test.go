package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/ossl-go/ossl/cmd/ossl/internal/inspect"
)

// answer is the answer of a process.
const answer = `{"format":1,"version":"v0.1.0","mode":"prefer",
"settings":[{"name":"OSSL_SESSIONS","value":"id"},{"name":"OSSL_KEYS","value":"a","refused":"no\u001b[31m key"}],
"openssl":{"version":"OpenSSL 3.0.19 27 Jan 2026","path":"/usr/lib/libssl.so.3","fips":""},
"connections":[{"engine":"ossl","role":"client","count":5},{"engine":"ossl","role":"server","count":7},
{"engine":"crypto/tls","role":"client","count":3},{"engine":"crypto/tls","role":"QUIC","count":1}],
"left_to_crypto_tls":[{"text":"Rand is set","count":2},{"text":"other reasons","count":1}],
"refused":[{"text":"MinVersion","count":6}],
"contexts":{"compiled":4,"in_use":2},"records":{"direct":11,"libssl":1,"kernel":6},"asked":{"answered":9,"refused":1,"failed":0}}`

// TestInspectProcess: the answer of a process, as text and as JSON.
func TestInspectProcess(t *testing.T) {
	const want = `process         12 /usr/bin/server
on ossl         yes
ossl            v0.1.0
mode            prefer
OpenSSL         OpenSSL 3.0.19 27 Jan 2026
libssl          /usr/lib/libssl.so.3
FIPS mode       no
settings        OSSL_SESSIONS=id
                OSSL_KEYS=a, refused: no�[31m key
connections     on ossl: client 5, server 7
                on crypto/tls: client 3, QUIC 1
because         2: Rand is set
                1: other reasons
refused         6: MinVersion
records         11 connections sealed by ossl (6 by the kernel), 1 by libssl
contexts        4 compiled, 2 in use
asked           9 answers before, 1 refusals to other users, 0 failures
`
	p := &inspect.Process{PID: 12, Name: "/usr/bin/server", Report: &inspect.Report{}}
	if err := json.Unmarshal([]byte(answer), p.Report); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	writeProcess(&out, &inspectedProcess{p.Judge("prefer"), p})
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
	text, err := json.Marshal(inspectResult{Process: &inspectedProcess{p.Judge(""), p}})
	if err != nil {
		t.Fatal(err)
	}
	report := strings.ReplaceAll(answer, "\n", "")
	wantText := `{"process":{"on_ossl":true,"pid":12,"name":"/usr/bin/server","report":` + report + `}}`
	if string(text) != wantText {
		t.Errorf("got\n%s\nwant\n%s", text, wantText)
	}
}

// TestInspectSilent: a process without an answer, whose program 'ossl go' has built.
func TestInspectSilent(t *testing.T) {
	const want = `process         12
no answer       process 12 is in another network namespace
                Do: run it there.

Its program:
on ossl         no: its mode is prefer, not require
                Do: build it with 'ossl go --mode require'.
engine          ossl v0.1.0, under crypto/tls, and ossl v0.2.0, as a library: two copies, each with
                its own settings
mode            prefer
settings        a=b
built by        'ossl go' with go1.26.8, build 3f2a
Go              go1.26.8, linux/amd64, without cgo, PIE, tags a,b
module          example.org/a v1.2.3, package example.org/a/b
`
	no := false
	p := &inspect.Process{PID: 12, Silent: "process 12 is in another network namespace", Remedy: "run it there",
		Program: &inspect.Program{Engine: inspect.Twice, Library: "v0.2.0", GoVersion: "go1.26.8", GOOS: "linux", GOARCH: "amd64",
			CGO: &no, PIE: true, Tags: []string{"a", "b"}, Package: "example.org/a/b",
			Main:      inspect.Module{Path: "example.org/a", Version: "v1.2.3"},
			Unchanged: &inspect.Marker{Format: 1, Version: "v0.1.0", Build: "3f2a", Mode: "prefer", Go: "go1.26.8", Settings: "a=b"}}}
	var out bytes.Buffer
	writeProcess(&out, &inspectedProcess{inspect.Verdict{Reason: "its mode is prefer, not require",
		Do: "build it with 'ossl go --mode require'"}, p})
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
}

// TestInspectControls: no text of a program or a process reaches the terminal's control characters, C1's neither.
func TestInspectControls(t *testing.T) {
	const hostile = "a\x1b[31m\u009b31m\x7f\u0085\x00b\nmode            require"
	report := &inspect.Report{Mode: hostile, Left: []inspect.Reason{{Text: hostile, Count: 1}}}
	p := &inspect.Process{PID: 12, Name: hostile, Report: report}
	r := &inspectedProcess{p.Judge(""), p}
	var text, asJSON bytes.Buffer
	writeProcess(&text, r)
	if err := writeJSON(&asJSON, inspectResult{Process: r}); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{text.String(), asJSON.String()} {
		if i := strings.IndexFunc(out, func(r rune) bool { return r != '\n' && unicode.IsControl(r) }); i >= 0 {
			t.Errorf("a control character at %d of %q", i, out)
		}
		if strings.Contains(out, "\nmode            require") {
			t.Errorf("a forged line in %q", out)
		}
	}
	var read struct{ Process struct{ Name string } }
	if err := json.Unmarshal(asJSON.Bytes(), &read); err != nil || read.Process.Name != hostile {
		t.Errorf("%q, %v", read.Process.Name, err)
	}
}
