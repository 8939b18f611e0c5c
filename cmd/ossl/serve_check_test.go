//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/audit/report"
)

// TestServePassesCheck: a check of "ossl serve" and "ossl proxy", with certificates of "ossl cert",
// finds only features that this OpenSSL lacks, and that RSA is slow.
func TestServePassesCheck(t *testing.T) {
	for _, c := range []struct {
		name, key string
		allowed   []string
	}{{"ECDSA", "ecdsa", nil}, {"RSA", "rsa", []string{"key-slow"}}} {
		t.Run(c.name, func(t *testing.T) {
			s := newService(t)
			var out, errs bytes.Buffer
			certs := s.path(c.key)
			s.write(c.key+"/x", "")
			ossl := func(args ...string) int {
				out.Reset()
				errs.Reset()
				return run(t.Context(), args, &out, &errs)
			}
			if code := ossl("cert", "--dir", s.path("ca"), "--key", c.key, "--out", certs, "localhost"); code != 0 {
				t.Fatal(&errs)
			}
			s.start("serve", "--cert", filepath.Join(certs, "localhost.pem"), "--key", filepath.Join(certs, "localhost-key.pem"),
				"--listen", "127.0.0.1:0", "--header", "Strict-Transport-Security: max-age=31536000", "public")
			_, port, _ := strings.Cut(s.address, ":")
			code := ossl("check", "--roots", s.path("ca/ca.pem"), "--format", "json", "https://localhost:"+port)
			if code != 0 {
				t.Fatalf("exit status %d: %s%s", code, &out, &errs)
			}
			var document report.Document
			if err := json.Unmarshal(out.Bytes(), &document); err != nil || len(document.Reports) != 1 {
				t.Fatalf("%v: %s", err, &out)
			}
			// OpenSSL has post-quantum groups from 3.5 on; ossl compresses no certificates.
			allowed := append([]string{"group-postquantum", "certificate-compression"}, c.allowed...)
			for _, f := range document.Reports[0].Findings {
				if !slices.Contains(allowed, f.Rule) {
					t.Errorf("%s: %s", f.Rule, f.Evidence)
				}
			}
			s.stop()
		})
	}
}
