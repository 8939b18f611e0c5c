//go:build cgo || ossl_nocgo

package conns

import (
	"crypto/tls"
	"fmt"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestSchedules checks that the key schedules of the slim library context are used, and that
// connections also work, ossl's own record path included, if a library's key schedules are
// different.
func TestSchedules(t *testing.T) {
	lib, err := libssl.Load("")
	if err != nil {
		t.Fatal(err)
	}
	if libssl.UseSlim() && !libssl.SchedulesSame() {
		t.Errorf("those of OpenSSL %s are different", lib.Version())
	}
	t.Cleanup(func() { libssl.DistrustSchedules(false) })
	for _, distrust := range []bool{false, true} {
		for version, suites := range map[uint16][]uint16{
			tls.VersionTLS12: {tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384},
			tls.VersionTLS13: {tls.TLS_AES_128_GCM_SHA256, tls.TLS_AES_256_GCM_SHA384},
		} {
			for _, suite := range suites {
				t.Run(fmt.Sprintf("distrust=%t/%s", distrust, tls.CipherSuiteName(suite)), func(t *testing.T) {
					libssl.DistrustSchedules(distrust)
					client, server := tlstest.PlainClient(version), tlstest.PlainServer(version)
					server.Certificates = []tls.Certificate{tlstest.ServerCert(tlstest.P256)}
					records := ossl.RecordsDirect
					if ossltest.InFIPS && version == tls.VersionTLS12 { // the module makes GCM's nonces
						records = ossl.RecordsLibssl
					}
					opts := []ossl.Option{ossl.WithRecordPath(records)}
					if version == tls.VersionTLS13 {
						opts = append(opts, ossl.WithTLS13CipherSuites(suite))
					} else {
						client.CipherSuites = []uint16{suite}
					}
					ours := ossltest.Client(t, client, opts...)
					tlstest.Visit(t, ours, tlstest.StdServer(server))
					tlstest.Visit(t, ours, ossltest.Server(t, server, ossl.WithRecordPath(records)))
				})
			}
		}
	}
}
