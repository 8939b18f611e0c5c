package terminator_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// list returns a list of the authority's revoked certificates, in DER. It is in force for another 23 hours.
func (w *world) list(number int64, revoked ...tls.Certificate) []byte {
	w.t.Helper()
	return w.listUntil(time.Now().Add(23*time.Hour), number, revoked...)
}

// listUntil returns a list that is in force for a day.
func (w *world) listUntil(until time.Time, number int64, revoked ...tls.Certificate) []byte {
	w.t.Helper()
	dir := filepath.Dir(w.authority.File)
	pair, err := tls.LoadX509KeyPair(w.authority.File, filepath.Join(dir, "ca-key.pem"))
	if err != nil {
		w.t.Fatal(err)
	}
	template := &x509.RevocationList{Number: big.NewInt(number), ThisUpdate: until.Add(-24 * time.Hour), NextUpdate: until}
	for _, cert := range revoked {
		template.RevokedCertificateEntries = append(template.RevokedCertificateEntries,
			x509.RevocationListEntry{SerialNumber: cert.Leaf.SerialNumber, RevocationTime: time.Now()})
	}
	der, err := x509.CreateRevocationList(rand.Reader, template, w.authority.Certificate, pair.PrivateKey.(crypto.Signer))
	if err != nil {
		w.t.Fatal(err)
	}
	return der
}

// replace replaces a file by renaming.
func (w *world) replace(name string, text []byte) {
	w.t.Helper()
	next := filepath.Join(filepath.Dir(name), ".next") // which isn't looked at in a folder
	w.write(next, string(text))
	if err := os.Rename(next, name); err != nil {
		w.t.Fatal(err)
	}
}

// alertRevoked is a client's error for the alert certificate_revoked.
const alertRevoked = "remote error: tls: revoked certificate"

// TestCRLs: a client that a list has is refused with certificate_revoked, also if it resumes, from the
// list's replacement on. Garbage and older lists have no effect, also at a reload, and are logged and counted.
func TestCRLs(t *testing.T) {
	t.Parallel()
	for _, folder := range []bool{false, true} {
		t.Run(map[bool]string{false: "file", true: "folder"}[folder], func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			good, bad := w.certificates(w.pair(true, "good")), w.certificates(w.pair(true, "bad"))
			name := filepath.Join(w.dir, "lists", "ca.crl")
			if err := os.Mkdir(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			w.write(name, string(w.list(2)))
			config := w.config("ossl", terminator.Site{Root: w.folder(map[string]string{"index.html": "x"}),
				ClientCA: []string{w.authority.File}})
			config.CRLs, config.Admin = []string{name}, "127.0.0.1:0"
			if folder {
				config.CRLs = []string{filepath.Dir(name)}
			}
			r := w.start(config)
			visit := func(version uint16, certs []tls.Certificate, cache tls.ClientSessionCache) (resumed bool, err error) {
				conn, err := r.dial(func(c *tls.Config) {
					c.MinVersion, c.MaxVersion, c.Certificates, c.ClientSessionCache = version, version, certs, cache
				})
				if err != nil {
					return false, err
				}
				defer conn.Close()
				if _, err := io.WriteString(conn, "GET / HTTP/1.0\r\nHost: localhost\r\n\r\n"); err != nil {
					return false, err
				}
				_, err = io.ReadAll(conn)
				return conn.ConnectionState().DidResume, err
			}
			versions := []uint16{tls.VersionTLS12, tls.VersionTLS13}
			caches := map[uint16]tls.ClientSessionCache{}
			for _, version := range versions {
				caches[version] = tls.NewLRUClientSessionCache(0)
				for i := range 2 {
					if resumed, err := visit(version, bad, caches[version]); err != nil || resumed != (i > 0) {
						t.Fatalf("%s, visit %d: resumed %t, %v", tls.VersionName(version), i, resumed, err)
					}
				}
			}
			refused := func(when string) {
				t.Helper()
				for _, version := range versions {
					for _, cache := range []tls.ClientSessionCache{nil, caches[version]} {
						if _, err := visit(version, bad, cache); err == nil || err.Error() != alertRevoked {
							t.Errorf("%s, %s, session %t: %v", when, tls.VersionName(version), cache != nil, err)
						}
					}
					if _, err := visit(version, good, nil); err != nil {
						t.Errorf("%s, %s: the other client is refused: %v", when, tls.VersionName(version), err)
					}
				}
			}
			w.replace(name, w.list(3, bad[0]))
			r.log.await(t, `msg="revocation lists replaced"`)
			refused("revoked")
			r.log.await(t, "msg=handshake", "was revoked")

			w.replace(name, []byte("garbage"))
			r.log.await(t, `msg="revocation lists not replaced"`, "ca.crl")
			refused("garbage")
			w.replace(name, w.list(2))
			r.log.await(t, `msg="revocation lists not replaced"`, "replaced by an older one")
			refused("older")
			again := *config
			if err := r.Reload(context.Background(), &again); err == nil {
				t.Error("a reload takes an older list")
			}
			refused("older, after a failed reload")
			w.replace(name, w.list(4, bad[0]))
			if err := r.Reload(context.Background(), &again); err != nil {
				t.Error(err)
			}
			refused("after a reload")
			if n := strings.Count(r.log.String(), "not replaced"); n != 2 {
				t.Errorf("%d lines of refusals", n)
			}
			_, admin := r.Addrs()
			_, body := get(t, http.DefaultClient, "http://"+admin.String()+"/metrics")
			http.DefaultClient.CloseIdleConnections()
			for _, line := range []string{`crl_changes_total{result="refused"} 2`, `crl_changes_total{result="used"} 2`,
				"crl_next_update_timestamp_seconds "} {
				if !strings.Contains(body, "\nossl_serve_"+line) {
					t.Errorf("no %q in\n%s", line, body)
				}
			}
			without := *config
			without.CRLs = nil
			if err := r.Reload(context.Background(), &without); err != nil {
				t.Error(err)
			}
			if _, err := visit(tls.VersionTLS13, bad, nil); err != nil {
				t.Errorf("without lists: %v", err)
			}
		})
	}
}

