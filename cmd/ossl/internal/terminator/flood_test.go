package terminator_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// envHalfOpen is the number of connections of TestHalfOpen, instead of 500.
const envHalfOpen = "OSSL_HALF_OPEN"

// TestHalfOpen: connections whose clients send nothing, or stop in the handshake, cost little memory,
// keep nobody out, and are closed.
func TestHalfOpen(t *testing.T) {
	clients := 500
	const each = 64 << 10 // both ends' memory, with the race detector's
	if s := os.Getenv(envHalfOpen); s != "" {
		var err error
		if clients, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	engines(t, func(t *testing.T, engine string) {
		w := newWorld(t)
		config := w.config(engine, terminator.Site{Root: w.folder(map[string]string{"index.html": "x"})})
		config.Limits.Connections, config.Limits.PerAddress, config.Limits.RatePerSource = clients+10, 0, 0
		config.Limits.Header = terminator.Time(limit + time.Duration(clients)*time.Millisecond)
		r := w.start(config)
		get(t, r.client(true, nil), "https://localhost/") // so that all that is made once is there
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		var conns []net.Conn
		for i := range clients {
			conn, err := net.Dial("tcp", r.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			write(t, conn, []string{"", "\x16\x03\x01\x02\x00\x01"}[i%2]) // the beginning of a ClientHello
			conns = append(conns, conn)
		}
		get(t, r.client(false, nil), "https://localhost/")
		runtime.ReadMemStats(&after)
		grown := int(after.HeapInuse+after.StackInuse) - int(before.HeapInuse+before.StackInuse)
		if t.Logf("%d connections cost %d bytes each", clients, grown/clients); grown > clients*each {
			t.Errorf("that is more than %d", each)
		}
		for _, conn := range conns {
			_ = conn.SetReadDeadline(time.Now().Add(patience))
			if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal("a connection without a handshake is kept")
			}
		}
	})
}

// envHalfHellos is the number of clients of TestHandshakeBound that stop after their ClientHello, instead of 40.
const envHalfHellos = "OSSL_HALF_HELLOS"

// TestHandshakeBound: clients that send a ClientHello and nothing more have no more handshakes than the bound
// at a time, and another client gets in when their time is over.
func TestHandshakeBound(t *testing.T) {
	t.Parallel()
	clients := 40
	if s := os.Getenv(envHalfHellos); s != "" {
		var err error
		if clients, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	for wait := limit + time.Duration(clients)*time.Millisecond; !boundHolds(t, clients, wait); wait *= 2 {
		if wait > patience {
			t.Fatal("the machine is too slow for this test")
		}
	}
}

// boundHolds fills a server's places for handshakes, whose limit is wait. It reports false if that took longer than
// the limit.
func boundHolds(t *testing.T, clients int, wait time.Duration) bool {
	t.Helper()
	const bound = 8
	w := newWorld(t)
	config := w.config("ossl", terminator.Site{Root: w.folder(map[string]string{"index.html": "x"})})
	config.Limits.Connections, config.Limits.PerAddress, config.Limits.RatePerSource = clients+10, 0, 0
	config.Limits.Handshakes, config.Limits.Header = bound, terminator.Time(wait)
	r := w.start(config)
	over := time.Now().Add(time.Duration(config.Limits.Header)) // no handshake is too old before
	answers := make(chan time.Time, clients)
	for range clients {
		conn, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		half := tls.Client(&halfOpen{conn, answers}, &tls.Config{RootCAs: r.roots, ServerName: "localhost"})
		go func() { _ = half.Handshake() }()
	}
	for range bound {
		if (<-answers).After(over) {
			return false
		}
	}
	<-time.After(time.Until(over) / 2) // so that the next client's time isn't over with the others'
	switch above := len(answers); {
	case time.Now().After(over):
		return false
	case above > 0:
		t.Errorf("%d handshakes above the bound", above)
	}
	get(t, r.client(false, nil), "https://localhost/")
	if time.Now().Before(over) {
		t.Error("a client had a handshake above the bound")
	}
	return true
}

// A halfOpen sends a ClientHello, and nothing after the server's answer.
type halfOpen struct {
	net.Conn
	answers chan<- time.Time
}

func (c *halfOpen) Read(b []byte) (int, error) {
	if n, _ := c.Conn.Read(b); n > 0 {
		c.answers <- time.Now()
	}
	_, _ = io.Copy(io.Discard, c.Conn)
	return 0, io.EOF
}

// TestNeverReads: a client that reads nothing of a TCP connection, or has a window of 0 over HTTP/2,
// is cut off.
func TestNeverReads(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), listen(t)
	config := w.config("ossl", tcp(l.Addr().String()))
	config.Limits.Idle = terminator.Time(limit)
	r := w.start(config)
	client := r.mustDial(nil)
	backend := accept(t, l)
	_ = backend.SetDeadline(time.Now().Add(2 * patience))
	if n, err := io.Copy(backend, endless{}); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the backend has sent %d bytes: %v", n, err)
	}
	_ = client.Close()

	config = w.config("ossl", terminator.Site{Root: w.folder(map[string]string{"file": strings.Repeat("x", 100_000)})})
	config.Limits.Idle = terminator.Time(limit)
	r = w.start(config)
	framer := r.framer(t)
	if err := framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}); err != nil {
		t.Fatal(err)
	}
	writeRequest(t, framer, 1, "/file", nil)
	for {
		frame, err := framer.ReadFrame()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("the stream is kept")
		}
		if _, ok := frame.(*http2.RSTStreamFrame); ok || err != nil {
			return
		}
	}
}

