package audit_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ossl-go/ossl/audit"
	"github.com/ossl-go/ossl/audit/internal/testcert"
)

// descriptors returns the number of this process's open files, or 0 if the system doesn't report it.
func descriptors() int {
	files, _ := os.ReadDir("/proc/self/fd")
	return len(files)
}

// settled waits until there are no more goroutines and files than before, and returns the numbers.
// The client and the server close connections independently.
func settled(ctx context.Context, goroutines, files int) (int, int) {
	for ctx.Err() == nil && (runtime.NumGoroutine() > goroutines || descriptors() > files) {
		time.Sleep(time.Millisecond)
	}
	return runtime.NumGoroutine(), descriptors()
}

// noLeak fails the test if f leaves a goroutine or an open file.
func noLeak(t *testing.T, f func()) {
	t.Helper()
	goroutines, files := runtime.NumGoroutine(), descriptors()
	f()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if g, n := settled(ctx, goroutines, files); g > goroutines || n > files {
		stacks := make([]byte, 1<<20)
		t.Errorf("%d goroutines, %d before; %d files, %d before\n%s", g, goroutines, n, files, stacks[:runtime.Stack(stacks, true)])
	}
}

// page starts a server of HTTPS whose answers redirect to another one. Its certificate, without its
// issuer, names that as the place of the issuer, of a list of revoked certificates and of a responder.
func page(t *testing.T, elsewhere string) (audit.Target, audit.Options) {
	t.Helper()
	root := testcert.Root(testcert.Template{CA: true, Name: "root"})
	missing := root.Issue(testcert.Template{CA: true, Name: "missing"})
	leaf := missing.Issue(testcert.Template{OCSP: []string{elsewhere}, Issuers: []string{elsewhere},
		Edit: func(c *x509.Certificate) { c.CRLDistributionPoints = []string{elsewhere} }})
	server := httptest.NewUnstartedServer(http.RedirectHandler(elsewhere, http.StatusMovedPermanently))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{leaf.TLS()}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(root.Certificate)
	target := targetOf(t, server.Listener.Addr())
	return target, audit.Options{ServerName: "localhost", Roots: roots, NoDNS: true, Timeout: 5 * time.Second}
}

func targetOf(t *testing.T, address net.Addr) audit.Target {
	t.Helper()
	host, port, err := net.SplitHostPort(address.String())
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	return audit.Target{Host: host, Port: uint16(n), Protocol: "https"}
}

// TestFetchesNothingElsewhere: a server can't make the audit connect to another one, be it by the
// places in its certificate or by a redirection.
func TestFetchesNothingElsewhere(t *testing.T) {
	var visits atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits.Add(1) }))
	defer elsewhere.Close()
	target, options := page(t, elsewhere.URL)
	here := net.JoinHostPort(target.Host, strconv.Itoa(int(target.Port)))
	options.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if address != here {
			t.Errorf("the audit connects to %s", address)
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	r, err := audit.Check(t.Context(), target, options)
	if err != nil {
		t.Fatal(err)
	}
	chains := r.Facts.Certificates.Chains
	if len(chains) != 1 || chains[0].Missing == "" || len(chains[0].OCSP) != 1 || r.Facts.HTTP.State != audit.Tested {
		t.Errorf("facts %+v, %+v", chains, r.Facts.HTTP)
	}
	if n := visits.Load(); n != 0 {
		t.Errorf("%d visits elsewhere", n)
	}
}

// A trap lets the first connections through to a server. It holds later ones without an answer.
type trap struct {
	connections atomic.Int32
	last        int32
	sprung      func()
	held        net.Listener
}

