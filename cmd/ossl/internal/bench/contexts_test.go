package bench_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"runtime"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/libssl"
)

// BenchmarkNewContext measures what a Context costs a program with many configurations: the time to
// make one, and the memory that each takes, which its connections share. Clients have a protocol of
// their own each, servers a certificate. For crypto/tls, the configuration is the tls.Config itself,
// which costs nothing until it is used.
func BenchmarkNewContext(b *testing.B) {
	for _, role := range []string{"client", "server"} {
		b.Run("role="+role, func(b *testing.B) {
			configs := make([]*tls.Config, b.N)
			for i := range configs {
				configs[i] = &tls.Config{NextProtos: []string{fmt.Sprint("protocol", i)}, ServerName: "bench.example"}
				if role == "server" {
					configs[i].Certificates = []tls.Certificate{selfSigned(b, int64(i+1))}
				}
			}
			contexts := make([]*ossl.Context, b.N)
			if _, err := ossl.NewContext(configs[0]); err != nil { // what happens once
				b.Fatal(err)
			}
			goBefore, cBefore := heaps()
			b.ResetTimer()
			for i := range contexts {
				var err error
				if contexts[i], err = ossl.NewContext(configs[i]); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			goAfter, cAfter := heaps()
			b.ReportMetric(float64(goAfter-goBefore)/float64(b.N), "go-B/context")
			b.ReportMetric(float64(cAfter-cBefore)/float64(b.N), "c-B/context")
			runtime.KeepAlive(contexts)
			runtime.KeepAlive(configs)
		})
	}
}

// heaps returns the bytes in use in Go, after a collection, and in C.
func heaps() (inGo, inC int64) {
	runtime.GC()
	runtime.GC() // what the first one's cleanups have released
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc), int64(libssl.HeapInUse())
}

func selfSigned(b *testing.B, serial int64) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		DNSNames:     []string{"bench.example"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		b.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
