//go:build cgo

package ossl_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// envUploads is the number of uploads that TestUploads makes at least, instead of one for each row of its table, or, of the
// largest size, for each pair of ends.
const envUploads = "OSSL_UPLOADS"

// An upload is the number of bytes that a client writes before it closes, without reading, and the time when the server, which
// never writes, begins to read.
type upload struct {
	size  int
	after time.Duration // the server waits until the client has closed, and no longer than this: some clients can't before it reads
}

var uploadSizes = []int{1, 100, 10_000, 100_000, 1_000_000, 10_000_000}

var uploadData = func() []byte {
	b := make([]byte, uploadSizes[len(uploadSizes)-1])
	rand.NewChaCha8([32]byte{}).Read(b)
	return b
}()

// run returns an error if data that the client's Write and Close reported as sent didn't reach the server.
func (u upload) run(client, server tlstest.End, resumed bool) error {
	a, b := tlstest.Loopback()
	c, s := client(a), server(b)
	data := uploadData[:u.size]
	closed, received := make(chan struct{}), make(chan error, 1)
	go func() {
		defer s.Close()
		received <- func() error {
			if err := s.Handshake(); err != nil {
				return err
			}
			if did := s.ConnectionState().DidResume; did != resumed {
				return fmt.Errorf("DidResume is %v", did)
			}
			wait := time.NewTimer(u.after)
			defer wait.Stop()
			select {
			case <-closed:
			case <-wait.C:
			}
			got, err := io.ReadAll(s)
			if err == nil && !bytes.Equal(got, data) {
				err = errors.New("other data came")
			}
			if err != nil {
				return fmt.Errorf("after %d of %d bytes: %w", len(got), len(data), err)
			}
			return nil
		}()
	}()
	_, err := c.Write(data)
	if closeErr := c.Close(); err == nil {
		err = closeErr
	}
	close(closed)
	if lost := <-received; err == nil {
		err = lost
	}
	return err
}

// uploadEnds are the ends of an upload.
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

// TestUploads: all data that a client has sent reaches the server, though the client never reads and the server never writes. If
// TLS 1.3 tickets are unread in the client's socket, its kernel sends a reset on close, and undelivered data is lost.
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
							if size == len(uploadData) && delay > 0 && !all {
								continue
							}
							if ends.resumed { // each ticket is for one use
								tlstest.Visit(t, client, server)
							}
							sent.Add(1)
							if err := (upload{size, delay}).run(client, server, ends.resumed); err != nil {
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

// TestSilentClientGetsTicket: a client that waits for a ticket before it sends anything gets one from a server that only reads;
// one that has sent something doesn't.
func TestSilentClientGetsTicket(t *testing.T) {
	for name, path := range map[string]ossl.RecordPath{"own": ossl.RecordsOwn, "libssl": ossl.RecordsLibssl} {
		for _, speaks := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/speaks=%t", name, speaks), func(t *testing.T) {
				cc, sc := tlstest.Resuming(tls.VersionTLS13)
				came := make(chan bool, 1)
				cc.ClientSessionCache = ticketSeen{cc.ClientSessionCache, came}
				a, b := tlstest.Loopback()
				s := ossltest.NewContext(t, sc, ossl.WithRecordPath(path)).Server(b)
				defer s.Close()
				go io.Copy(io.Discard, s)
				c := tls.Client(a, cc)
				defer c.Close()
				if err := c.Handshake(); err != nil {
					t.Fatal(err)
				}
				if speaks {
					c.Write([]byte("data"))
				}
				c.SetReadDeadline(time.Now().Add(tlstest.Patience))
				if speaks { // that a ticket doesn't come can't be waited for any longer
					c.SetReadDeadline(time.Now().Add(2 * ossl.Silence))
				}
				go c.Read(make([]byte, 1))
				if speaks {
					select {
					case <-came:
						t.Error("a ticket came")
					case <-time.After(2 * ossl.Silence):
					}
					return
				}
				<-came
			})
		}
	}
}

// ticketSeen tells of the tickets that are put into it.
type ticketSeen struct {
	tls.ClientSessionCache
	came chan bool
}

func (c ticketSeen) Put(key string, state *tls.ClientSessionState) {
	c.ClientSessionCache.Put(key, state)
	if state != nil {
		c.came <- true
	}
}
