//go:build cgo || ossl_nocgo

package revocation

import (
	"crypto/tls"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

func extension(critical bool, value []byte, oid ...int) pkix.Extension {
	return pkix.Extension{Id: oid, Critical: critical, Value: value}
}

// TestRefusedConfigurations: options without effect, and configurations in which lists would have none,
// are refused by name.
func TestRefusedConfigurations(t *testing.T) {
	lists := loaded(t, tlstest.CA().List(1, nil))
	for name, test := range map[string]struct {
		field string
		edit  func(*tls.Config)
		opts  []ossl.Option
	}{
		"neither":              {"WithCRLs", nil, []ossl.Option{ossl.WithCRLs(lists)}},
		"both":                 {"WithCRLs", nil, soft(lists, ossl.WithCRLHardFail())},
		"nil":                  {"WithCRLs", nil, []ossl.Option{ossl.WithCRLs(nil)}},
		"not loaded":           {"WithCRLs", nil, []ossl.Option{ossl.WithCRLs(new(ossl.CRLs))}},
		"hard alone":           {"WithCRLHardFail", nil, []ossl.Option{ossl.WithCRLHardFail()}},
		"soft alone":           {"WithCRLSoftFail", nil, []ossl.Option{ossl.WithCRLSoftFail()}},
		"grace alone":          {"WithCRLGrace", nil, []ossl.Option{ossl.WithCRLGrace(1)}},
		"no grace":             {"WithCRLGrace", nil, hard(lists, ossl.WithCRLGrace(0))},
		"InsecureSkipVerify":   {"InsecureSkipVerify", tlstest.InsecureSkipVerify, hard(lists)},
		"RequestClientCert":    {"ClientAuth", tlstest.AskClient(tls.RequestClientCert), hard(lists)},
		"RequireAnyClientCert": {"ClientAuth", tlstest.AskClient(tls.RequireAnyClientCert), hard(lists)},
	} {
		config := tlstest.ServerConfig()
		if test.edit != nil {
			test.edit(config)
		}
		_, err := ossl.NewContext(config, test.opts...)
		var e *ossl.ConfigError
		if !errors.As(err, &e) || e.Field != test.field {
			t.Errorf("%s: got %v, want a ConfigError for %s", name, err, test.field)
		}
	}
	if _, err := ossl.LoadCRLs(nil); err == nil {
		t.Error("LoadCRLs(nil) succeeds")
	}
}

// TestChosenConfiguration: lists are for the configurations of GetConfigForClient too, and one that
// would not verify the client's chain fails the handshake.
func TestChosenConfiguration(t *testing.T) {
	for _, auth := range []tls.ClientAuthType{tls.VerifyClientCertIfGiven, tls.RequireAndVerifyClientCert,
		tls.RequireAnyClientCert} {
		p := newPair(tls.VersionTLS13, tlstest.ClientRole, nil)
		chosen := p.server.Clone()
		chosen.ClientAuth = auth
		p.server.ClientAuth = tls.NoClientCert
		p.server.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return chosen, nil }
		client, server, _ := p.ends(t, hard(loaded(t, tlstest.CA().List(1, nil, p.leaf))))
		refused, _ := p.errs(t, client, server)
		var config *ossl.ConfigError
		if auth == tls.RequireAnyClientCert {
			if !errors.As(refused, &config) || config.Field != "ClientAuth" {
				t.Errorf("%v: %v", auth, refused)
			}
			continue
		}
		revocationError(t, refused)
	}
}

// TestFiles: lists come from files and folders, as DER and PEM, and a file that is cut, empty or no
// list refuses all.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ca, inter, other := tlstest.CA().List(1, nil), tlstest.Intermediate().List(1, nil), tlstest.OtherCA().List(1, nil)
	text := pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: ca})
	text = append(text, pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: inter})...)
	file := write("one.pem", text)
	write("folder/other.crl", other)
	write("folder/.being-written", other[:40])
	write("folder/sub/ignored", []byte("x"))
	if err := os.Symlink(file, filepath.Join(dir, "folder", "link")); err != nil {
		t.Fatal(err)
	}
	lists, err := ossl.LoadCRLs(ossl.CRLFiles(file, filepath.Join(dir, "folder")))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(lists.Lists()); n != 3 {
		t.Fatalf("%d lists", n)
	}
	for _, l := range lists.Lists() {
		if l.Number.Int64() != 1 || l.Revoked != 0 || l.Issuer == "" || l.Verified || l.NextUpdate.Before(time.Now()) {
			t.Errorf("got %+v", l)
		}
	}
	ossltest.NewContext(t, tlstest.ServerConfig(func(c *tls.Config) {
		c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, tlstest.CA().Pool()
	}), hard(lists)...)
	verified := 0
	for _, l := range lists.Lists() {
		if l.Verified {
			verified++
		}
	}
	if verified != 1 {
		t.Errorf("%d lists are verified by the configuration's authorities", verified)
	}
	for name, b := range map[string][]byte{"empty": nil, "cut": other[:len(other)-1], "page": []byte("<html>")} {
		path := write("folder/bad", b)
		if err := lists.Reload(); err == nil || len(lists.Lists()) != 3 {
			t.Errorf("%s: %v, %d lists", name, err, len(lists.Lists()))
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if err := lists.Reload(); err != nil {
		t.Error(err)
	}
	for name, path := range map[string]string{"nothing": filepath.Join(dir, "none"),
		"an empty folder": t.TempDir(), "a device": os.DevNull} {
		if _, err := ossl.LoadCRLs(ossl.CRLFiles(path)); err == nil {
			t.Errorf("%s has lists", name)
		}
	}
}
