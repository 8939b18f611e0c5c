package ossl_test

import (
	"crypto/tls"
	"errors"
	"slices"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestOmitted: of the suites and groups that a configuration names, those that OpenSSL lacks are left
// out, and numbers that crypto/tls doesn't know are passed over: Caddy, for example, has
// TLS_FALLBACK_SCSV and X25519MLKEM768 in its default configuration.
func TestOmitted(t *testing.T) {
	const signaling, fallback = 0x00ff, 0x5600 // RFC 5746 and RFC 7507: no suites
	config := func(role func(...func(*tls.Config)) *tls.Config) *tls.Config {
		return role(tlstest.Suites(fallback, signaling, tls.TLS_ECDHE_ECDSA_WITH_RC4_128_SHA, tls.TLS_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384), tlstest.Curves(0x1234, tls.X25519MLKEM768, tls.CurveP256))
	}
	want := []string{"TLS_ECDHE_ECDSA_WITH_RC4_128_SHA"}
	if !libssl.HasGroup(tls.X25519MLKEM768, false) {
		want = append(want, "X25519MLKEM768")
	}
	chosen := tlstest.ServerConfig()
	chosen.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return config(tlstest.ServerConfig), nil }
	for name, ends := range map[string][2]*tls.Config{
		"client":             {config(tlstest.ClientConfig), tlstest.ServerConfig()},
		"server":             {tlstest.ClientConfig(), config(tlstest.ServerConfig)},
		"GetConfigForClient": {tlstest.ClientConfig(), chosen},
	} {
		for _, version := range tlstest.Versions {
			tlstest.Only(version)(ends[0])
			state, _ := tlstest.Visit(t, ossltest.Client(t, ends[0]), ossltest.Server(t, ends[1]))
			if version == tls.VersionTLS12 && state.CipherSuite != tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 {
				t.Errorf("%s: %s", name, tls.CipherSuiteName(state.CipherSuite))
			}
		}
	}
	ctx, err := ossl.NewContext(config(tlstest.ServerConfig))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range ctx.Omitted() {
		names = append(names, o.Name)
		if o.Reason == "" || o.Field != "CipherSuites" && o.Field != "CurvePreferences" {
			t.Errorf("%+v", o)
		}
	}
	if !slices.Equal(names, want) {
		t.Errorf("left out are %q, want %q", names, want)
	}
	var refused *ossl.ConfigError
	if _, err := ossl.NewContext(config(tlstest.ServerConfig), ossl.WithAllNamed()); !errors.As(err, &refused) ||
		refused.Field != "CipherSuites" {
		t.Errorf("WithAllNamed: %v", err)
	}
}
