//go:build cgo || ossl_nocgo

package differential

import (
	"crypto/tls"
	"fmt"
	"io"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestInsecureTruncation: with that option, the end of a stream between two records is io.EOF, as
// in crypto/tls, and any other end without close_notify stays an error, on both record paths.
func TestInsecureTruncation(t *testing.T) {
	const suite12 = tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
	for _, version := range tlstest.Versions {
		for _, from := range []tlstest.Role{tlstest.ClientRole, tlstest.ServerRole} {
			read := func(impl tlstest.Impl, cut int) (string, error) {
				with := func(c *tls.Config) {
					tlstest.Only(version)(c)
					tlstest.Suites(suite12)(c)
				}
				h := tlstest.Hijack(t, impl, from, tlstest.ClientConfig(with), tlstest.ServerConfig(with))
				defer h.Victim.Close()
				whole := append(h.Seal(tlstest.TypeApplicationData, []byte("whole ")), h.Seal(tlstest.TypeApplicationData, []byte("too"))...)
				last := h.Seal(tlstest.TypeApplicationData, []byte("cut"))
				h.SendRaw(append(whole, last[:min(cut, len(last))]...))
				h.End()
				got, err := io.ReadAll(h.Victim)
				return string(got), err
			}
			for _, cut := range []int{0, 1, 4, 5, 6, 20, 1000} {
				wantText, wantErr := read(tlstest.Std, cut)
				for name, path := range map[string]ossl.RecordPath{"auto": ossl.RecordsAuto, "libssl": ossl.RecordsLibssl} {
					t.Run(fmt.Sprintf("%s/from %s/%d/%s", tlstest.VersionName(version), from, cut, name), func(t *testing.T) {
						options := []ossl.Option{ossl.WithInsecureTruncation(), ossl.WithRecordPath(path)}
						text, err := read(ossltest.Optioned{Options: options}, cut)
						if text != wantText || tlstest.Class(err) != tlstest.Class(wantErr) {
							t.Errorf("%q, %v; crypto/tls %q, %v", text, err, wantText, wantErr)
						}
						if end := cut == 0 || cut == 1000; end != (err == nil) {
							t.Errorf("%v", err)
						}
						options[0] = ossl.WithRecordPath(path)
						if _, err := read(ossltest.Optioned{Options: options}, cut); err != io.ErrUnexpectedEOF {
							t.Errorf("without the option: %v", err)
						}
					})
				}
			}
		}
	}
}
