//go:build cgo || ossl_nocgo

package libssl_test

import (
	"crypto/tls"
	"sync"
	"testing"

	"github.com/ossl-go/ossl/internal/libssl"
)

func closable(t *testing.T) *libssl.Context {
	t.Helper()
	if _, err := libssl.Load(""); err != nil {
		t.Fatal(err)
	}
	ctx, err := libssl.NewContext(&libssl.ContextConfig{
		MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS13, SecurityLevel: -1, DirectRecords: true, SealRefusals: true,
		Tickets: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return ctx
}

// TestClosedContext: a closed context's memory is no longer used, and connections made before
// continue.
func TestClosedContext(t *testing.T) {
	ctx := closable(t)
	out := make([]byte, 4096)
	paused, step, err := ctx.Start(false, false, "name.test", nil, nil, out)
	if err != nil || step.Status != libssl.WantRead {
		t.Fatal(step, err)
	}
	ctx.Close()
	ctx.Close()
	for _, asks := range []bool{false, true} {
		if _, _, err := ctx.Start(false, asks, "name.test", nil, nil, out); err == nil {
			t.Error("Start makes a connection; asks:", asks)
		}
	}
	if _, err := ctx.OfSecrets(libssl.TrafficSecrets(tls.TLS_AES_128_GCM_SHA256, make([]byte, 32), make([]byte, 32))); err == nil {
		t.Error("OfSecrets makes a connection")
	}
	if ctx.SetTicketKeys([]libssl.TicketKey{{}}) {
		t.Error("SetTicketKeys sets keys")
	}
	for name, ask := range map[string]func(){
		"HasCipher":     func() { ctx.HasCipher(tls.TLS_AES_128_GCM_SHA256) },
		"SecurityLevel": func() { ctx.SecurityLevel() },
		"NoTickets":     func() { ctx.NoTickets() },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s answers", name)
				}
			}()
			ask()
		}()
	}
	alert := []byte{21, 3, 3, 0, 2, 2, 40}
	if step := paused.Handshake(alert, out, &libssl.Facts{}); step.Status != libssl.Fatal || step.Consumed != len(alert) {
		t.Errorf("a connection made before takes an alert for %v", step)
	}
	paused.Free(false, nil)
}

// TestCloseAmongCalls closes contexts while connections are made from them.
func TestCloseAmongCalls(t *testing.T) {
	for range 20 {
		ctx := closable(t)
		var all sync.WaitGroup
		begun := make(chan struct{}, 4)
		for range 4 {
			all.Go(func() {
				out := make([]byte, 4096)
				for {
					conn, _, err := ctx.Start(false, false, "name.test", nil, nil, out)
					select {
					case begun <- struct{}{}:
					default:
					}
					if err != nil {
						return
					}
					conn.Free(false, nil)
				}
			})
		}
		all.Go(func() {
			for ctx.SetTicketKeys(nil) {
			}
		})
		for range 2 {
			all.Go(func() {
				<-begun
				ctx.Close()
			})
		}
		all.Wait()
	}
}