// framer makes an HTTP/2 connection, whose settings haven't been sent.
func (r *running) framer(t *testing.T) *http2.Framer {
	t.Helper()
	conn := r.mustDial(func(config *tls.Config) { config.NextProtos = []string{"h2"} })
	write(t, conn, http2.ClientPreface)
	return http2.NewFramer(conn, conn)
}

// writeRequest begins a GET request; more are the bytes of further fields. It returns the error of a
// connection that the server has closed.
func writeRequest(t *testing.T, framer *http2.Framer, stream uint32, path string, more []byte) error {
	t.Helper()
	return framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: append(block(http.MethodGet, path), more...),
		EndStream: true, EndHeaders: more == nil})
}

// block returns the header of an HTTP/2 request.
func block(method, path string) []byte {
	var b bytes.Buffer
	encoder := hpack.NewEncoder(&b)
	for _, field := range [][2]string{{":method", method}, {":scheme", "https"}, {":authority", "localhost"}, {":path", path}} {
		_ = encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}) // a Buffer takes all
	}
	return b.Bytes()
}

// TestFrameFloods: a client that sends frames without an end, and reads nothing, is served or cut off,
// and others are served.
func TestFrameFloods(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		backend := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/wait" {
				<-r.Context().Done()
			}
		}))
		t.Cleanup(backend.Close)
		w := newWorld(t)
		config := w.config(engine, terminator.Site{Backend: terminator.Backend{To: backend.URL}})
		config.Limits.Streams = 10
		r := w.start(config)
		field := func() []byte {
			var block bytes.Buffer
			_ = hpack.NewEncoder(&block).WriteField(hpack.HeaderField{Name: "x", Value: strings.Repeat("~", 8000)})
			return block.Bytes()
		}()
		times := 50_000
		if testing.Short() {
			times = 10_000
		}
		for name, flood := range map[string]func(*http2.Framer, int) error{
			"CONTINUATION": func(f *http2.Framer, i int) error {
				if i == 0 {
					return writeRequest(t, f, 1, "/", field)
				}
				return f.WriteContinuation(1, false, field)
			},
			"empty CONTINUATION": func(f *http2.Framer, i int) error {
				if i == 0 {
					return writeRequest(t, f, 1, "/", field)
				}
				return f.WriteContinuation(1, false, nil)
			},
			"SETTINGS": func(f *http2.Framer, _ int) error { return f.WriteSettings() },
			"PING":     func(f *http2.Framer, _ int) error { return f.WritePing(false, [8]byte{}) },
			"RST_STREAM": func(f *http2.Framer, i int) error {
				stream := uint32(2*i + 1)
				return errors.Join(writeRequest(t, f, stream, "/wait", nil), f.WriteRSTStream(stream, http2.ErrCodeCancel))
			},
		} {
			t.Run(name, func(t *testing.T) {
				framer := r.framer(t)
				if err := framer.WriteSettings(); err != nil {
					t.Fatal(err)
				}
				for i := range times { // nothing is read
					if err := flood(framer, i); err != nil {
						if errors.Is(err, os.ErrDeadlineExceeded) {
							t.Fatal("neither served nor cut off")
						}
						t.Logf("cut off after %d frames", i)
						break
					}
				}
				if status, _ := get(t, r.client(true, nil), "https://localhost/"); status != 200 {
					t.Errorf("another client: status %d", status)
				}
			})
		}
	})
}

