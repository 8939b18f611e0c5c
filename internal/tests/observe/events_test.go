//go:build cgo || ossl_nocgo

package observe

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"reflect"
	"runtime/pprof"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/session"
)

// events are the events of a Context.
type events struct {
	mu  sync.Mutex
	all []ossl.Event
}

func (e *events) add(event ossl.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, event)
}

func of[T ossl.Event](e *events) (some []T) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, event := range e.all {
		if event, ok := event.(T); ok {
			some = append(some, event)
		}
	}
	return some
}

func (e *events) handshakes() []*ossl.HandshakeEvent { return of[*ossl.HandshakeEvent](e) }

// TestEvents checks the events of a connection and of one that resumes its session from a cache.
func TestEvents(t *testing.T) {
	for _, version := range tlstest.Versions {
		t.Run(tlstest.VersionName(version), func(t *testing.T) {
			cc, sc := tlstest.Resuming(version)
			sc.SessionTicketsDisabled = version == tls.VersionTLS12 // so that the cache is asked
			var clients, servers events
			client := ossltest.NewPlainContext(t, cc, ossl.WithEvents(clients.add))
			server := ossltest.NewPlainContext(t, sc, ossl.WithEvents(servers.add), ossl.WithSessionCache(session.NewCache(10)))
			for range 2 {
				tlstest.Visit(t, ossltest.ClientOf(client), ossltest.ServerOf(server))
			}
			resumption := ossl.ResumedID
			for role, e := range map[string]*events{"client": &clients, "server": &servers} {
				h, closed := e.handshakes(), of[*ossl.CloseEvent](e)
				if len(h) != 2 || len(closed) != 2 {
					t.Fatalf("%s: %d handshakes and %d closed connections, want 2 and 2", role, len(h), len(closed))
				}
				want := resumption
				if role == "client" && version == tls.VersionTLS13 {
					want = ossl.ResumedTicket
				}
				if h[0].Resumption != ossl.NotResumed || h[1].Resumption != want {
					t.Errorf("%s: resumed %q, then %q, want %q", role, h[0].Resumption, h[1].Resumption, want)
				}
				for i := range h {
					if server := role == "server"; h[i].Server != server || closed[i].Server != server {
						t.Errorf("%s: events of another role: %+v, %+v", role, h[i], closed[i])
					}
					if h[i].Err != nil || h[i].Failure != (ossl.Failure{}) || h[i].Duration <= 0 || closed[i].Conn != h[i].Conn {
						t.Errorf("%s: %+v, %+v", role, h[i], closed[i])
					}
					if closed[i].BytesRead == 0 || closed[i].BytesWritten == 0 || closed[i].Err != nil {
						t.Errorf("%s: %+v", role, closed[i])
					}
				}
			}
			hits := map[string]int{}
			for _, s := range of[*ossl.SessionEvent](&servers) {
				op := s.Op
				if s.Hit {
					op += " hit"
				}
				if s.Err != nil || s.Duration < 0 {
					t.Errorf("%+v", s)
				}
				hits[op]++
			}
			if hits["get hit"] != 1 || hits["put"] == 0 {
				t.Errorf("calls of the cache: %v", hits)
			}
			if n := len(of[*ossl.SessionEvent](&clients)); n > 0 {
				t.Errorf("%d calls of a cache on the client", n)
			}
		})
	}
}

