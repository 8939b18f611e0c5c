package localca_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/localca"
)

const day = 24 * time.Hour

func open(t *testing.T, folder string, kind localca.Kind) *localca.Authority {
	t.Helper()
	a, err := localca.Open(folder, kind)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestHandshake: with each kind of key, server and client accept each other.
func TestHandshake(t *testing.T) {
	for _, name := range localca.Kinds {
		t.Run(name, func(t *testing.T) {
			kind, err := localca.ParseKind(name)
			if err != nil {
				t.Fatal(err)
			}
			out := t.TempDir()
			a := open(t, filepath.Join(t.TempDir(), "ca"), "")
			request := localca.Request{Names: []string{"a.test", "::1"}, Kind: kind, Lifetime: day}
			server, err := a.Issue(request, out)
			if strings.HasPrefix(name, "mldsa") && !hasMLDSA {
				if err == nil || !strings.Contains(err.Error(), "Go 1.27") || !strings.Contains(err.Error(), runtime.Version()) {
					t.Fatalf("%v, want an error that names the version of Go", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			request.Names, request.Client = []string{"Alice"}, true
			client, err := a.Issue(request, out)
			if err != nil {
				t.Fatal(err)
			}
			roots := x509.NewCertPool()
			roots.AddCert(a.Certificate)
			for _, host := range []string{"a.test", "::1"} {
				handshake(t,
					&tls.Config{Certificates: pair(t, server), ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots},
					&tls.Config{Certificates: pair(t, client), RootCAs: roots, ServerName: host})
			}
		})
	}
}

func pair(t *testing.T, issued *localca.Issued) []tls.Certificate {
	t.Helper()
	cert, err := tls.LoadX509KeyPair(issued.CertificateFile, issued.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	return []tls.Certificate{cert}
}

func handshake(t *testing.T, server, client *tls.Config) {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	done := make(chan error, 1)
	go func() {
		s := tls.Server(a, server)
		_, err := s.Write([]byte("hello"))
		_ = s.CloseWrite()
		done <- err
	}()
	got, err := io.ReadAll(tls.Client(b, client))
	if err != nil || string(got) != "hello" {
		t.Errorf("client: %q, %v", got, err)
	}
	if err := <-done; err != nil {
		t.Errorf("server: %v", err)
	}
}

// TestParallelOpen: of processes that make the same authority, one does, and all use it.
func TestParallelOpen(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "config", "ca")
	const n = 8
	var made, certs [n]bool
	authorities := make([]*localca.Authority, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			a, err := localca.Open(folder, "")
			if err != nil {
				t.Error(err)
				return
			}
			authorities[i], made[i], certs[i] = a, a.Made, true
		})
	}
	all.Wait()
	count := 0
	for i := range n {
		if !certs[i] || !authorities[i].Certificate.Equal(authorities[0].Certificate) {
			t.Fatalf("process %d has another authority", i)
		}
		if made[i] {
			count++
		}
	}
	if count != 1 {
		t.Errorf("%d have made the authority", count)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(folder), ".ossl-*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// TestParallelIssue: of certificates with the same name, one is written, and its key belongs to it.
func TestParallelIssue(t *testing.T) {
	a, out := open(t, filepath.Join(t.TempDir(), "ca"), ""), t.TempDir()
	var mu sync.Mutex
	var issued []*localca.Issued
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			one, err := a.Issue(localca.Request{Names: []string{"a.test"}, Lifetime: day}, out)
			if err != nil && !errors.Is(err, fs.ErrExist) {
				t.Error(err)
			}
			if err == nil {
				mu.Lock()
				issued = append(issued, one)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(issued) != 1 {
		t.Fatalf("%d certificates were written", len(issued))
	}
	pair(t, issued[0])
}

// TestLoneKey: a process that is killed between the key and the certificate leaves the key, which the
// next run uses, unless it is of another kind.
func TestLoneKey(t *testing.T) {
	a, out := open(t, filepath.Join(t.TempDir(), "ca"), ""), t.TempDir()
	request := localca.Request{Names: []string{"a.test"}, Lifetime: day}
	issued, err := a.Issue(request, out)
	if err != nil {
		t.Fatal(err)
	}
	before := leaf(t, issued.CertificateFile)
	if err := os.Remove(issued.CertificateFile); err != nil {
		t.Fatal(err)
	}
	request.Kind = localca.Ed25519
	if _, err := a.Issue(request, out); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a key of another kind: %v", err)
	}
	request.Kind = localca.ECDSA
	if issued, err = a.Issue(request, out); err != nil {
		t.Fatal(err)
	}
	pair(t, issued)
	if !before.PublicKey.(*ecdsa.PublicKey).Equal(leaf(t, issued.CertificateFile).PublicKey) {
		t.Error("the certificate has another key")
	}
}

// TestSerials: serial numbers are random, positive, and of at most 20 bytes (RFC 5280, section
// 4.1.2.2).
func TestSerials(t *testing.T) {
	a, seen := open(t, filepath.Join(t.TempDir(), "ca"), ""), map[string]bool{}
	for _, name := range []string{"a.test", "b.test", "c.test"} {
		issued, err := a.Issue(localca.Request{Names: []string{name}, Lifetime: day}, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		serial := leaf(t, issued.CertificateFile).SerialNumber
		if serial.Sign() <= 0 || serial.BitLen() < 64 || len(serial.Bytes()) > 20 || seen[serial.String()] {
			t.Errorf("serial number %x", serial)
		}
		seen[serial.String()] = true
	}
}

func leaf(t *testing.T, file string) *x509.Certificate {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		t.Fatalf("%s holds no PEM", file)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// TestAuthoritiesAreChecked: a folder with a certificate that is no authority's, or isn't valid, is
// refused, and nothing in it changes.
func TestAuthoritiesAreChecked(t *testing.T) {
	now := time.Now()
	good := x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	for _, c := range []struct {
		name   string
		change func(*x509.Certificate)
		want   string // "" if it is accepted
	}{
		{"good", func(*x509.Certificate) {}, ""},
		{"leaf", func(c *x509.Certificate) { c.IsCA = false }, "not the certificate of an authority"},
		{"no constraints", func(c *x509.Certificate) { c.IsCA, c.BasicConstraintsValid = false, false },
			"not the certificate of an authority"},
		{"can't sign", func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageCRLSign }, "not the certificate of an authority"},
		{"expired", func(c *x509.Certificate) { c.NotAfter = now.Add(-time.Minute) }, "has expired"},
		{"not yet valid", func(c *x509.Certificate) { c.NotBefore = now.Add(time.Minute) }, "is not valid before"},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := t.TempDir()
			template := good
			c.change(&template)
			key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			der, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
			if err != nil {
				t.Fatal(err)
			}
			private, err := x509.MarshalPKCS8PrivateKey(key)
			if err != nil {
				t.Fatal(err)
			}
			text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
			file := filepath.Join(folder, localca.CertificateFile)
			write(t, file, text)
			write(t, filepath.Join(folder, localca.KeyFile), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
			_, err = localca.Open(folder, "")
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if after, err := os.ReadFile(file); err != nil || !bytes.Equal(after, text) {
				t.Errorf("the certificate has changed: %v", err)
			}
		})
	}
}

// TestLifetime: no certificate is valid for longer than its authority. A new authority is for the
// 3650 days that the command allows.
func TestLifetime(t *testing.T) {
	a, out := open(t, filepath.Join(t.TempDir(), "ca"), ""), t.TempDir()
	if _, err := a.Issue(localca.Request{Names: []string{"a.test"}, Lifetime: 3650 * day}, out); err != nil {
		t.Error(err)
	}
	_, err := a.Issue(localca.Request{Names: []string{"b.test"}, Lifetime: 3660 * day}, out)
	if err == nil || !strings.Contains(err.Error(), "its authority ends on") {
		t.Errorf("longer than the authority: %v", err)
	}
}

func write(t *testing.T, file string, text []byte) {
	t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// FuzzNames: a request either is refused, or makes a certificate in the given folder whose names
// crypto/x509 can read back.
func FuzzNames(f *testing.F) {
	for _, seed := range []string{"localhost", "*.a.test", "::1", "a@b.test", "https://a.test/", "../../etc/x", "ä.test", "-x", ".",
		"a\x00b", "a0://0."} {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	a, err := localca.Open(filepath.Join(f.TempDir(), "ca"), localca.Ed25519)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, name string, client bool) {
		out := t.TempDir()
		request := localca.Request{Names: []string{name}, Client: client, Kind: localca.Ed25519, Lifetime: day}
		issued, err := a.Issue(request, out)
		if err != nil {
			if entries, _ := os.ReadDir(out); len(entries) > 0 {
				t.Errorf("%q: error %v, and files", name, err)
			}
			return
		}
		if filepath.Dir(issued.CertificateFile) != out || filepath.Dir(issued.KeyFile) != out {
			t.Errorf("%q: written to %q", name, issued.CertificateFile)
		}
		cert := leaf(t, issued.CertificateFile)
		if names := len(cert.DNSNames) + len(cert.IPAddresses) + len(cert.EmailAddresses) + len(cert.URIs); names != 1 && !client {
			t.Errorf("%q: %d names", name, names)
		}
	})
}
