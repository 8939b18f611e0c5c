//go:build cgo || ossl_nocgo

package records

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// aeadSuites are those whose connections can be taken over, with the key that they authenticate
// with.
var aeadSuites = []struct {
	id  uint16
	key tlstest.KeyKind
}{
	{tls.TLS_AES_128_GCM_SHA256, tlstest.P256},
	{tls.TLS_AES_256_GCM_SHA384, tlstest.P256},
	{tls.TLS_CHACHA20_POLY1305_SHA256, tlstest.P256},
	{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tlstest.P256},
	{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tlstest.P256},
	{tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tlstest.P256},
	{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tlstest.RSA2048},
	{tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, tlstest.RSA2048},
	{tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, tlstest.RSA2048},
}

// TestTakenOver: with every suite that can be taken over, in every pairing, it is: RecordsDirect fails
// otherwise. Exporters agree with crypto/tls's.
func TestTakenOver(t *testing.T) {
	data := make([]byte, 200_000)
	rand.NewChaCha8([32]byte{}).Read(data)
	for _, suite := range aeadSuites {
		for _, pairing := range []string{"ossl-ossl", "std-ossl", "ossl-std"} { // client-server
			t.Run(tls.CipherSuiteName(suite.id)+"/"+pairing, func(t *testing.T) {
				clientConfig, serverConfig, opts := ossltest.SuiteConfigs(t, suite.id, suite.key)
				opts = append(opts, ossl.WithRecordPath(ossl.RecordsDirect))
				a, b := tlstest.Buffered()
				var client, server tlstest.Conn = tlstest.Std.Client(a, clientConfig), tlstest.Std.Server(b, serverConfig)
				if pairing != "std-ossl" {
					ctx, err := ossl.NewContext(ossltest.WithSessions(clientConfig), opts...)
					if err != nil {
						t.Fatal(err)
					}
					client = ctx.Client(a, "")
				}
				if pairing != "ossl-std" {
					ctx, err := ossl.NewContext(ossltest.WithSessions(serverConfig), opts...)
					if err != nil {
						t.Fatal(err)
					}
					server = ctx.Server(b)
				}
				defer client.Close()
				defer server.Close()
				tlstest.Shake(t, client, server)
				state := client.ConnectionState()
				// In TLS 1.3, crypto/tls's choice of a suite depends on the machine.
				if got := state.CipherSuite; got != suite.id && pairing == "ossl-ossl" {
					t.Fatal("negotiated", tls.CipherSuiteName(got))
				}
				tlstest.EchoBack(t, client, server, data)
				compareExporters(t, client, server)
			})
		}
	}
}

func compareExporters(t *testing.T, client, server tlstest.Conn) {
	t.Helper()
	for _, context := range [][]byte{nil, {}, []byte("some context"), make([]byte, 600)} {
		for _, n := range []int{0, 1, 32, 48, 49, 300} {
			a, errA := client.ExportKeyingMaterial("EXPERIMENTAL test", context, n)
			b, errB := server.ExportKeyingMaterial("EXPERIMENTAL test", context, n)
			if errA != nil || errB != nil || !bytes.Equal(a, b) || len(a) != n {
				t.Errorf("exporter with %d bytes of context, length %d: %x, %v and %x, %v", len(context), n, a, errA, b, errB)
			}
		}
	}
}

func TestRecordPathOptions(t *testing.T) {
	var refused *ossl.ConfigError
	if _, err := ossl.NewContext(nil, ossl.WithRecordPath(7)); !errors.As(err, &refused) || refused.Field != "WithRecordPath" {
		t.Errorf("path 7: %v", err)
	}
	t.Setenv("OSSL_RECORDS", "mine")
	if _, err := ossl.NewContext(nil); !errors.As(err, &refused) || refused.Field != "OSSL_RECORDS" {
		t.Errorf("OSSL_RECORDS=mine: %v", err)
	}
	a, _ := tlstest.Buffered()
	if err := ossl.Client(a, tlstest.ClientConfig()).Handshake(); !errors.As(err, &refused) || refused.Field != "OSSL_RECORDS" {
		t.Errorf("OSSL_RECORDS=mine, Client: %v", err)
	}
	t.Setenv("OSSL_RECORDS", "")
	t.Setenv("OSSL_SLIM", "no")
	if _, err := ossl.NewContext(nil); !errors.As(err, &refused) || refused.Field != "OSSL_SLIM" {
		t.Errorf("OSSL_SLIM=no: %v", err)
	}
	t.Setenv("OSSL_SLIM", "")
	for _, n := range []string{"0", "33", "-1", "many"} {
		t.Setenv("OSSL_SHARDS", n)
		if _, err := ossl.Library(); !errors.As(err, &refused) || refused.Field != "OSSL_SHARDS" {
			t.Errorf("OSSL_SHARDS=%s: %v", n, err)
		}
	}
}

