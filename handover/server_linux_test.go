//go:build cgo || ossl_nocgo

package handover_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/handover"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// joined returns both ends of a pair of sockets, as two processes have them.
func joined(t *testing.T) (a, b *net.UnixConn) {
	t.Helper()
	path := t.TempDir() + "/socket"
	client, server := tlstest.Sockets("unix", path)
	t.Cleanup(func() { client.Close(); server.Close() })
	return client.(*net.UnixConn), server.(*net.UnixConn)
}

// echoing returns a Server that echoes, with a connection.
func echoing(t *testing.T) (s *handover.Server, l net.Listener, peer *tls.Conn) {
	t.Helper()
	if ossltest.RecordsByLibssl() {
		t.Skip("OSSL_RECORDS=libssl: libssl has the records")
	}
	s = &handover.Server{Context: ossltest.NewContext(t, tlstest.ServerConfig()), Serve: func(c *ossl.Conn, data []byte) []byte {
		buf := make([]byte, 100)
		for {
			n, err := c.Read(buf)
			if err != nil {
				return nil
			}
			if _, err := c.Write(buf[:n]); err != nil {
				return nil
			}
		}
	}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go s.Accept(l)
	return s, l, connected(t, l)
}

func connected(t *testing.T, l net.Listener) *tls.Conn {
	t.Helper()
	peer, err := tls.Dial("tcp", l.Addr().String(), tlstest.ClientConfig())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { peer.Close() })
	wantAnswer(t, peer)
	return peer
}

// wantAnswer checks that a server echoes.
func wantAnswer(t *testing.T, peer *tls.Conn) {
	t.Helper()
	buf := make([]byte, 5)
	if _, err := peer.Write([]byte("whole")); err != nil {
		t.Fatal(err)
	}
	if _, err := peer.Read(buf); err != nil || string(buf) != "whole" {
		t.Fatalf("read %q, %v", buf, err)
	}
}

// full is a listener of a process that has no descriptor left, at first.
type full struct {
	net.Listener
	times int
}

func (l *full) Accept() (net.Conn, error) {
	if l.times++; l.times <= 3 {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

// TestServerFull: a Server goes on to accept when there are descriptors again.
func TestServerFull(t *testing.T) {
	s, l, _ := echoing(t)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	limited := &full{Listener: inner}
	done := make(chan error, 1)
	go func() { done <- s.Accept(limited) }()
	connected(t, inner)
	inner.Close()
	if err := <-done; !errors.Is(err, net.ErrClosed) || limited.times < 5 {
		t.Errorf("Accept: %v, after %d calls", err, limited.times)
	}
}

// TestSendServer: after a new process has failed, in whichever step, a Server goes on as before,
// and gives everything to the next one.
func TestSendServer(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), tlstest.Patience)
	defer cancel()
	s, l, peer := echoing(t)
	for items := range 2 { // that a new process receives before it dies
		a, b := joined(t)
		died := make(chan struct{})
		go func() {
			defer close(died)
			r, err := handover.NewReceiver(ctx, b)
			if err != nil {
				t.Error(err)
				return
			}
			defer r.Close()
			for range items {
				item, err := r.Receive(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				item.Close()
			}
		}()
		sender, err := handover.NewSender(ctx, a)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Send(ctx, sender, l); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %d items: %v", items, err)
		}
		<-died
		wantAnswer(t, peer)
		connected(t, l)
	}

	a, b := joined(t)
	next, _, _ := echoing(t)
	received := make(chan error, 1)
	listeners := make(chan []net.Listener, 1)
	go func() {
		r, err := handover.NewReceiver(ctx, b)
		if err == nil {
			var all []net.Listener
			all, err = next.Receive(ctx, r)
			listeners <- all
		}
		received <- err
	}()
	sender, err := handover.NewSender(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(ctx, sender, l); err != nil {
		t.Fatal(err)
	}
	if err := <-received; err != nil {
		t.Fatal(err)
	}
	if got, want := sender.Counts(), (handover.Counts{Listeners: 1, Connections: 3}); got != want {
		t.Errorf("counts %+v", got)
	}
	if err := s.Wait(ctx); err != nil {
		t.Error(err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the old listener: %v", err)
	}
	wantAnswer(t, peer)
	all := <-listeners
	if len(all) != 1 {
		t.Fatalf("%d listeners", len(all))
	}
	defer all[0].Close()
	connected(t, all[0])
	short, cancelShort := context.WithCancel(ctx)
	cancelShort()
	if err := next.Wait(short); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait with connections: %v", err)
	}
}

// TestSendCanceled: the new process learns that the old one has given up.
func TestSendCanceled(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), tlstest.Patience)
	defer cancel()
	s, _, peer := echoing(t)
	a, b := joined(t)
	received := make(chan error, 1)
	go func() {
		r, err := handover.NewReceiver(ctx, b)
		if err == nil {
			_, err = r.Receive(ctx)
		}
		received <- err
	}()
	sender, err := handover.NewSender(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	canceled, stop := context.WithCancel(ctx)
	stop()
	if err := s.Send(canceled, sender); !errors.Is(err, context.Canceled) {
		t.Errorf("Send: %v", err)
	}
	if err := <-received; err == nil || err == io.EOF || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Receive: %v", err)
	}
	wantAnswer(t, peer)
}

// TestSendUnsuited: the new process reports that its Context can't have the connections.
func TestSendUnsuited(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), tlstest.Patience)
	defer cancel()
	s, l, _ := echoing(t)
	next := &handover.Server{Context: ossltest.NewContext(t, tlstest.ServerConfig(), ossl.WithRecordPath(ossl.RecordsLibssl))}
	a, b := joined(t)
	received := make(chan error, 1)
	go func() {
		r, err := handover.NewReceiver(ctx, b)
		if err == nil {
			var all []net.Listener
			all, err = next.Receive(ctx, r)
			for _, l := range all {
				l.Close()
			}
		}
		received <- err
	}()
	sender, err := handover.NewSender(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(ctx, sender, l); err != nil {
		t.Fatal(err)
	}
	var unsuited *ossl.ConfigError
	if err := <-received; !errors.As(err, &unsuited) {
		t.Errorf("Receive: %v", err)
	}
}