// TestMethodsInEvents calls every method of a connection in its events. None may wait for the call
// that the event comes from.
func TestMethodsInEvents(t *testing.T) {
	arguments := map[reflect.Type]any{
		reflect.TypeFor[time.Time]():       time.Now().Add(time.Hour),
		reflect.TypeFor[context.Context](): context.Background(),
		reflect.TypeFor[string]():          "label",
		reflect.TypeFor[int]():             16,
		reflect.TypeFor[int64]():           int64(0),
		reflect.TypeFor[io.Reader]():       bytes.NewReader(nil),
	}
	// These wait for the peer.
	waits := map[string]bool{"Read": true, "WaitRead": true}
	for _, role := range []string{"client", "server"} {
		t.Run(role, func(t *testing.T) {
			var mu sync.Mutex
			called := map[string]int{}
			event := func(e ossl.Event) {
				var conn *ossl.Conn
				switch e := e.(type) {
				case *ossl.HandshakeEvent:
					conn = e.Conn
				case *ossl.CloseEvent:
					conn = e.Conn
				default:
					return
				}
				v := reflect.ValueOf(conn)
				last := []string{"CloseWrite", "Close", "Detach"} // in a HandshakeEvent they would end the connection too early
				for i := range v.NumMethod() {
					name := v.Type().Method(i).Name
					if _, ok := e.(*ossl.HandshakeEvent); ok && (waits[name] || slices.Contains(last, name)) {
						continue
					}
					method := v.Method(i)
					args := make([]reflect.Value, method.Type().NumIn())
					for j := range args {
						in := method.Type().In(j)
						args[j] = reflect.Zero(in)
						if arg, ok := arguments[in]; ok {
							args[j] = reflect.ValueOf(arg).Convert(in)
						}
					}
					if name == "SendFile" { // of no file
						continue
					}
					method.Call(args)
					mu.Lock()
					called[name]++
					mu.Unlock()
				}
			}
			cc, sc := tlstest.ClientConfig(), tlstest.ServerConfig()
			option := ossl.WithEvents(event)
			client, server := ossltest.NewContext(t, cc), ossltest.NewContext(t, sc)
			if role == "client" {
				client = ossltest.NewContext(t, cc, option)
			} else {
				server = ossltest.NewContext(t, sc, option)
			}
			tlstest.Visit(t, ossltest.ClientOf(client), ossltest.ServerOf(server))
			if called["ConnectionState"] != 2 || called["Close"] != 1 || called["Read"] != 1 {
				t.Errorf("called: %v", called)
			}
		})
	}
}

// TestCloseInEvent closes a connection in the event of its handshake, which was run by a Write.
func TestCloseInEvent(t *testing.T) {
	var closed events
	client := ossltest.NewContext(t, tlstest.ClientConfig(), ossl.WithEvents(func(e ossl.Event) {
		closed.add(e)
		if e, ok := e.(*ossl.HandshakeEvent); ok {
			_ = e.Conn.Close()
		}
	}))
	server := ossltest.NewContext(t, tlstest.ServerConfig())
	rawClient, rawServer := tlstest.Loopback()
	done := make(chan error, 1)
	go func() {
		s := server.Server(rawServer)
		defer s.Close()
		_, err := s.Read(make([]byte, 1))
		done <- err
	}()
	if _, err := client.Client(rawClient, "").Write([]byte("text")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Write returns %v, want net.ErrClosed", err)
	}
	if err := <-done; err == nil {
		t.Error("the server reads data")
	}
	if h, c := closed.handshakes(), of[*ossl.CloseEvent](&closed); len(h) != 1 || len(c) != 1 || client.Stats().OpenConns != 0 {
		t.Errorf("%d handshakes and %d closed connections, %d open ones", len(h), len(c), client.Stats().OpenConns)
	}
}

// TestBrokenConnection checks that an error after the handshake is reported and counted when the
// connection is closed.
func TestBrokenConnection(t *testing.T) {
	var e events
	client := ossltest.NewContext(t, tlstest.ClientConfig())
	server := ossltest.NewContext(t, tlstest.ServerConfig(), ossl.WithEvents(e.add))
	rawClient, rawServer := tlstest.Loopback()
	c, s := client.Client(rawClient, ""), server.Server(rawServer)
	tlstest.Shake(t, c, s)
	_ = rawClient.Close() // without close_notify
	if _, err := s.Read(make([]byte, 1)); err == nil {
		t.Fatal("Read succeeds")
	}
	_ = s.Close()
	want := ossl.Failure{Class: ossl.FailureTruncated}
	if closed := of[*ossl.CloseEvent](&e); len(closed) != 1 || closed[0].Failure != want {
		t.Errorf("events %+v, want one with %v", closed, want)
	}
	broken := server.Stats().Broken
	if len(broken) != 1 || broken[0] != (ossl.FailureStats{Server: true, Failure: want, Count: 1}) {
		t.Errorf("counted %+v, want one %v", broken, want)
	}
}

