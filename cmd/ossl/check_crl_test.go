package main

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/localca"
)

// TestCheckCRL: a server whose certificate is in a list has a finding, one without a list that counts isn't
// tested, and a list that can't be used is an error of the command line.
func TestCheckCRL(t *testing.T) {
	dir := t.TempDir()
	authority, err := localca.Open(filepath.Join(dir, "ca"), "")
	if err != nil {
		t.Fatal(err)
	}
	issued, err := authority.Issue(localca.Request{Names: []string{"localhost", "127.0.0.1"}, Lifetime: time.Hour}, dir)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(issued.CertificateFile, issued.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	own, err := tls.LoadX509KeyPair(authority.File, filepath.Join(dir, "ca", localca.KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(time.Minute))
				_, _ = conn.Read(make([]byte, 1))
			}()
		}
	}()
	list := func(until time.Time, revoked ...*big.Int) []byte {
		template := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: until.Add(-24 * time.Hour), NextUpdate: until}
		for _, serial := range revoked {
			template.RevokedCertificateEntries = append(template.RevokedCertificateEntries,
				x509.RevocationListEntry{SerialNumber: serial, RevocationTime: time.Now(), ReasonCode: 1})
		}
		der, err := x509.CreateRevocationList(rand.Reader, template, authority.Certificate, own.PrivateKey.(crypto.Signer))
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	soon := time.Now().Add(time.Hour)
	file := filepath.Join(dir, "ca.crl")
	for _, c := range []struct {
		name string
		list []byte
		want []string
		not  string
		exit int
	}{
		{"revoked", list(soon, pair.Leaf.SerialNumber), []string{"A certificate was revoked", "keyCompromise"}, "", exitFailure},
		{"not revoked", list(soon, big.NewInt(1)), nil, "revoked", 0},
		{"expired", list(time.Now().Add(-time.Hour)), []string{"certificate-revoked", "may be revoked: its issuer's list expired"},
			"was revoked (", exitUntested},
		{"garbage", []byte("garbage"), []string{"--crl: ", "it holds no list"}, "", exitUsage},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.WriteFile(file, c.list, 0o600); err != nil {
				t.Fatal(err)
			}
			var out, errs bytes.Buffer
			code := run(t.Context(), []string{"check", "--quiet", "--roots", authority.File, "--crl", file, "--fail-on", "critical",
				l.Addr().String()}, &out, &errs)
			text := strings.Join(strings.Fields(out.String()+errs.String()), " ") // lines are wrapped
			for _, part := range c.want {
				if !strings.Contains(text, part) {
					t.Errorf("no %q", part)
				}
			}
			if code != c.exit || c.not != "" && strings.Contains(text, c.not) || t.Failed() {
				t.Errorf("exit status %d, want %d\n%s%s", code, c.exit, &out, &errs)
			}
		})
	}
}
