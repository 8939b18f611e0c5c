package audit

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/asn1"
	"encoding/json"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ossl-go/ossl/audit/internal/testcert"
)

// A chain of very many certificates takes a bounded number of facts.
func TestManyEmptyCertificates(t *testing.T) {
	facts := analyse(chainInput{der: make([][]byte, 300_000), name: "localhost", roots: x509.NewCertPool(), now: time.Now()})
	if n := len(facts.Certificates); n != maxFacts {
		t.Fatalf("%d facts", n)
	}
	if last := facts.Certificates[maxFacts-1].Error; !strings.Contains(last, "299744 after it") {
		t.Fatal(last)
	}
}

// A response that its sender made large, to have the audit compute with a large key, isn't used.
func TestLargeStaple(t *testing.T) {
	c := testcert.Cases()[0]
	facts := analyse(chainInput{der: [][]byte{c.Leaf.Raw}, staple: make([]byte, maxStaple+1), name: "localhost", roots: c.Roots(),
		now: time.Now()})
	if !strings.Contains(facts.StapleError, "it has 16385 bytes") {
		t.Fatal(facts.StapleError)
	}
}

// JSON has no years after 9999 and no offsets of a day, ASN.1 has.
func TestTimesInJSON(t *testing.T) {
	for text, want := range map[string]string{
		"20990101000000+2400": `"2098-12-31T00:00:00Z"`,
		"99991231235959-0700": "null",
		"00000101000000+2300": "null",
		"20990101000000Z":     `"2099-01-01T00:00:00Z"`,
	} {
		var at time.Time
		if _, err := asn1.Unmarshal(append([]byte{24, byte(len(text))}, text...), &at); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if got, err := json.Marshal(jsonTime(at)); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
		if got, err := json.Marshal(inJSON(at)); err != nil || want != "null" && string(got) != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
}

// A certificate whose last day has an offset of a day can be parsed, and must not spoil the report.
func TestCertificateTimesInJSON(t *testing.T) {
	c := testcert.Root(testcert.Template{NotAfter: time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)})
	// From GeneralizedTime to a UTCTime of the same length.
	der := bytes.Replace(c.Raw, []byte("\x18\x0f20990101000000Z"), []byte("\x17\x0f4901010000+2400"), 1)
	facts := analyse(chainInput{der: [][]byte{der}, name: "localhost", roots: x509.NewCertPool(), now: time.Now()})
	if cert := facts.Certificates[0]; cert.Error != "" || cert.NotAfter.Format(time.RFC3339) != "2048-12-31T00:00:00Z" {
		t.Errorf("%+v", cert)
	}
	if _, err := json.Marshal(facts); err != nil {
		t.Error(err)
	}
}

// A server that holds each connection can't hold the audit for as long as it likes. Questions that
// it didn't answer have failed to be tested.
func TestSlowServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connections := 0
		dial := func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			connections++
			t.Cleanup(func() { server.Close() })
			return client, nil
		}
		r := &run{target: Target{Host: "127.0.0.1", Port: 1, Protocol: "tls"}, address: "127.0.0.1:1",
			options: Options{Timeout: 20 * time.Millisecond, MaxConnections: 200, Dial: dial}, facts: &Facts{}}
		for range 2 {
			conn, err := r.dial(t.Context(), r.address)
			if err != nil {
				t.Fatal(err)
			}
			conn.Close()
		}
		for range maxSlow {
			conn, err := r.dial(t.Context(), r.address)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal(err)
			}
			conn.Close()
			conn.Close() // counts once
		}
		if _, err := r.dial(t.Context(), r.address); !errors.Is(err, errSlow) || !finalError(err) || failed(err).State != Failed {
			t.Fatal(err)
		}
		if connections != maxSlow+2 {
			t.Errorf("%d connections", connections)
		}
	})
}
