//go:build cgo || ossl_nocgo

package observe

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/session"
)

// TestHandshakeStats checks the parameters that handshakes are counted by.
func TestHandshakeStats(t *testing.T) {
	const rounds = 3
	for _, version := range tlstest.Versions {
		for _, by := range []ossl.Resumption{ossl.ResumedTicket, ossl.ResumedID} {
			t.Run(tlstest.VersionName(version)+"/"+string(by), func(t *testing.T) {
				cc, sc := tlstest.Resuming(version)
				var opts []ossl.Option
				if by == ossl.ResumedID {
					sc.SessionTicketsDisabled = version == tls.VersionTLS12
					opts = append(opts, ossl.WithSessionCache(session.NewCache(10)))
				}
				client, server := ossltest.NewPlainContext(t, cc), ossltest.NewPlainContext(t, sc, opts...)
				var state tls.ConnectionState
				for range rounds {
					state, _ = tlstest.Visit(t, ossltest.ClientOf(client), ossltest.ServerOf(server))
				}
				for _, side := range []struct {
					stats ossl.Stats
					is    bool
				}{{client.Stats(), false}, {server.Stats(), true}} {
					resumed := by
					if !side.is && version == tls.VersionTLS13 {
						resumed = ossl.ResumedTicket
					}
					full := ossl.HandshakeStats{Server: side.is, Version: state.Version, CipherSuite: state.CipherSuite, CurveID: state.CurveID,
						Count: 1}
					again := full
					again.Resumption, again.Count = resumed, rounds-1
					if want := []ossl.HandshakeStats{full, again}; !slices.Equal(side.stats.Handshakes, want) {
						t.Errorf("handshakes %+v, want %+v", side.stats.Handshakes, want)
					}
					checkDurations(t, side.stats.Durations, side.is, []uint64{1, rounds - 1})
					if side.stats.OpenConns != 0 || len(side.stats.Failures)+len(side.stats.Broken) > 0 {
						t.Errorf("%+v", side.stats)
					}
				}
				cache := server.Stats().SessionCache
				if by == ossl.ResumedID && (cache.Hits != rounds-1 || cache.Puts == 0) || cache.Errors+cache.PutErrors > 0 {
					t.Errorf("session cache: %+v", cache)
				}
				if chains := client.Stats().ChainCache; !ossltest.InFIPS && (chains.Misses != 1 || chains.Hits != rounds-1) {
					t.Errorf("chain cache: %+v", chains)
				}
			})
		}
	}
}

// checkDurations checks the histograms of full and resumed handshakes, which have taken some time.
func checkDurations(t *testing.T, durations []ossl.DurationStats, server bool, counts []uint64) {
	t.Helper()
	if len(durations) != len(counts) {
		t.Errorf("durations %+v", durations)
		return
	}
	for i, d := range durations {
		if d.Server != server || d.Resumed != (i == 1) || d.Count != counts[i] || d.Sum <= 0 {
			t.Errorf("durations %+v", d)
		}
		for j, b := range d.Buckets {
			if b.Count > d.Count || j > 0 && (b.Count < d.Buckets[j-1].Count || b.AtMost <= d.Buckets[j-1].AtMost) {
				t.Errorf("buckets %+v", d.Buckets)
			}
		}
	}
}

// TestSecondHelloStats checks that a handshake with a HelloRetryRequest is counted as one.
func TestSecondHelloStats(t *testing.T) {
	cc, sc := tlstest.ClientConfig(tlstest.Curves(tls.CurveP256, tls.CurveP384)), tlstest.ServerConfig(tlstest.Curves(tls.CurveP384))
	client, server := ossltest.NewContext(t, cc), ossltest.NewContext(t, sc)
	tlstest.Visit(t, ossltest.ClientOf(client), ossltest.ServerOf(server))
	for _, stats := range []ossl.Stats{client.Stats(), server.Stats()} {
		if len(stats.Handshakes) != 1 || !stats.Handshakes[0].HelloRetry || stats.Handshakes[0].CurveID != tls.CurveP384 {
			t.Errorf("%+v", stats.Handshakes)
		}
	}
}

// TestChosenStats checks that connections with a configuration from GetConfigForClient count for
// the Context that the server was made with.
func TestChosenStats(t *testing.T) {
	chosen, sc := tlstest.ServerConfig(), tlstest.ServerConfig()
	sc.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return chosen, nil }
	var e events
	client, server := ossltest.NewContext(t, tlstest.ClientConfig()), ossltest.NewContext(t, sc, ossl.WithEvents(e.add))
	tlstest.Visit(t, ossltest.ClientOf(client), ossltest.ServerOf(server))
	if stats := server.Stats(); len(stats.Handshakes) != 1 || stats.BytesRead == 0 || len(e.handshakes()) != 1 {
		t.Errorf("%+v", stats)
	}
}

