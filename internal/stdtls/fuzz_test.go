package stdtls

import (
	"context"
	"crypto/tls"
	"testing"

	"github.com/ossl-go/ossl/internal/tlstest"
)

func FuzzCertificateRequest(f *testing.F) {
	f.Add(uint16(tls.VersionTLS12), []byte{13, 0, 0, 12, 2, 1, 64, 0, 4, 4, 3, 8, 4, 0, 2, 0, 0})
	f.Add(uint16(tls.VersionTLS12), []byte{13, 0, 0, 11, 1, 64, 0, 2, 4, 3, 0, 4, 0, 2, 0x30, 0})
	f.Add(uint16(tls.VersionTLS13), []byte{13, 0, 0, 11, 0, 0, 8, 0, 13, 0, 4, 0, 2, 4, 3})
	f.Add(uint16(tls.VersionTLS13), []byte{13, 0, 0, 13, 0, 0, 10, 0, 47, 0, 6, 0, 4, 0, 2, 0x30, 0})
	f.Fuzz(func(t *testing.T, version uint16, message []byte) {
		info, offered, ok := ParseCertificateRequest(version, message)
		if !ok {
			return
		}
		for _, name := range info.AcceptableCAs {
			tlstest.Within(t, name, message)
		}
		if 2*len(offered) > len(message) || len(info.SignatureSchemes) > len(offered) {
			t.Fatal("more schemes than bytes")
		}
	})
}

func FuzzParseHello(f *testing.F) {
	conn := &scriptedConn{}
	_ = tls.Client(conn, &tls.Config{ServerName: "example.org"}).Handshake()
	f.Add(conn.out[5:])
	f.Add([]byte{1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, message []byte) {
		if short := withoutDot(message); len(short) < len(message)-1 {
			t.Fatalf("%d bytes of %d", len(short), len(message))
		}
		records := HelloRecordsWithoutDot(message)
		hello, alert, err := ParseHello(context.Background(), records, &tls.Config{})
		if (hello == nil) == (err == nil) {
			t.Fatalf("hello %v, error %v", hello, err)
		}
		if hello != nil && alert != nil {
			t.Fatal("an alert for a good hello")
		}
	})
}
