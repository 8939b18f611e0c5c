package main

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
)

// TestServerInterrupted checks that a measurement stops when its context is done, even if
// connections that the server doesn't answer hold all places.
func TestServerInterrupted(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	interrupted := make(chan struct{})
	go func() {
		if conn, err := listener.Accept(); err == nil {
			defer conn.Close()
			time.Sleep(700 * time.Millisecond) // the next connection waits for a place, or soon will
			cancel()
			close(interrupted)
			<-t.Context().Done()
		}
	}()
	tlsContext, err := ossl.NewContext(&tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		r := &serverRequest{rate: 1.9, connections: 3}
		_, _, err := r.measure(ctx, "full", tlsContext, listener.Addr().String(), nil)
		ended <- err
	}()
	<-interrupted
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	case <-time.After(handshakeTime - time.Second): // the connections alone would take longer
		t.Error("measure doesn't return")
	}
}

// TestServerRate checks that the rate equals --rate if the server is distant, but keeps up, and
// otherwise is the server's own rate.
func TestServerRate(t *testing.T) {
	const interval = 20 * time.Millisecond
	r := &serverRequest{rate: 50}
	begin := time.Now()
	for _, test := range []struct {
		name                     string
		samples                  int
		connect, handshake, more time.Duration
		want                     float64
	}{
		{"near", 10, 0, time.Millisecond, 0, 50},
		{"distant", 10, 200 * time.Millisecond, 400 * time.Millisecond, 0, 50},
		{"one", 1, 200 * time.Millisecond, 400 * time.Millisecond, 0, 50},
		{"half as fast", 1000, time.Millisecond, 39 * time.Millisecond, 20 * time.Millisecond, 25},
	} {
		var samples []sample
		for i := range test.samples {
			s := sample{connect: test.connect, handshake: test.handshake + time.Duration(i)*test.more}
			s.ended = begin.Add(time.Duration(i)*interval + s.connect + s.handshake)
			samples = append(samples, s)
		}
		k, _, err := r.summarize("full", samples, begin)
		if err != nil || k.PerSecond < test.want*0.99 || k.PerSecond > test.want*1.01 {
			t.Errorf("%s: %.2f a second, %v; want %.0f", test.name, k.PerSecond, err, test.want)
		}
	}
}

// A distant connection receives data late.
type distant struct{ net.Conn }

func (c distant) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	time.Sleep(150 * time.Millisecond)
	return n, err
}

// TestServersTickets checks that the sessions of a server are waited for, if it is distant, or sends
// nothing before its close_notify.
func TestServersTickets(t *testing.T) {
	for _, test := range []struct {
		name  string
		serve func(raw net.Conn, config *tls.Config)
	}{
		{"distant", func(raw net.Conn, config *tls.Config) {
			conn := ossl.Server(distant{raw}, config)
			_, _ = conn.Write([]byte("x")) // after the tickets, which an ossl.Server holds until then
			_, _ = conn.Read(make([]byte, 1))
		}},
		{"late", func(raw net.Conn, config *tls.Config) {
			conn := ossl.Server(raw, config)
			_ = conn.Handshake()
			time.Sleep(300 * time.Millisecond)
			_, _ = conn.Write([]byte("x")) // after the tickets
			_, _ = io.Copy(io.Discard, raw)
		}},
		{"silent", func(raw net.Conn, config *tls.Config) {
			conn := ossl.Server(raw, config)
			_, _ = conn.Read(make([]byte, 1))
			_ = conn.Close()
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			server := httptest.NewUnstartedServer(nil)
			server.StartTLS()
			defer server.Close()
			config := &tls.Config{Certificates: server.TLS.Certificates}
			go func() {
				for {
					raw, err := listener.Accept()
					if err != nil {
						return
					}
					go func() {
						defer raw.Close()
						test.serve(raw, config)
					}()
				}
			}()
			sessions := &lastSession{}
			tlsContext, err := ossl.NewContext(&tls.Config{InsecureSkipVerify: true, ServerName: "a.test", ClientSessionCache: sessions})
			if err != nil {
				t.Fatal(err)
			}
			r := &serverRequest{rate: 10, connections: 2}
			k, _, err := r.measure(t.Context(), "resumed", tlsContext, listener.Addr().String(), sessions)
			if err != nil || k.Count != 2 || k.Refused != 0 {
				t.Errorf("%+v, %v", k, err)
			}
		})
	}
}
