//go:build (cgo || ossl_nocgo) && linux

package ossl_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestKernelTLSPSK: the kernel seals connections with pre-shared keys too. A policy of the host chooses the suite.
func TestKernelTLSPSK(t *testing.T) {
	seals := needKernelTLS(t)
	for name, suite := range map[string]uint16{
		"ECDHE-PSK-CHACHA20-POLY1305": 0xccac, "PSK-CHACHA20-POLY1305": 0xccab,
		"PSK-AES128-GCM-SHA256": 0x00a8, "PSK-AES256-GCM-SHA384": 0x00a9,
	} {
		t.Run(name, func(t *testing.T) {
			ossltest.UnderPolicy(t, ossltest.PolicyMain+"CipherString = "+name+":ECDHE-RSA-AES128-GCM-SHA256\n", func(t *testing.T) {
				testKernelPSK(t, tls.VersionTLS12, suite, true)
			})
		})
	}
	t.Run("TLS 1.3", func(t *testing.T) {
		testKernelPSK(t, tls.VersionTLS13, tls.TLS_AES_128_GCM_SHA256, seals(tls.VersionTLS13))
	})
}

// testKernelPSK checks both sides of a connection with a pre-shared key.
func testKernelPSK(t *testing.T, version, suite uint16, seals bool) {
	psk := &ossl.PSK{Identity: []byte("meter"), Key: bytes.Repeat([]byte("k"), 32)}
	ctx := ossltest.NewPlainContext(t, &tls.Config{MinVersion: version, MaxVersion: version}, ossl.WithKernelTLS(),
		ossl.WithInsecurePSKWithoutDHE(),
		ossl.WithPSK(func(context.Context, string) (*ossl.PSK, error) { return psk, nil }),
		ossl.WithPSKLookup(func(context.Context, []byte) (*ossl.PSK, error) { return psk, nil }))
	a, b := tlstest.Loopback()
	client, server := ctx.Client(a, ""), ctx.Server(b)
	defer client.Close()
	defer server.Close()
	tlstest.Shake(t, client, server)
	for sender, receiver := range map[*ossl.Conn]*ossl.Conn{client: server, server: client} {
		if got := sender.ConnectionState().CipherSuite; got != suite || sender.PSKIdentity() == nil {
			t.Errorf("suite %#04x with %q", got, sender.PSKIdentity())
		}
		text, got := tlstest.Pattern(100_000), make([]byte, 100_000)
		go sender.Write(text)
		if _, err := io.ReadFull(receiver, got); err != nil || !bytes.Equal(got, text) {
			t.Fatal(err)
		}
		if sender.KernelTLS() != seals {
			t.Errorf("KernelTLS is %v", sender.KernelTLS())
		}
	}
}
