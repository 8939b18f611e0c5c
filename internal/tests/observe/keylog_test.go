//go:build cgo || ossl_nocgo

package observe

import (
	"bytes"
	"crypto/tls"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// lines returns the lines of a key log by their labels.
func lines(log string) map[string][]string {
	byLabel := map[string][]string{}
	for line := range strings.Lines(log) {
		label, _, _ := strings.Cut(line, " ")
		byLabel[label] = append(byLabel[label], line)
	}
	return byLabel
}

// TestKeyLogFile checks that OSSL_KEYLOG names a file that gets the keys of each connection, as the
// configuration's own writer does, and that one warning about it is logged.
func TestKeyLogFile(t *testing.T) {
	var warnings bytes.Buffer
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&warnings, nil)))
	for _, version := range tlstest.Versions {
		name := filepath.Join(t.TempDir(), "keys")
		t.Setenv("OSSL_KEYLOG", name)
		warnings.Reset()
		var own bytes.Buffer
		cc, sc := tlstest.ClientConfig(tlstest.Only(version)), tlstest.ServerConfig()
		cc.KeyLogWriter = &own
		client, server := ossltest.NewContext(t, cc), ossltest.NewContext(t, sc)
		tlstest.Visit(t, ossltest.ClientOf(client), ossltest.ServerOf(server))
		log, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the file's mode is %v, want 0600 (%v)", info.Mode(), err)
		}
		label := "CLIENT_RANDOM"
		if version == tls.VersionTLS13 {
			label = "CLIENT_TRAFFIC_SECRET_0"
		}
		of := lines(string(log))[label]
		if len(of) != 2 || of[0] != of[1] {
			t.Errorf("%s: the client's and the server's lines differ: %q", label, log)
		}
		if got := lines(own.String())[label]; len(got) != 1 || got[0] != of[0] {
			t.Errorf("%s: the configuration's own writer has %q", label, own.String())
		}
		if n := strings.Count(warnings.String(), "level=WARN"); n != 1 || !strings.Contains(warnings.String(), name) {
			t.Errorf("%d warnings, want one that names the file: %s", n, &warnings)
		}
	}
}

// TestKeyLogFileRefused checks that a file that can't be written is an error.
func TestKeyLogFileRefused(t *testing.T) {
	t.Setenv("OSSL_KEYLOG", t.TempDir()) // a folder
	var e *ossl.ConfigError
	if _, err := ossl.NewContext(tlstest.ClientConfig()); !errors.As(err, &e) || e.Field != "OSSL_KEYLOG" || e.Err == nil {
		t.Errorf("NewContext returns %v", err)
	}
}

// TestKeyLogFileFIPS checks that FIPS mode writes no keys.
func TestKeyLogFileFIPS(t *testing.T) {
	ossltest.NeedFIPS(t)
	name := filepath.Join(t.TempDir(), "keys")
	t.Setenv("OSSL_KEYLOG", name)
	var e *ossl.ConfigError
	_, err := ossl.NewContext(tlstest.ClientConfig(ossltest.Approved), ossltest.FIPSOptions()...)
	if !errors.As(err, &e) || e.Field != "OSSL_KEYLOG" {
		t.Errorf("NewContext returns %v", err)
	}
	if _, err := os.Stat(name); !os.IsNotExist(err) {
		t.Errorf("the file was made: %v", err)
	}
}
