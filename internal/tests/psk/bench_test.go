//go:build cgo || ossl_nocgo

package psk

import (
	"crypto/tls"
	"io"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/session"
)

// BenchmarkHandshake compares handshakes with a pre-shared key with those that a small device can make instead: with
// an ECDSA certificate, and with a session by its ID or a ticket. Both ends and one message each are counted. Use
// -cpu 1, so that the time is processor time.
func BenchmarkHandshake(b *testing.B) {
	for _, version := range tlstest.Versions {
		cached := []ossl.Option{ossl.WithSessionCache(session.NewCache(100))}
		for _, kind := range []struct {
			name           string
			resumes, psk   bool
			client, server []ossl.Option
		}{
			{name: "certificate"},
			{name: "session", resumes: true, server: cached},
			{name: "psk", psk: true},
		} {
			cc, sc := only(version), only(version)
			if kind.psk {
				kind.client, kind.server = append(kind.client, offering(key256)), append(kind.server, knowing(key256))
			} else {
				cc, sc = tlstest.ClientConfig(tlstest.Only(version)), tlstest.ServerConfig(tlstest.Only(version))
			}
			if kind.resumes {
				cc.ClientSessionCache = tls.NewLRUClientSessionCache(1)
			}
			client, server := ossltest.NewPlainContext(b, cc, kind.client...), ossltest.NewPlainContext(b, sc, kind.server...)
			visit := func() (resumed bool) {
				x, y := tlstest.Buffered()
				c, s := client.Client(x, ""), server.Server(y)
				defer c.Close()
				defer s.Close()
				go io.Copy(s, s)
				buf := make([]byte, 8)
				if _, err := c.Write(buf); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(c, buf); err != nil {
					b.Fatal(err)
				}
				return c.ConnectionState().DidResume
			}
			b.Run(tls.VersionName(version)[4:]+"/"+kind.name, func(b *testing.B) {
				visit()
				for b.Loop() {
					if visit() != kind.resumes {
						b.Fatal("resumed or not")
					}
				}
			})
		}
	}
}
