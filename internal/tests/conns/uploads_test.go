//go:build cgo || ossl_nocgo

package conns

import (
	"crypto/tls"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// envUploads is the number of uploads that TestUploads makes at least, instead of one for each row
// of its table, or, for the largest size, for each uploadEnds.
const envUploads = "OSSL_UPLOADS"

var uploadSizes = []int{1, 100, 10_000, 100_000, 1_000_000, tlstest.MaxUpload}

// uploadEnds are the client and the server of an upload.
type uploadEnds struct {
	version         uint16
	client          string // ossl, or crypto/tls
	cached          bool   // whether the client has a ClientSessionCache
	mutual, resumed bool
	records         ossl.RecordPath // the server's
}

func (e uploadEnds) String() string {
	path := map[ossl.RecordPath]string{ossl.RecordsAuto: "auto", ossl.RecordsLibssl: "libssl"}[e.records]
	return fmt.Sprintf("%s/%s/cache=%v/mutual=%v/resumed=%v/%s", tls.VersionName(e.version), e.client, e.cached, e.mutual,
		e.resumed, path)
}

func (e uploadEnds) make(t testing.TB) (client, server tlstest.End) {
	cc, sc := tlstest.ClientConfig(), tlstest.ServerConfig()
	cc.SessionTicketsDisabled, sc.SessionTicketsDisabled = false, false
	cc.MaxVersion = e.version
	if e.cached {
		cc.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	}
	if e.mutual {
		cc.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
		sc.ClientAuth, sc.ClientCAs = tls.RequireAndVerifyClientCert, tlstest.CA().Pool()
	}
	client = tlstest.StdClient(cc)
	if e.client == "ossl" {
		client = ossltest.Client(t, cc)
	}
	return client, ossltest.Server(t, sc, ossl.WithRecordPath(e.records))
}

// TestUploads: all data that a client has sent reaches the server, though the client never reads
// and the server never writes. If TLS 1.3 tickets are unread in the client's socket, its kernel
// sends a reset on close, and undelivered data is lost.
func TestUploads(t *testing.T) {
	rounds, all := 1, false
	var table []uploadEnds
	for _, client := range []string{"ossl", "crypto/tls"} {
		for _, records := range []ossl.RecordPath{ossl.RecordsAuto, ossl.RecordsLibssl} {
			for _, mutual := range []bool{false, true} {
				table = append(table,
					uploadEnds{tls.VersionTLS13, client, false, mutual, false, records},
					uploadEnds{tls.VersionTLS13, client, true, mutual, false, records},
					uploadEnds{tls.VersionTLS13, client, true, mutual, true, records})
			}
		}
		table = append(table, uploadEnds{tls.VersionTLS12, client, true, false, true, ossl.RecordsAuto})
	}
	delays := []time.Duration{0, 20 * time.Millisecond, 100 * time.Millisecond}
	if testing.Short() {
		delays = delays[1:2]
	}
	if s := os.Getenv(envUploads); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		each := len(table) * len(uploadSizes) * len(delays)
		rounds, all = (n+each-1)/each, true
	}
	var sent, lost atomic.Int64
	t.Run("ends", func(t *testing.T) {
		for _, ends := range table {
			t.Run(ends.String(), func(t *testing.T) {
				t.Parallel()
				client, server := ends.make(t)
				for range rounds {
					for _, size := range uploadSizes {
						for _, delay := range delays {
							if size == tlstest.MaxUpload && delay > 0 && !all {
								continue
							}
							if ends.resumed { // each ticket is for one use
								tlstest.Visit(t, client, server)
							}
							sent.Add(1)
							if err := (tlstest.Upload{Size: size, After: delay}).Run(client, server, ends.resumed); err != nil {
								lost.Add(1)
								t.Errorf("%d bytes, read after %v: %v", size, delay, err)
							}
						}
					}
				}
			})
		}
	})
	t.Logf("%d of %d uploads were lost", lost.Load(), sent.Load())
}
