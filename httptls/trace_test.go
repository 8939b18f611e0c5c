package httptls_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A traceLog records the hooks that fire: in order up to GotConn, then sorted, because net/http's
// goroutines race.
type traceLog struct {
	mu    sync.Mutex
	order []string
	later []string
	got   bool
}

func (l *traceLog) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	event := fmt.Sprintf(format, args...)
	if l.got {
		l.later = append(l.later, event)
	} else {
		l.order = append(l.order, event)
	}
	if strings.HasPrefix(event, "GotConn") {
		l.got = true
	}
}

func (l *traceLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	later := slices.Sorted(slices.Values(l.later))
	return strings.Join(append(slices.Clone(l.order), later...), "\n")
}

func (l *traceLog) context(addr string) context.Context {
	hide := func(s string) string { return strings.ReplaceAll(s, addr, "ADDR") }
	return httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
		GetConn: func(hostPort string) { l.add("GetConn %s", hide(hostPort)) },
		GotConn: func(info httptrace.GotConnInfo) {
			_, hasState := info.Conn.(interface{ ConnectionState() tls.ConnectionState })
			l.add("GotConn reused=%v idle=%v tls=%v", info.Reused, info.WasIdle, hasState)
		},
		GotFirstResponseByte: func() { l.add("GotFirstResponseByte") },
		Got100Continue:       func() { l.add("Got100Continue") },
		Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
			l.add("Got1xxResponse %d %v", code, header)
			return nil
		},
		DNSStart:     func(info httptrace.DNSStartInfo) { l.add("DNSStart %s", info.Host) },
		DNSDone:      func(info httptrace.DNSDoneInfo) { l.add("DNSDone %v", info.Err) },
		ConnectStart: func(network, addr string) { l.add("ConnectStart %s %s", network, hide(addr)) },
		ConnectDone:  func(network, addr string, err error) { l.add("ConnectDone %s %s %v", network, hide(addr), err) },
		TLSHandshakeStart: func() {
			l.add("TLSHandshakeStart")
		},
		TLSHandshakeDone: func(state tls.ConnectionState, err error) {
			l.add("TLSHandshakeDone complete=%v alpn=%q %v", state.HandshakeComplete, state.NegotiatedProtocol, err)
		},
		WroteHeaderField: func(key string, _ []string) { l.add("WroteHeaderField %s", key) },
		WroteHeaders:     func() { l.add("WroteHeaders") },
		Wait100Continue:  func() { l.add("Wait100Continue") },
		WroteRequest:     func(info httptrace.WroteRequestInfo) { l.add("WroteRequest %v", info.Err) },
	})
}

// overIPv4 resolves names to IPv4 addresses only.
func overIPv4(ctx context.Context, _, addr string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp4", addr)
}

func TestTraceHooks(t *testing.T) {
	compare(t, func(t *testing.T, p pairing) string {
		s := p.server.start(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusEarlyHints)
			_, _ = io.WriteString(w, "hello")
		})})
		c := p.client.client(t, &http.Transport{DialContext: overIPv4, ExpectContinueTimeout: time10s}, p.http2)
		_, port, _ := net.SplitHostPort(s.addr)
		var out strings.Builder
		for _, method := range []string{"GET", "POST", "PUT"} {
			var log traceLog
			req, err := http.NewRequestWithContext(log.context(s.addr), method, "https://localhost:"+port+"/", nil)
			if err != nil {
				t.Fatal(err)
			}
			if method != "GET" {
				req.Body = io.NopCloser(strings.NewReader("content"))
			}
			if method == "PUT" {
				req.Header.Set("Expect", "100-continue")
			}
			resp, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			fmt.Fprintf(&out, "%s\n%s\n", method, strings.ReplaceAll(log.String(), port, "PORT"))
		}
		return out.String()
	})
}

func TestTraceOfAFailedHandshake(t *testing.T) {
	compare(t, func(t *testing.T, p pairing) string {
		s := p.server.start(t, &http.Server{})
		c := p.client.client(t, &http.Transport{TLSClientConfig: &tls.Config{}}, p.http2) // trusts other roots
		var log traceLog
		req, _ := http.NewRequestWithContext(log.context(s.addr), "GET", s.url("/"), nil)
		_, err := c.Do(req)
		return fmt.Sprintf("%s\n%v", log.String(), hideAddr(err, s.addr))
	})
}

func hideAddr(err error, addr string) string {
	return strings.ReplaceAll(fmt.Sprint(err), addr, "ADDR")
}
