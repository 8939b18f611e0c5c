package terminator_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// refusal returns the error of the start with a configuration.
func refusal(t *testing.T, c *terminator.Config) error {
	t.Helper()
	if err := c.Check(); err != nil {
		return err
	}
	log := slog.New(slog.DiscardHandler)
	s, err := terminator.Start(context.Background(), c, log, log)
	if err == nil {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		s.Drain(ended)
	}
	return err
}

// TestDamagedCertificateFiles: a file that is cut or damaged is refused at the start and at a reload,
// for chains and for authorities, and a whole one is sent whole. nginx, if it is installed, accepts no
// file that is refused here except where it would send a part of the chain.
func TestDamagedCertificateFiles(t *testing.T) {
	w := newWorld(t)
	pair := w.pair(false, "localhost", "127.0.0.1")
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	leaf, authority := read(pair.Cert), read(w.authority.File)
	leaf = leaf[:strings.Index(leaf, "-----END CERTIFICATE-----")] + "-----END CERTIFICATE-----\n"
	half := len(authority) / 2
	nginx, nginxErr := exec.LookPath("nginx")
	for _, test := range []struct {
		name, chain string
		refused     string // what the error says, or "" for a good chain
		laxer       bool   // nginx starts, and sends a part
	}{
		{"whole", leaf + authority, "", false},
		{"CRLF", strings.ReplaceAll(leaf+authority, "\n", "\r\n"), "", false},
		{"text between", leaf + "the authority:\n" + authority + "that's all\n", "", false},
		{"a byte order mark at the beginning", "\ufeff" + leaf + authority, "", false},
		{"a byte order mark between", leaf + "\ufeff" + authority, "", false},
		{"cut", leaf + authority[:len(authority)-60], "the file ends inside the PEM block", false},
		{"cut in the first line", leaf + authority[:12], "the file ends inside the PEM block", true},
		{"cut in the first word", leaf + authority[:8], "the file ends inside the PEM block", true},
		{"cut in the leaf", leaf[:len(leaf)-60], "the file ends inside the PEM block", false},
		{"text in a block", leaf + authority[:half] + "\nhello!\n" + authority[half:], "damaged", false},
		{"no end between", strings.Replace(leaf, "-----END CERTIFICATE-----\n", "", 1) + authority, "has no end", true},
		{"no newline between", strings.TrimSpace(leaf) + authority, "damaged", false},
		{"indented", leaf + "  " + strings.ReplaceAll(authority, "\n", "\n  "), "indented", true},
		{"no beginning", leaf + authority[strings.Index(authority, "\n")+1:], "has no beginning", true},
		{"a trusted certificate", leaf + strings.ReplaceAll(authority, "CERTIFICATE", "TRUSTED CERTIFICATE"),
			"TRUSTED CERTIFICATE", true},
		{"no certificate", "nothing\n", "no certificate", false},
		{"UTF-16", "\xff\xfe-\x00-\x00", "UTF-16", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(w.folder(nil), "chain.pem")
			w.write(file, test.chain)
			config := func(cert string) *terminator.Config {
				return w.config("ossl", terminator.Site{Root: w.folder(map[string]string{"index.html": "x"}),
					Pairs: []terminator.Pair{{Cert: cert, Key: pair.Key}}})
			}
			if test.refused == "" {
				w := &world{t: t, dir: t.TempDir(), authority: w.authority, roots: w.roots}
				r := w.start(config(file))
				conn := r.mustDial(nil)
				want := strings.Count(test.chain, "-----BEGIN CERTIFICATE-----")
				if n := len(conn.ConnectionState().PeerCertificates); n != want {
					t.Errorf("%d certificates are sent, of %d", n, want)
				}
				return
			}
			if err := refusal(t, config(file)); err == nil || !strings.Contains(err.Error(), test.refused) {
				t.Errorf("start: %v", err)
			}
			r := w.start(config(pair.Cert))
			if err := r.Reload(context.Background(), config(file)); err == nil || !strings.Contains(err.Error(), test.refused) {
				t.Errorf("reload: %v", err)
			}
			if nginxErr == nil && !test.laxer && nginxTakes(t, nginx, file, pair.Key) {
				t.Error("nginx accepts it")
			}
			if test.refused == "TRUSTED CERTIFICATE" || strings.Contains(test.name, "leaf") {
				return
			}
			c := config(pair.Cert)
			c.Sites[0].ClientCA = []string{file}
			if err := refusal(t, c); err == nil || !strings.Contains(err.Error(), test.refused) {
				t.Errorf("client-ca: %v", err)
			}
			c = w.config("ossl", terminator.Site{Backend: terminator.Backend{To: "tls://127.0.0.1:1", CA: file}})
			if err := refusal(t, c); err == nil || !strings.Contains(err.Error(), test.refused) {
				t.Errorf("to-ca: %v", err)
			}
			c = w.config("ossl", terminator.Site{Backend: terminator.Backend{To: "tls://127.0.0.1:1", Cert: file, Key: pair.Key}})
			if err := refusal(t, c); err == nil || !strings.Contains(err.Error(), test.refused) {
				t.Errorf("to-cert: %v", err)
			}
		})
	}
}

