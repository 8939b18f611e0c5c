package audit

import (
	"context"
	"crypto/tls"
	"slices"
	"testing"

	"github.com/ossl-go/ossl/audit/internal/testcert"
)

// TestOptionsBeforeTLS12 looks at the extensions and settings of a server whose latest version is
// older than TLS 1.2.
func TestOptionsBeforeTLS12(t *testing.T) {
	c := testcert.Cases()[0]
	for _, version := range []uint16{tls.VersionTLS10, tls.VersionTLS11} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			r := newRun(tlsServer(t, &tls.Config{
				Certificates: []tls.Certificate{c.Leaf.TLS(c.Sent...)}, NextProtos: []string{"h2"},
				MinVersion: version, MaxVersion: version,
			}), &c, nil)
			for _, probe := range []func(context.Context, *run) error{probeProtocols, probeOptions} {
				if err := probe(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
			o := &r.facts.Options
			for name, s := range map[string]struct {
				Switch
				want bool
			}{
				"extended master secret": {o.ExtendedMaster, true}, "secure renegotiation": {o.SecureRenegotiation, true},
				"compression": {o.Compression, false}, "client renegotiation": {o.ClientRenegotiation, false},
				"encrypt-then-MAC": {o.EncryptThenMAC, false},
			} {
				if s.State != Tested || s.On != s.want {
					t.Errorf("%s: %+v, want %v", name, s.Switch, s.want)
				}
			}
			if o.ALPN.State != Tested || !slices.Equal(o.ALPN.Values, []string{"h2"}) {
				t.Errorf("ALPN: %+v", o.ALPN)
			}
		})
	}
}