// TestRecordSizes: the records of a write, and of those after it, are as long as crypto/tls's.
func TestRecordSizes(t *testing.T) {
	for _, writes := range [][]int{
		{300_000}, {1, 1000, 2000, 20000, 100_000, 5, 40_000, 100_000}, {16384, 16385, 140_000, 16384, 70_000},
	} {
		for _, version := range tlstest.Versions {
			for _, fixed := range []bool{false, true} {
				t.Run(fmt.Sprintf("%v/%s/%v", writes, tlstest.VersionName(version), fixed), func(t *testing.T) {
					want := recordLengths(t, tlstest.Std, version, fixed, writes)
					got := recordLengths(t, ossltest.OnPath(ossl.RecordsDirect), version, fixed, writes)
					if fmt.Sprint(got) != fmt.Sprint(want) {
						t.Errorf("records of\n%v, crypto/tls's are\n%v", got, want)
					}
				})
			}
		}
	}
}

// recordLengths returns the lengths of the records that a client seals for writes.
func recordLengths(t *testing.T, impl tlstest.Impl, version uint16, fixed bool, writes []int) (lengths []int) {
	t.Helper()
	set := func(c *tls.Config) {
		c.MinVersion, c.MaxVersion = version, version
		c.DynamicRecordSizingDisabled = fixed
		c.CipherSuites = []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}
		c.CurvePreferences = []tls.CurveID{tls.X25519}
	}
	clientConfig, serverConfig := tlstest.ClientConfig(set), tlstest.ServerConfig(set)
	serverConfig.Certificates = []tls.Certificate{tlstest.ServerCert(tlstest.RSA2048)} // its signatures have one length
	a, b := tlstest.NewPipe()
	rec := new(tlstest.Recording)
	client, server := impl.Client(rec.Tap(tlstest.ClientRole, a), clientConfig), tlstest.Std.Server(b, serverConfig)
	defer a.Close()
	defer b.Close()
	tlstest.Shake(t, client, server)
	before, _ := tlstest.SplitRecords(rec.Bytes(tlstest.ClientRole))
	go io.Copy(io.Discard, server)
	for _, n := range writes {
		if _, err := client.Write(make([]byte, n)); err != nil {
			t.Fatal(err)
		}
	}
	all, _ := tlstest.SplitRecords(rec.Bytes(tlstest.ClientRole))
	for _, r := range all[len(before):] {
		lengths = append(lengths, len(r.Payload))
	}
	return lengths
}

// TestFatalAlertBesideBlockedWrite: a Read that finds the connection broken returns, though a Write
// has been blocked for long, and its alert is sent when that Write returns.
func TestFatalAlertBesideBlockedWrite(t *testing.T) {
	a, b := net.Pipe()
	client := ossltest.OnPath(ossl.RecordsDirect).Client(a, tlstest.ClientConfig()).(*ossl.Conn)
	server := tlstest.Std.Server(b, tlstest.ServerConfig())
	tlstest.Shake(t, client, server)
	written := make(chan error, 1)
	go func() { _, err := client.Write(make([]byte, 1<<20)); written <- err }()
	one := make([]byte, 1)
	if _, err := b.Read(one); err != nil { // the Write is under way, and the peer doesn't take the rest
		t.Fatal(err)
	}
	damaged := append([]byte{23, 3, 3, 0, 30}, make([]byte, 30)...)
	go b.Write(damaged)
	ctx, cancel := context.WithTimeout(t.Context(), tlstest.Patience)
	defer cancel()
	read := make(chan error, 1)
	go func() { _, err := client.Read(make([]byte, 10)); read <- err }()
	select {
	case err := <-read:
		var alert tls.AlertError
		if !errors.As(err, &alert) || alert != 20 {
			t.Errorf("Read: %v", err)
		}
	case <-ctx.Done():
		t.Fatal("Read waits for the Write")
	}
	select {
	case err := <-written:
		t.Fatalf("Write ended: %v", err)
	default:
	}
	go io.Copy(io.Discard, b)
	if err := <-written; err == nil {
		t.Error("Write succeeds on a failed connection")
	}
	client.Close()
}
