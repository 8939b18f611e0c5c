//go:build cgo || ossl_nocgo

package conns

import (
	"crypto/tls"
	"slices"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// handshakes runs client and server over a pair and returns their errors.
func handshakes(client, server interface{ Handshake() error }) (clientErr, serverErr error) {
	done := make(chan error, 1)
	go func() { done <- server.Handshake() }()
	clientErr = client.Handshake()
	return clientErr, <-done
}

// TestHTTP2Hello checks the offers of clients with WithHTTP2.
func TestHTTP2Hello(t *testing.T) {
	cbc := []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA}
	for name, test := range map[string]struct {
		protos, wantProtos []string
		suites             []uint16
		wantCBC            bool
		opts               []ossl.Option
	}{
		"nothing set":    {nil, []string{"h2"}, nil, false, nil},
		"another proto":  {[]string{"foo"}, []string{"foo", "h2"}, nil, false, nil},
		"named already":  {[]string{"h2", "foo"}, []string{"h2", "foo"}, nil, false, nil},
		"suites named":   {nil, []string{"h2"}, cbc, true, nil},
		"security level": {nil, []string{"h2"}, nil, false, []ossl.Option{ossl.WithSecurityLevel(3)}},
	} {
		t.Run(name, func(t *testing.T) {
			config := tlstest.ClientConfig()
			config.NextProtos = append(make([]string, 0, 8), test.protos...)
			config.CipherSuites = test.suites
			client := ossltest.NewContext(t, config, append(test.opts, ossl.WithHTTP2())...)
			if spare := config.NextProtos[:8]; !slices.Equal(config.NextProtos, test.protos) || spare[len(test.protos)] != "" {
				t.Errorf("the caller's NextProtos were changed: %q", spare)
			}

			var hello *tls.ClientHelloInfo
			serverConfig := tlstest.ServerConfig()
			serverConfig.NextProtos = []string{"h2"}
			serverConfig.GetConfigForClient = func(h *tls.ClientHelloInfo) (*tls.Config, error) {
				hello = h
				return nil, nil
			}
			a, b := tlstest.Buffered()
			conn := client.Client(a, tlstest.ServerName)
			clientErr, serverErr := handshakes(conn, tls.Server(b, serverConfig))
			if clientErr != nil || serverErr != nil {
				t.Fatal(clientErr, serverErr)
			}
			if !slices.Equal(hello.SupportedProtos, test.wantProtos) {
				t.Errorf("offers %q, want %q", hello.SupportedProtos, test.wantProtos)
			}
			if got := conn.ConnectionState().NegotiatedProtocol; got != "h2" {
				t.Errorf("negotiated %q", got)
			}
			hasCBC := slices.Contains(hello.CipherSuites, tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA) ||
				slices.Contains(hello.CipherSuites, tls.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA)
			if hasCBC != test.wantCBC {
				t.Errorf("CBC suites offered: %v, want %v", hasCBC, test.wantCBC)
			}
			if !slices.Contains(hello.CipherSuites, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256) {
				t.Error("no suite with AES-GCM is offered")
			}
		})
	}
}

// TestHTTP2DefaultsFitAnyLevel checks that the default suites, which the user has not named, never
// make a configuration fail: level 4 leaves out the 128-bit suites.
func TestHTTP2DefaultsFitAnyLevel(t *testing.T) {
	config := &tls.Config{RootCAs: tlstest.CA().Pool()}
	ossltest.NewContext(t, config, ossl.WithSecurityLevel(4), ossl.WithHTTP2())
}

// TestHTTP2ConfigForClient checks that the option applies to configurations that are chosen at the
// ClientHello.
func TestHTTP2ConfigForClient(t *testing.T) {
	chosen := tlstest.ServerConfig()
	server := ossltest.NewContext(t, &tls.Config{
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return chosen, nil },
	}, ossl.WithHTTP2())
	for name, test := range map[string]struct {
		suites []uint16
		ok     bool
	}{
		"defaults": {nil, true},
		"CBC only": {[]uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA}, false},
	} {
		t.Run(name, func(t *testing.T) {
			config := tlstest.ClientConfig()
			config.NextProtos = []string{"h2"}
			config.MaxVersion = tls.VersionTLS12
			config.CipherSuites = test.suites
			a, b := tlstest.Buffered()
			conn := tls.Client(a, config)
			clientErr, serverErr := handshakes(conn, server.Server(b))
			if ok := clientErr == nil && serverErr == nil; ok != test.ok {
				t.Fatalf("errors %v and %v, want success: %v", clientErr, serverErr, test.ok)
			}
			if test.ok && conn.ConnectionState().NegotiatedProtocol != "h2" {
				t.Errorf("negotiated %q", conn.ConnectionState().NegotiatedProtocol)
			}
		})
	}
	if chosen.NextProtos != nil {
		t.Errorf("the chosen configuration was changed: %q", chosen.NextProtos)
	}
}

func TestContextServerName(t *testing.T) {
	config := &tls.Config{ServerName: tlstest.ServerName}
	ctx := ossltest.NewContext(t, config)
	config.ServerName = tlstest.OtherName // the Context has a copy
	if got := ctx.ServerName(); got != tlstest.ServerName {
		t.Errorf("%q, want %q", got, tlstest.ServerName)
	}
}