// TestCRLFail: without a list that counts, a client is refused, or accepted with soft fail. With it, too, a
// client that is listed is refused. A list that can't be read or used is an error of the start.
func TestCRLFail(t *testing.T) {
	w := newWorld(t)
	site := terminator.Site{Root: w.folder(map[string]string{"index.html": "x"}), ClientCA: []string{w.authority.File}}
	client := w.certificates(w.pair(true, "client"))
	other := newWorld(t)
	file := filepath.Join(w.dir, "ca.crl")
	for _, c := range []struct {
		name string
		list []byte
		soft bool
		want string // the client's error, "" for none
	}{
		{"another's list", other.list(1), false, "remote error: tls: unknown certificate"},
		{"another's list, soft fail", other.list(1), true, ""},
		{"expired", w.listUntil(time.Now().Add(-time.Hour), 1), false, "remote error: tls: unknown certificate"},
		{"listed, soft fail", w.list(1, client...), true, alertRevoked},
		{"not listed", w.list(1), false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.write(file, string(c.list))
			config := w.config("ossl", site)
			config.CRLs, config.CRLSoftFail = []string{file}, c.soft
			r := w.start(config)
			conn, err := r.dial(func(config *tls.Config) {
				config.MaxVersion, config.Certificates = tls.VersionTLS12, client
			})
			_ = conn.Close()
			if warned := strings.Contains(r.log.String(), "a revocation list has expired"); warned != (c.name == "expired") {
				t.Errorf("the log warns of an expired list: %t", warned)
			}
			if c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != c.want) {
				t.Errorf("error %v", err)
			}
		})
	}
	log := slog.New(slog.DiscardHandler)
	for _, c := range []struct{ name, text, want string }{
		{"missing", "", "no such file"},
		{"garbage", "garbage", "the revocation lists can't be used"},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := w.config("ossl", site)
			config.CRLs = []string{filepath.Join(w.dir, c.name)}
			if c.text != "" {
				w.write(config.CRLs[0], c.text)
			}
			if s, err := terminator.Start(context.Background(), config, log, log); err == nil {
				s.Drain(context.Background())
				t.Error("the server starts")
			} else if !strings.Contains(err.Error(), c.want) {
				t.Error(err)
			}
		})
	}
}

// TestBackendCRLs: a backend that a list has, or that no list is for, isn't used; the latter is with soft
// fail. A list that is replaced is in force for the next connection.
func TestBackendCRLs(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), listen(t)
	secure := &tls.Config{Certificates: w.certificates(w.pair(false, "backend.test"))}
	go handle(l, func(conn net.Conn) {
		secured := tls.Server(conn, secure)
		_, _ = io.Copy(secured, secured)
	})
	file := filepath.Join(w.dir, "ca.crl")
	start := func(list []byte, soft bool) *running {
		t.Helper()
		w.write(file, string(list))
		config := w.plain("ossl", "tls://"+l.Addr().String())
		config.Sites[0].Backend.CRLs, config.Sites[0].Backend.CRLSoftFail = []string{file}, soft
		return w.start(config)
	}
	answers := func(r *running, want bool) {
		t.Helper()
		client, err := net.Dial("tcp", r.addr)
		if err == nil { // else the RST came before the connection was seen
			defer client.Close()
			_ = client.SetDeadline(time.Now().Add(patience))
			_, _ = io.WriteString(client, "x")
			_, err = client.Read(make([]byte, 1))
		}
		if (err == nil) != want {
			t.Errorf("%v, want an answer: %t", err, want)
		}
	}
	other := newWorld(t).list(1)
	answers(start(other, false), false)
	answers(start(other, true), true)
	r := start(w.list(1), false)
	answers(r, true)
	w.replace(file, w.list(2, secure.Certificates...))
	r.log.await(t, `msg="revocation lists replaced"`)
	answers(r, false)
	r.log.await(t, "level=ERROR", "msg=backend", "was revoked")
}