// idleFrames are frames of clients that do no work. The last row has the frames of a client that uses
// its connection as it should.
var idleFrames = []struct {
	name   string
	honest bool
	send   func(f *http2.Framer, i int) error
}{
	{"SETTINGS", false, func(f *http2.Framer, _ int) error { return f.WriteSettings() }},
	{"acknowledgements", false, func(f *http2.Framer, _ int) error {
		return f.WriteRawFrame(http2.FramePing, http2.FlagPingAck, 0, make([]byte, 8))
	}},
	{"PING", false, func(f *http2.Framer, i int) error { return f.WritePing(false, [8]byte{byte(i)}) }},
	{"PRIORITY", false, func(f *http2.Framer, i int) error { return f.WritePriority(uint32(2*i+3), http2.PriorityParam{}) }},
	{"WINDOW_UPDATE", false, func(f *http2.Framer, _ int) error { return f.WriteWindowUpdate(0, 1) }},
	{"unknown frames", false, func(f *http2.Framer, _ int) error { return f.WriteRawFrame(0xfa, 0, 0, nil) }},
	{"empty DATA", false, func(f *http2.Framer, _ int) error { return f.WriteData(1, false, nil) }},
	{"resets", false, func(f *http2.Framer, i int) error {
		if err := beginRequest(f, http.MethodGet, uint32(2*i+3)); err != nil {
			return err
		}
		return f.WriteRSTStream(uint32(2*i+3), http2.ErrCodeCancel)
	}},
	{"resets of the server", false, func(f *http2.Framer, i int) error { // a window update of 0 is an error of the stream
		if err := beginRequest(f, http.MethodGet, uint32(2*i+3)); err != nil {
			return err
		}
		return f.WriteRawFrame(http2.FrameWindowUpdate, 0, uint32(2*i+3), make([]byte, 4))
	}},
	{"DATA of a byte each", true, func(f *http2.Framer, i int) error {
		if i%2 == 0 {
			return f.WriteData(1, false, []byte("x"))
		}
		return f.WriteWindowUpdate(0, 1)
	}},
}

// TestIdleFrames: a client that sends very many frames that do no work is told to calm down, others are answered
// meanwhile, and a client that uses its connection as it should is not told so. Logs how many frames a client
// could send, and those that nginx takes, if it is installed.
func TestIdleFrames(t *testing.T) {
	for _, proxy := range []string{"ossl", "go", "nginx"} {
		if testing.Short() && proxy != "ossl" {
			continue
		}
		t.Run(proxy, func(t *testing.T) {
			for _, c := range idleFrames {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					backend := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
						_, _ = io.Copy(io.Discard, r.Body)
					}))
					t.Cleanup(backend.Close)
					w, many := newWorld(t), 40_000
					var r *running
					switch {
					case proxy == "nginx":
						r, many = beside(t, w, "", backend.URL), 2_000_000
					case testing.Short():
						many = 20_000
						fallthrough
					default:
						r = w.start(w.config(proxy, terminator.Site{Backend: terminator.Backend{To: backend.URL}}))
					}
					if c.honest && proxy == "nginx" {
						many = 20_000
					}
					sent, end := r.flood(t, many, c.send)
					t.Logf("%s, %s: %s after %d frames", proxy, c.name, end, sent)
					if over := end != "" && end != "GOAWAY NO_ERROR"; r.Server != nil && over == c.honest {
						t.Errorf("%d were sent: %q", sent, end)
					}
				})
			}
		})
	}
}

// flood sends frames, of which the server has read all but the last hundred, until it closes the
// connection. It returns their number, and how the server closed the connection, or "". While there
// are frames that the server hasn't read, another client is answered.
func (r *running) flood(t *testing.T, many int, send func(f *http2.Framer, i int) error) (sent int, end string) {
	t.Helper()
	conn := r.mustDial(func(config *tls.Config) { config.NextProtos = []string{"h2"} })
	_ = conn.SetDeadline(time.Now().Add(10 * patience))
	writer := bufio.NewWriter(conn)
	framer := http2.NewFramer(writer, conn)
	_, _ = writer.WriteString(http2.ClientPreface)
	if err := errors.Join(framer.WriteSettings(), beginRequest(framer, http.MethodPost, 1)); err != nil {
		t.Fatal(err)
	}
	marker := [8]byte{7: 1} // of a PING that isn't part of the flood
	acknowledged, ended := make(chan struct{}), make(chan string, 1)
	go func() {
		for {
			frame, err := framer.ReadFrame()
			if err != nil {
				ended <- "end"
				return
			}
			switch frame := frame.(type) {
			case *http2.GoAwayFrame:
				ended <- "GOAWAY " + frame.ErrCode.String()
				return
			case *http2.PingFrame:
				if frame.Data == marker {
					acknowledged <- struct{}{}
				}
			}
		}
	}()
	for sent < many {
		for range 100 {
			if send(framer, sent) != nil {
				return sent, <-ended
			}
			sent++
		}
		if writer.Flush() != nil {
			return sent, <-ended
		}
		if sent == 1000 {
			if status, _ := get(t, r.client(false, nil), "https://localhost/"); status != http.StatusOK {
				t.Errorf("another client: status %d", status)
			}
		}
		if errors.Join(framer.WritePing(false, marker), writer.Flush()) != nil {
			return sent, <-ended
		}
		select {
		case <-acknowledged:
		case end := <-ended:
			return sent, end
		}
	}
	return sent, ""
}

// beginRequest writes the header of a request with a body.
func beginRequest(f *http2.Framer, method string, stream uint32) error {
	return f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block(method, "/"), EndHeaders: true})
}
