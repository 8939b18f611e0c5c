package unchanged

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestModeOf(t *testing.T) {
	const fips = "asked for by OSSL_FIPS=require"
	for _, c := range []struct {
		built       Mode
		asked, fips string
		want        Mode
		wantErr     string
	}{
		{Prefer, "", "", Prefer, ""},
		{Prefer, "prefer", "", Prefer, ""},
		{Prefer, "require", "", Require, ""},
		{Prefer, "off", "", Off, ""},
		{Require, "", "", Require, ""},
		{Require, "prefer", "", Require, ""},
		{Require, "off", "", "", "OSSL_MODE=off: this program was built with"},
		{Prefer, "", fips, Require, ""},
		{Prefer, "prefer", fips, Require, ""},
		{Prefer, "off", fips, "", "OSSL_MODE=off: FIPS mode is required (" + fips},
		{Prefer, "on", "", "", `OSSL_MODE: "on" is not`},
		{Require, "Require", "", "", `OSSL_MODE: "Require" is not`},
	} {
		got, err := ModeOf(c.built, c.asked, c.fips)
		if got != c.want || (err == nil) != (c.wantErr == "") || err != nil && !strings.HasPrefix(err.Error(), c.wantErr) {
			t.Errorf("ModeOf(%q, %q, %q) = %q, %v", c.built, c.asked, c.fips, got, err)
		}
	}
}

func TestCounter(t *testing.T) {
	var log strings.Builder
	c := NewCounter(&log)
	c.Took(Client)
	c.Took(Server)
	c.Took(Server)
	c.Took(Server)
	c.QUIC()
	c.HandedOver(errors.New("ossl: MinVersion: versions below TLS 1.2 are refused"))
	for range 2 {
		c.Left(Server, errors.New("ossl: MinVersion: versions below TLS 1.2 are refused"))
	}
	c.Refused(Client, errors.New("no OpenSSL"))
	const want = "ossl (devel): server connections are left to crypto/tls: MinVersion: versions below TLS 1.2 are refused\n" +
		"ossl (devel): client connections are refused: no OpenSSL\n"
	if log.String() != want {
		t.Errorf("the log is %q", &log)
	}
	n := c.Counts()
	if n.Ossl[Client] != 1 || n.Ossl[Server] != 2 || n.QUIC != 1 || n.Refused[Reason{Client, "no OpenSSL"}] != 1 ||
		n.Left[Reason{Server, "MinVersion: versions below TLS 1.2 are refused"}] != 3 {
		t.Errorf("%+v", n)
	}
}

// TestReasons: their number is bounded, in memory and in the log.
func TestReasons(t *testing.T) {
	var log strings.Builder
	c := NewCounter(&log)
	for i := range 10 * maxReasons {
		c.Left(Client, fmt.Errorf("reason %d", i))
	}
	left := c.Counts().Left
	if len(left) != maxReasons+1 || left[Reason{Client, otherReasons}] != 9*maxReasons {
		t.Errorf("%d reasons, %d others", len(left), left[Reason{Client, otherReasons}])
	}
	if n := strings.Count(log.String(), "\n"); n != maxReasons+1 {
		t.Errorf("the log has %d lines", n)
	}
}

func TestBuilt(t *testing.T) {
	if b := Built(); b.Format != 1 || b.Mode != Prefer || b.Version == "" {
		t.Errorf("%+v", b)
	}
}