// TestIdleConnection checks that the loss of an idle connection is no error, unless its cause is
// not the peer, or unless an HTTP/2 server calls SetIdle because of it.
func TestIdleConnection(t *testing.T) {
	for _, c := range []struct {
		name   string
		end    func(raw *net.TCPConn)
		before bool // the error comes before SetIdle
		http2  bool
		broken bool
	}{
		{"no close_notify", func(raw *net.TCPConn) { _ = raw.Close() }, false, false, false},
		{"reset", func(raw *net.TCPConn) { _ = raw.SetLinger(0); _ = raw.Close() }, false, true, false},
		{"before, HTTP/1", func(raw *net.TCPConn) { _ = raw.Close() }, true, false, false},
		{"before, HTTP/2", func(raw *net.TCPConn) { _ = raw.Close() }, true, true, true},
		{"garbage", func(raw *net.TCPConn) { _, _ = raw.Write([]byte("garbage")) }, false, false, true},
	} {
		cc, sc := tlstest.ClientConfig(), tlstest.ServerConfig()
		if c.http2 {
			cc.NextProtos, sc.NextProtos = []string{"h2"}, []string{"h2"}
		}
		server := ossltest.NewContext(t, sc)
		rawClient, rawServer := tlstest.Loopback()
		client, s := ossltest.NewContext(t, cc).Client(rawClient, ""), server.Server(rawServer)
		tlstest.Shake(t, client, s)
		s.SetIdle(!c.before)
		c.end(rawClient.(*net.TCPConn))
		if _, err := s.Read(make([]byte, 1)); err == nil {
			t.Fatalf("%s: Read succeeds", c.name)
		}
		s.SetIdle(true)
		_ = s.Close()
		if broken := server.Stats().Broken; len(broken) > 0 != c.broken {
			t.Errorf("%s: counted %+v", c.name, broken)
		}
		_ = rawClient.Close()
	}
}

// TestProfileLabels checks the labels during a handshake, and that the caller's labels stay.
func TestProfileLabels(t *testing.T) {
	labels := func(ctx context.Context) string {
		label := func(key string) string {
			value, _ := pprof.Label(ctx, key)
			return value
		}
		return label("tls") + " " + label("tls.role") + " " + label("mine")
	}
	for _, on := range []bool{false, true} {
		var got string
		sc := tlstest.ServerConfig()
		sc.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			got = labels(hello.Context())
			return nil, nil
		}
		var opts []ossl.Option
		want := "  yes"
		if on {
			opts, want = append(opts, ossl.WithProfileLabels()), "handshake server yes"
		}
		client, server := ossltest.NewContext(t, tlstest.ClientConfig()), ossltest.NewContext(t, sc, opts...)
		rawClient, rawServer := tlstest.Loopback()
		c, s := client.Client(rawClient, ""), server.Server(rawServer)
		go func() { _ = c.Handshake() }()
		if err := s.HandshakeContext(pprof.WithLabels(t.Context(), pprof.Labels("mine", "yes"))); err != nil {
			t.Fatal(err)
		}
		_, _ = c.Close(), s.Close()
		if got != want {
			t.Errorf("labels %q with the option %v, want %q", got, on, want)
		}
	}
}

// TestLogValues checks the attributes of errors in a log.
func TestLogValues(t *testing.T) {
	for _, c := range []struct {
		value any
		want  string
	}{
		{&ossl.ConfigError{Field: "MinVersion", Reason: "old"}, `{"field":"MinVersion","reason":"old"}`},
		{&ossl.ConfigError{Field: "RootCAs", Reason: "bad", Err: tlstest.ErrDenied},
			`{"field":"RootCAs","reason":"bad","cause":"tlstest: denied by a callback"}`},
		{&ossl.LibraryError{Op: "read", Codes: []uint64{0xa00011a}, Reason: "bad record"},
			`{"text":"ossl: read: bad record","op":"read","reason":"bad record","codes":["0A00011A"]}`},
		{ossl.Failure{Class: ossl.FailureRefused, Alert: 42}, `{"class":"refused","alert":"tls: bad certificate","alert_number":42}`},
		{ossl.Failure{Class: ossl.FailureTimeout}, `{"class":"timeout"}`},
	} {
		var out bytes.Buffer
		slog.New(slog.NewJSONHandler(&out, nil)).Info("message", "value", c.value)
		var line struct{ Value json.RawMessage }
		if err := json.Unmarshal(out.Bytes(), &line); err != nil || string(line.Value) != c.want {
			t.Errorf("%#v is logged as %s, want %s (%v)", c.value, line.Value, c.want, err)
		}
	}
}
