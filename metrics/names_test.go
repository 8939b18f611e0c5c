package metrics_test

import (
	"crypto/tls"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/metrics"
)

func TestNames(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{metrics.Role(true), "server"},
		{metrics.Role(false), "client"},
		{metrics.Version(tls.VersionTLS12), "1.2"},
		{metrics.Version(tls.VersionTLS13), "1.3"},
		{metrics.Version(0x0305), "0x0305"},
		{metrics.CipherSuite(tls.TLS_AES_128_GCM_SHA256), "TLS_AES_128_GCM_SHA256"},
		{metrics.CipherSuite(tls.TLS_RSA_WITH_AES_128_CBC_SHA), "TLS_RSA_WITH_AES_128_CBC_SHA"},
		{metrics.CipherSuite(0xCCAC), "TLS_ECDHE_PSK_WITH_CHACHA20_POLY1305_SHA256"},
		{metrics.CipherSuite(0x4A4A), "0x4A4A"},
		{metrics.Curve(0), ""},
		{metrics.Curve(tls.CurveP256), "secp256r1"},
		{metrics.Curve(tls.CurveP384), "secp384r1"},
		{metrics.Curve(tls.CurveP521), "secp521r1"},
		{metrics.Curve(tls.X25519), "x25519"},
		{metrics.Curve(tls.X25519MLKEM768), "X25519MLKEM768"},
		{metrics.Curve(0x0202), "MLKEM1024"},
		{metrics.Alert(0), ""},
		{metrics.Alert(48), "unknown_ca"},
		{metrics.Alert(121), "ech_required"},
		{metrics.Alert(200), "200"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

// TestAlertNames checks that an alert has a name if crypto/tls has a text for it.
func TestAlertNames(t *testing.T) {
	for n := 1; n < 256; n++ {
		alert := tls.AlertError(n)
		known := !strings.HasPrefix(alert.Error(), "tls: alert(")
		if named := strings.Trim(metrics.Alert(alert), "0123456789") != ""; named != known {
			t.Errorf("alert %d is %q, and crypto/tls has %q", n, metrics.Alert(alert), alert.Error())
		}
	}
}