func (p *trap) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if p.connections.Add(1) > p.last {
		p.sprung()
		address = p.held.Addr().String()
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

// TestInterruptedAnywhere: an interruption stops the audit of a server that doesn't answer any
// more, in any phase, and leaves no goroutine and no file.
func TestInterruptedAnywhere(t *testing.T) {
	target, options := page(t, "http://127.0.0.1:1/")
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the system accepts, and nobody answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	total := int32(0)
	noLeak(t, func() {
		r, err := audit.Check(t.Context(), target, options)
		if err != nil {
			t.Fatal(err)
		}
		total = int32(r.Cost.Connections)
	})
	options.Timeout = time.Minute
	for last := int32(0); last < total; last += 4 {
		noLeak(t, func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p := &trap{last: last, sprung: func() { time.AfterFunc(time.Millisecond, cancel) }, held: silent}
			options := options
			options.Dial = p.dial
			began := time.Now()
			r, err := audit.Check(ctx, target, options)
			if p.connections.Load() <= last { // the server's answers varied
				return
			}
			if err != context.Canceled || !r.Interrupted {
				t.Errorf("stopped at connection %d: %v, interrupted %v", last, err, r.Interrupted)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("stopped at connection %d: the interruption took %v", last, took)
			}
		})
	}
}

// TestEndlessAnswers: servers that never end an answer take a bounded amount of memory for each
// connection, and leave nothing.
func TestEndlessAnswers(t *testing.T) {
	// A TLS 1.2 ServerHello, then a Certificate of 16 MB, or messages without an end, in records of
	// 16 KB.
	hello := append([]byte{2, 0, 0, 38, 3, 3}, make([]byte, 32)...)
	hello = append(hello, 0, 0xc0, 0x2b, 0)
	large := append(append([]byte{}, hello...), 11, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfc)
	fill := func(start []byte) []byte {
		return append(append([]byte{22, 3, 3, 64, 0}, start...), make([]byte, 16384-len(start))...)
	}
	warnings := bytes.Repeat([]byte{21, 3, 3, 0, 2, 1, 112}, 4096)
	for name, parts := range map[string][2][]byte{
		"certificate of 16 MB": {fill(large), fill(nil)},
		"empty messages":       {append([]byte{22, 3, 3, 0, byte(len(hello))}, hello...), fill(nil)},
		"warnings":             {warnings, warnings},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			var served sync.WaitGroup
			defer served.Wait()
			defer l.Close()
			served.Go(func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					served.Go(func() {
						defer conn.Close()
						_, err := conn.Write(parts[0])
						for err == nil {
							_, err = conn.Write(parts[1])
						}
					})
				}
			})
			noLeak(t, func() {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				r, err := audit.Check(t.Context(), targetOf(t, l.Addr()),
					audit.Options{ServerName: "localhost", NoDNS: true, Timeout: 5 * time.Second})
				runtime.ReadMemStats(&after)
				if err != nil {
					t.Error(err)
				}
				n := uint64(r.Cost.Connections)
				if each := (after.TotalAlloc - before.TotalAlloc) / n; each > 10<<20 {
					t.Errorf("%d bytes for each of %d connections", each, n)
				}
				t.Logf("%d connections, %d MB, %d s", n, (after.TotalAlloc-before.TotalAlloc)>>20, int(r.Seconds))
			})
		})
	}
}

// TestMaxTime: a server that stops answering doesn't hold an audit for longer than it may take.
func TestMaxTime(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	target, options := page(t, "http://127.0.0.1:1/")
	p := &trap{last: 5, sprung: func() {}, held: silent}
	options.Dial, options.Timeout, options.MaxTime = p.dial, time.Minute, 500*time.Millisecond
	noLeak(t, func() {
		r, err := audit.Check(t.Context(), target, options)
		if err != audit.ErrTime || r.Interrupted || r.Error == "" || r.Count(audit.Failed) == 0 {
			t.Errorf("%v, report's %q, interrupted %v, %d failed", err, r.Error, r.Interrupted, r.Count(audit.Failed))
		}
		if r.Facts.Address == "" || r.Seconds > 20 {
			t.Errorf("address %q, %.1f s", r.Facts.Address, r.Seconds)
		}
	})
}
