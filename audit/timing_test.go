package audit

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ossl-go/ossl/audit/internal/testcert"
)

// serveTLS starts a crypto/tls server and returns its address.
func serveTLS(t *testing.T, config *tls.Config) netip.AddrPort {
	return netip.MustParseAddrPort(tlsServer(t, config))
}

func tlsCertificate(key string) tls.Certificate {
	return testcert.Root(testcert.Template{Key: testcert.Key(key, "timing")}).TLS()
}

func TestTiming(t *testing.T) {
	ec, rsa := tlsCertificate("ECDSA secp256r1"), tlsCertificate("RSA 2048")
	for _, test := range []struct {
		name        string
		config      *tls.Config
		options     Options
		connections int
		timing      State
		keys        []string
	}{
		{"TLS 1.3", &tls.Config{Certificates: []tls.Certificate{ec}}, Options{}, 9, Tested, []string{"ECDSA secp256r1"}},
		{"two keys", &tls.Config{Certificates: []tls.Certificate{ec, rsa}}, Options{}, 16, Tested,
			[]string{"ECDSA secp256r1", "RSA 2048"}},
		{"TLS 1.2", &tls.Config{Certificates: []tls.Certificate{rsa}, MaxVersion: tls.VersionTLS12}, Options{}, 18, Tested,
			[]string{"RSA 2048"}},
		{"no timing", &tls.Config{Certificates: []tls.Certificate{ec}}, Options{NoTiming: true}, 2, NotTested, nil},
		{"too few connections", &tls.Config{Certificates: []tls.Certificate{ec}}, Options{MaxConnections: 4}, 4, NotTested, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			withProbes(t, probe{"timing", probeTiming})
			test.options.Addresses = []netip.AddrPort{serveTLS(t, test.config)}
			report, err := Check(context.Background(), Target{Host: "localhost", Port: 1, Protocol: "tls"}, test.options)
			if err != nil {
				t.Fatal(err)
			}
			f := report.Facts
			var keys []string
			for key := range f.Timing.PublicKey {
				keys = append(keys, key)
			}
			slices.Sort(keys)
			if f.Timing.State != test.timing || !slices.Equal(keys, test.keys) {
				t.Errorf("timing is %+v", f.Timing)
			}
			if test.timing == Tested && (f.Timing.Full == nil || f.Timing.RoundTrip == nil || f.Timing.Noise <= 0) {
				t.Errorf("timing is %+v", f.Timing)
			}
			if f.Flight.State != Tested || f.Flight.Bytes < 500 || f.Flight.RoundTrips != 0 || f.Flight.Reason == "" {
				t.Errorf("flight on loopback is %+v", f.Flight)
			}
			if report.Cost.Connections > test.connections+1 { // and the one that looks for addresses
				t.Errorf("%d connections", report.Cost.Connections)
			}
		})
	}
}

// A delayed conn delays the bytes that it reads, and returns them in parts.
type delayed struct {
	net.Conn
	delay time.Duration
	rest  []byte
}

func (d *delayed) Read(b []byte) (int, error) {
	if len(d.rest) == 0 {
		buf := make([]byte, 1<<15)
		n, err := d.Conn.Read(buf)
		if err != nil {
			return 0, err
		}
		d.rest = buf[:n]
	}
	time.Sleep(d.delay)
	n := copy(b, d.rest[:min(len(d.rest), 200)])
	d.rest = d.rest[n:]
	return n, nil
}