// TestByteStats checks that client and server count the same bytes, on each record path, and that
// an open connection's bytes are counted in time.
func TestByteStats(t *testing.T) {
	const size = 1 << 20
	for _, path := range []ossl.RecordPath{ossl.RecordsAuto, ossl.RecordsLibssl} {
		client := ossltest.NewPlainContext(t, tlstest.ClientConfig(), ossl.WithRecordPath(path))
		server := ossltest.NewPlainContext(t, tlstest.ServerConfig(), ossl.WithRecordPath(path))
		rawClient, rawServer := tlstest.Loopback()
		c, s := client.Client(rawClient, ""), server.Server(rawServer)
		tlstest.Shake(t, c, s)
		var wait sync.WaitGroup
		wait.Go(func() {
			if n, err := io.Copy(io.Discard, s); n != size || err != nil {
				t.Errorf("read %d bytes: %v", n, err)
			}
		})
		if _, err := c.Write(make([]byte, size-1)); err != nil {
			t.Fatal(err)
		}
		if n := client.Stats().BytesWritten; n < size-1-64<<10 || n > size-1 {
			t.Errorf("%d bytes of an open connection were written, want %d less at most 64 KB", n, size-1)
		}
		if open := client.Stats().OpenConns; open != 1 {
			t.Errorf("%d connections are open, want 1", open)
		}
		if _, err := c.ReadFrom(io.LimitReader(zeros{}, 1)); err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
		wait.Wait()
		_ = s.Close()
		if n := client.Stats().BytesWritten; n != size {
			t.Errorf("%d bytes were written, want %d", n, size)
		}
		if n := server.Stats().BytesRead; n != size {
			t.Errorf("%d bytes were read, want %d", n, size)
		}
		records := server.Stats().Records
		if path == ossl.RecordsLibssl && records != (ossl.RecordStats{Libssl: 1}) {
			t.Errorf("libssl has the records: %+v", records)
		}
		if path == ossl.RecordsAuto && !ossltest.RecordsByLibssl() && records.Direct+records.Libssl != 1 {
			t.Errorf("records: %+v", records)
		}
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// TestProcessStats checks that the connections of all Contexts count for the process.
func TestProcessStats(t *testing.T) {
	successes := func() (n uint64) {
		for _, h := range ossl.ProcessStats().Handshakes {
			n += h.Count
		}
		return n
	}
	before, bytes := successes(), ossl.ProcessStats().BytesRead
	client, server := ossltest.NewContext(t, tlstest.ClientConfig()), ossltest.NewContext(t, tlstest.ServerConfig())
	tlstest.Visit(t, ossltest.ClientOf(client), ossltest.ServerOf(server))
	if got := successes() - before; got < 2 {
		t.Errorf("%d handshakes were counted, want at least 2", got)
	}
	if ossl.ProcessStats().BytesRead == bytes {
		t.Error("no bytes were counted")
	}
}

// TestEventsOption refuses a nil function.
func TestEventsOption(t *testing.T) {
	var e *ossl.ConfigError
	if _, err := ossl.NewContext(tlstest.ClientConfig(), ossl.WithEvents(nil)); !errors.As(err, &e) || e.Field != "WithEvents" {
		t.Errorf("NewContext returns %v", err)
	}
	var first, second events
	client := ossltest.NewContext(t, tlstest.ClientConfig(), ossl.WithEvents(first.add), ossl.WithEvents(second.add))
	server := ossltest.NewContext(t, tlstest.ServerConfig())
	tlstest.Visit(t, ossltest.ClientOf(client), ossltest.ServerOf(server))
	if len(first.handshakes()) != 1 || len(second.handshakes()) != 1 {
		t.Error("not every function was called")
	}
}

// TestStatsWhileServing reads statistics while connections come and go.
func TestStatsWhileServing(t *testing.T) {
	client, server := ossltest.NewContext(t, tlstest.ClientConfig()), ossltest.NewContext(t, tlstest.ServerConfig())
	stop := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if s := server.Stats(); s.OpenConns > 10 {
					t.Errorf("%d open connections", s.OpenConns)
				}
			}
		}
	})
	for range 10 {
		tlstest.Visit(t, ossltest.ClientOf(client), ossltest.ServerOf(server))
	}
	close(stop)
	wait.Wait()
	tlstest.WaitUntil(t, func() bool { return server.Stats().OpenConns == 0 && client.Stats().OpenConns == 0 })
}

// TestPrintedStats checks that printed counts have their numbers.
func TestPrintedStats(t *testing.T) {
	stats := ossl.Stats{Failures: []ossl.FailureStats{{Server: true, Failure: class(ossl.FailureTimeout), Count: 1234}}}
	if text := fmt.Sprintf("%+v", stats); !strings.Contains(text, "1234") || !strings.Contains(text, "timeout") {
		t.Errorf("printed as %s", text)
	}
}

// TestStart checks that a server's time begins with the first bytes of the ClientHello, not with
// its last ones.
func TestStart(t *testing.T) {
	var e events
	server := ossltest.NewContext(t, tlstest.ServerConfig(), ossl.WithEvents(e.add))
	rawClient, between := tlstest.NetPipe()
	onward, rawServer := tlstest.NetPipe()
	go func() { _ = tls.Client(rawClient, tlstest.ClientConfig()).Handshake() }()
	hello := make([]byte, 1<<14)
	n, err := between.Read(hello)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- server.Server(rawServer).Handshake() }()
	connected := time.Now()
	for _, part := range [][]byte{hello[:10], hello[10:11]} { // when the server takes the second one, it has seen the first
		if _, err := onward.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	before := time.Now()
	_, _ = onward.Write(hello[11:n])
	_, _ = onward.Read(hello)
	_ = onward.Close()
	<-done
	if h := e.handshakes(); len(h) != 1 || h[0].Start.Before(connected) || h[0].Start.After(before) {
		t.Errorf("events %+v, want one that starts between %v and %v", h, connected, before)
	}
}
