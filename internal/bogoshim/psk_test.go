//go:build cgo || ossl_nocgo

package main

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestPSK: the runner is an ossl too, since crypto/tls has no pre-shared keys.
func TestPSK(t *testing.T) {
	const key, other = "0123456789abcdef", "fedcba9876543210"
	certs := writeCredentials(t)
	for _, test := range []struct {
		name   string
		runner string // its key
		flags  []string
		fails  bool
	}{
		{"same key", key, nil, false},
		{"with a certificate", key, certs[tlstest.P256], false},
		{"other key", other, nil, true},
		{"other key, with a certificate", other, certs[tlstest.P256], true},
	} {
		for role, server := range map[string]bool{"client": false, "server": true} {
			t.Run(test.name+"/"+role, func(t *testing.T) {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				_, port, _ := net.SplitHostPort(l.Addr().String())
				flags := append([]string{"-port", port, "-shim-id", "77", "-max-version", "771", "-psk", key, "-psk-identity", "id"},
					test.flags...)
				if server {
					flags = append(flags, "-server")
				}
				parsed, err := parseFlags(flags)
				if err != nil {
					t.Fatal(err)
				}
				done := make(chan error, 1)
				go func() { done <- exchangePSK(l, test.runner, server) }()
				err = run(parsed)
				l.Close()
				var u unimplemented
				if peer := <-done; (err != nil) != test.fails || (peer != nil) != test.fails || errors.As(err, &u) {
					t.Errorf("shim: %v; runner: %v; should fail: %v", err, peer, test.fails)
				}
			})
		}
	}
}

// exchangePSK is the runner's end of a connection with a pre-shared key.
func exchangePSK(l net.Listener, key string, client bool) error {
	psk := &ossl.PSK{Identity: []byte("id"), Key: []byte(key)}
	config := &tls.Config{MaxVersion: tls.VersionTLS12}
	ctx, err := ossl.NewContext(config,
		ossl.WithPSK(func(context.Context, string) (*ossl.PSK, error) { return psk, nil }),
		ossl.WithPSKLookup(func(context.Context, []byte) (*ossl.PSK, error) { return psk, nil }))
	if err != nil {
		return err
	}
	conn, err := l.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(tlstest.Patience))
	id := make([]byte, 8)
	if _, err := io.ReadFull(conn, id); err != nil || binary.LittleEndian.Uint64(id) != 77 {
		return errors.Join(err, errors.New("wrong identity"))
	}
	c := ctx.Server(conn)
	if client {
		c = ctx.Client(conn, "")
	}
	if _, err := io.WriteString(c, "ping"); err != nil {
		return err
	}
	echo := make([]byte, 4)
	if _, err := io.ReadFull(c, echo); err != nil {
		return err
	}
	return c.CloseWrite()
}

func TestPSKRefuses(t *testing.T) {
	const key = "0123456789abcdef"
	for _, flags := range [][]string{
		{"-psk", "12345", "-psk-identity", "id"},
		{"-psk", key},
		{"-psk", key, "-psk-identity", "id", "-resume-count", "1"},
	} {
		parsed, err := parseFlags(flags)
		if err != nil {
			t.Fatal(err)
		}
		var u unimplemented
		if _, err := newContext(&parsed.initial, new(seen)); !errors.As(err, &u) {
			t.Errorf("%q: %v", flags, err)
		}
	}
}