// nginxTakes reports whether nginx accepts a certificate.
func nginxTakes(t *testing.T, nginx, cert, key string) bool {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "nginx.conf")
	text := "error_log stderr;\npid " + dir + "/pid;\nevents {}\nhttp { server { listen unix:" + dir + "/s ssl; ssl_certificate " +
		cert +
		"; ssl_certificate_key " + key + "; } }\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return exec.Command(nginx, "-t", "-p", dir, "-c", file).Run() == nil
}

// TestKeyPassword: encrypted keys of every form load with the password in a file. Without one the
// error names the cause.
func TestKeyPassword(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("needs the program openssl")
	}
	w := newWorld(t)
	pair, folder := w.pair(false, "localhost", "127.0.0.1"), w.folder(nil)
	password, wrong, open := filepath.Join(folder, "password"), filepath.Join(folder, "wrong"), filepath.Join(folder, "open")
	w.write(password, "a pass word\n")
	w.write(wrong, "another\n")
	w.write(open, "a pass word\n")
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, form := range []struct{ name, args string }{
		{"PKCS #8", "pkcs8 -topk8 -in KEY -out OUT -passout file:PASS"},
		{"PKCS #8 in DER", "pkcs8 -topk8 -outform DER -in KEY -out OUT -passout file:PASS"},
		{"traditional", "ec -aes256 -in KEY -out OUT -passout file:PASS"},
		{"PKCS #12", "pkcs12 -export -inkey KEY -in CERT -out OUT -passout file:PASS"},
	} {
		t.Run(form.name, func(t *testing.T) {
			out := filepath.Join(w.folder(nil), "key")
			args := strings.Fields(form.args)
			for i, a := range args {
				args[i] = strings.NewReplacer("KEY", pair.Key, "OUT", out, "PASS", password, "CERT", pair.Cert).Replace(a)
			}
			if text, err := exec.Command(openssl, args...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			engines(t, func(t *testing.T, engine string) {
				config := func(password string) *terminator.Config {
					return w.config(engine, terminator.Site{Root: w.folder(map[string]string{"index.html": "x"}),
						Pairs: []terminator.Pair{{Cert: pair.Cert, Key: out, Password: password}}})
				}
				r := w.start(config(password))
				r.mustDial(nil)
				for name, want := range map[string]string{
					"": "key-password-file", wrong: "is the passphrase or PIN right?", open: "chmod 600",
				} {
					if err := refusal(t, config(name)); err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("with the file %q: %v", name, err)
					}
				}
			})
		})
	}
}

// selfSigned writes a certificate with a P-521 key.
func (w *world) selfSigned(usage x509.ExtKeyUsage) terminator.Pair {
	w.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "p521"},
		DNSNames: []string{"localhost"},
		NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{usage}, BasicConstraintsValid: true, IsCA: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		w.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		w.t.Fatal(err)
	}
	pair := terminator.Pair{Cert: filepath.Join(w.folder(nil), "cert.pem"), Key: filepath.Join(w.folder(nil), "key.pem")}
	w.write(pair.Cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	w.write(pair.Key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	return pair
}

// TestPolicyNamed: if the policy excludes a certificate's key, the error at the start, at a reload and at
// a change of the file names the policy, and so does the log for keys of clients.
func TestPolicyNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	root := w.folder(map[string]string{"index.html": "x"})
	p521 := w.selfSigned(x509.ExtKeyUsageServerAuth)
	with := func(pair terminator.Pair, policy string) *terminator.Config {
		c := w.config("ossl", terminator.Site{Root: root, Pairs: []terminator.Pair{pair}})
		c.Policy = policy
		return c
	}
	const want = "the policy fast-and-safe has no ecdsa_secp521r1_sha512: take another kind of key, or --policy none"
	if err := refusal(t, with(p521, terminator.DefaultPolicy)); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("start: %v", err)
	}
	if err := refusal(t, with(p521, "")); err != nil {
		t.Errorf("without a policy: %v", err)
	}
	pair := w.pair(false, "localhost")
	r := w.start(with(pair, terminator.DefaultPolicy))
	err := r.Reload(context.Background(), with(p521, terminator.DefaultPolicy))
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("reload: %v", err)
	}
	for _, move := range []struct{ from, to string }{{p521.Key, pair.Key}, {p521.Cert, pair.Cert}} {
		if err := os.Rename(move.from, move.to); err != nil {
			t.Fatal(err)
		}
	}
	r.log.await(t, "certificate not replaced", want)

	client := w.selfSigned(x509.ExtKeyUsageClientAuth)
	c := with(w.pair(false, "localhost"), terminator.DefaultPolicy)
	c.Sites[0].ClientCA = []string{client.Cert}
	r = w.start(c)
	conn, err := r.dial(func(config *tls.Config) { config.Certificates = w.certificates(client) })
	if err == nil {
		_, err = conn.Read(make([]byte, 1))
	}
	if err == nil {
		t.Error("the client's certificate was accepted")
	}
	r.log.await(t, "msg=handshake", "policy=", "fast-and-safe", "ecdsa_secp521r1_sha512", "--policy none")
}