// TestFlightRoundTrips: a flight that comes in parts, a round trip apart. The time is a bubble's, so that a busy
// machine's pauses aren't taken for round trips.
func TestFlightRoundTrips(t *testing.T) {
	withProbes(t, probe{"timing", probeTiming})
	config := &tls.Config{Certificates: []tls.Certificate{tlsCertificate("ECDSA secp256r1")}}
	synctest.Test(t, func(t *testing.T) {
		const trip = 20 * time.Millisecond
		dial := func(context.Context, string, string) (net.Conn, error) {
			time.Sleep(trip)
			client, server := net.Pipe()
			go func() {
				conn := tls.Server(server, config)
				_, _ = io.Copy(io.Discard, conn)
				_ = conn.Close()
			}()
			return &delayed{Conn: client, delay: trip}, nil
		}
		report, err := Check(t.Context(), Target{Host: "localhost", Port: 1, Protocol: "tls"},
			Options{Addresses: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:1")}, Dial: dial, NoTiming: true})
		if err != nil {
			t.Fatal(err)
		}
		f := report.Facts.Flight
		if want := float64((f.Bytes + 199) / 200); f.State != Tested || f.RoundTrips != want && f.RoundTrips != want-1 {
			t.Errorf("%d bytes in parts of 200 take %v round trips: %+v", f.Bytes, f.RoundTrips, f)
		}
		if !slices.ContainsFunc(report.Findings, func(f Finding) bool { return f.Rule == "chain-flight" && f.Price.RoundTrips >= 1 }) {
			t.Errorf("findings are %+v", report.Findings)
		}
	})
}

func TestOptions(t *testing.T) {
	ec := tlsCertificate("ECDSA secp256r1")
	for _, test := range []struct {
		name   string
		config *tls.Config
		alpn   string
		old    State
	}{
		{"both versions", &tls.Config{NextProtos: []string{"http/1.1", "h2"}}, "h2 http/1.1", Tested},
		{"no ALPN", &tls.Config{}, "", Tested},
		{"TLS 1.2", &tls.Config{MaxVersion: tls.VersionTLS12, NextProtos: []string{"h2"}}, "h2", Tested},
		{"TLS 1.3", &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}}, "h2", NotTested},
	} {
		t.Run(test.name, func(t *testing.T) {
			withProbes(t, probe{"protocols", probeProtocols}, probe{"options", probeOptions})
			test.config.Certificates = []tls.Certificate{ec}
			options := Options{Addresses: []netip.AddrPort{serveTLS(t, test.config)}}
			report, err := Check(context.Background(), Target{Host: "localhost", Port: 1, Protocol: "https"}, options)
			if err != nil {
				t.Fatal(err)
			}
			o := report.Facts.Options
			values := slices.Sorted(slices.Values(o.ALPN.Values))
			if o.ALPN.State != Tested || strings.Join(values, " ") != test.alpn {
				t.Errorf("ALPN is %+v", o.ALPN)
			}
			for name, s := range map[string]struct {
				Switch
				on bool
			}{
				"extended master secret": {o.ExtendedMaster, true},
				"secure renegotiation":   {o.SecureRenegotiation, true},
				"client renegotiation":   {o.ClientRenegotiation, false},
				"compression":            {o.Compression, false},
			} {
				if s.State != test.old || s.State == Tested && s.On != s.on {
					t.Errorf("%s is %+v", name, s.Switch)
				}
			}
			if two := test.name == "both versions"; two && (o.Fallback.State != Tested || !o.Fallback.On) {
				t.Errorf("fallback is %+v", o.Fallback)
			}
		})
	}
}

// TestTimingLost has connections that are lost: they are no answer.
func TestTimingLost(t *testing.T) {
	withProbes(t, probe{"timing", probeTiming}, probe{"options", probeOptions})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 1500*time.Millisecond)
	defer cancel()
	report, err := Check(ctx, Target{Host: "localhost", Port: 1, Protocol: "https"},
		Options{Addresses: []netip.AddrPort{netip.MustParseAddrPort(l.Addr().String())}})
	if !errors.Is(err, context.DeadlineExceeded) || !report.Interrupted {
		t.Errorf("error is %v", err)
	}
	f := report.Facts
	if f.Timing.State != Failed || f.Flight.State != Failed || f.Options.ExtendedMaster.State != Failed {
		t.Errorf("facts are %+v, %+v, %+v", f.Timing, f.Flight, f.Options)
	}
}
