package terminator_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// A witness is a backend that reads one request from each connection and records it. It answers with the text that
// the test has set, or with an ordinary response.
type witness struct {
	terminator.Backend
	mu     sync.Mutex
	seen   []string // guarded by mu
	answer string   // guarded by mu; to all but nextRequest
}

func newWitness(t *testing.T) *witness {
	l := listen(t)
	b := &witness{Backend: terminator.Backend{To: "http://" + l.Addr().String()}}
	go handle(l, b.serve)
	return b
}

func (b *witness) serve(conn net.Conn) {
	var raw bytes.Buffer
	reader := bufio.NewReader(io.TeeReader(conn, &raw))
	request, err := http.ReadRequest(reader)
	if err != nil {
		return
	}
	header, _, _ := strings.Cut(raw.String(), "\r\n\r\n")
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // a server ignores a request whose body is cut off
	}
	seen := seenOf(header, string(body))
	for name, values := range request.Trailer {
		if len(values) > 0 {
			seen += fmt.Sprintf(" trailer %s: %q", name, values)
		}
	}
	if rest := reader.Buffered(); rest > 0 {
		seen += fmt.Sprintf(" and %d bytes more", rest)
	}
	answer := okStart + "Content-Length: 4\r\nConnection: close\r\n\r\nfine"
	b.mu.Lock()
	if request.RequestURI != "/next" {
		b.seen = append(b.seen, seen)
		if b.answer != "" {
			answer = strings.TrimPrefix(b.answer, "nothing")
		}
	}
	b.mu.Unlock()
	_, _ = io.WriteString(conn, answer)
}

// take returns the requests that the backend has recorded since the last call of take.
func (b *witness) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	seen := strings.Join(b.seen, "; ")
	b.seen = nil
	return seen
}

// seenOf is the first line of a request, its body, and the fields that a proxy doesn't write for every request.
func seenOf(header, body string) string {
	lines := strings.Split(header, "\r\n")
	seen, framings, host := fmt.Sprintf("%s %q", strings.TrimSuffix(lines[0], " HTTP/1.1"), body), 0, ""
	slices.Sort(lines[1:])
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		switch {
		case name == "Content-Length", line == "Transfer-Encoding: chunked":
			framings++
			continue
		case name == "Host":
			if host = value; value == "localhost" {
				continue
			}
		case line == "X-Forwarded-For: 127.0.0.1", line == "X-Forwarded-Proto: https", line == "X-Forwarded-Host: "+host:
			continue
		}
		seen += " " + line
	}
	if framings > 1 {
		seen += " framed twice"
	}
	return seen
}

// exchangeRaw sends a request and the next one, and returns the statuses of all answers until the
// connection is closed.
func (r *running) exchangeRaw(t *testing.T, text string) (statuses []int) {
	t.Helper()
	conn := r.mustDial(nil)
	go func() { _, _ = io.WriteString(conn, text+nextRequest) }() // which the server may not read to its end
	for reader := bufio.NewReader(conn); ; {
		resp, err := http.ReadResponse(reader, nil)
		if err != nil {
			if r.Server != nil && (len(statuses) == 0 || errors.Is(err, os.ErrDeadlineExceeded)) {
				t.Error(err)
			}
			_ = conn.Close()
			return statuses
		}
		_, _ = io.Copy(io.Discard, resp.Body) // the next response shows an error
		if resp.StatusCode >= 200 {
			statuses = append(statuses, resp.StatusCode)
		}
	}
}

// send2 sends an HTTP/2 request, whose fields net/http's client would refuse. It returns the status
// of the response, or 0 if the stream or the connection is closed.
func (r *running) send2(t *testing.T, fields fields2) (status int) {
	t.Helper()
	framer := r.framer(t)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, f := range fields {
		_ = encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}) // a Buffer takes all
	}
	err := errors.Join(framer.WriteSettings(), framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1,
		BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true}))
	if err != nil {
		t.Fatal(err)
	}
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			if _, err := fmt.Sscan(frame.PseudoValue("status"), &status); err != nil {
				t.Fatal(err)
			}
			return status
		case *http2.RSTStreamFrame, *http2.GoAwayFrame:
			return 0
		}
	}
}

// beside starts nginx as another proxy before a backend, or skips the test.
func beside(t *testing.T, w *world, events, backend string) *running {
	t.Helper()
	program := findNginx(t)
	pair, address := w.pair(false, "localhost", "127.0.0.1"), closed(t)
	runNginx(t, program, address, events, fmt.Sprintf("server { listen %s ssl http2; ssl_certificate %s; ssl_certificate_key %s; "+
		"client_body_timeout 5s; client_header_timeout 5s; lingering_close always; location / { proxy_pass %s; "+
		"proxy_http_version 1.1; proxy_set_header Host $http_host; proxy_set_header X-Forwarded-For $remote_addr; } }",
		address, pair.Cert, pair.Key, backend))
	return &running{t: t, addr: address, roots: w.roots}
}

// How much a proxy lets pass: of two, the one with the larger number is laxer.
const (
	refusedAndEnded = iota
	refused         // and the connection goes on, or, of a response, the client sees that it is cut
	answered
)

// A teller is called with the result of a row: how lax the proxy was, and in words what it did. why is the reason for
// which ossl may be laxer than nginx in this row, or "".
type teller func(row, why string, lax int, what string)

// hostileProxies runs a test with nginx, if it is installed, and with ossl, on both engines.
func hostileProxies(t *testing.T, test func(t *testing.T, r *running, b *witness, tell teller)) {
	type verdict struct {
		lax  int
		what string
	}
	ofNginx := map[string]verdict{}
	t.Run("nginx", func(t *testing.T) {
		w, b := newWorld(t), newWitness(t)
		test(t, beside(t, w, "", b.To), b, func(row, _ string, lax int, what string) {
			ofNginx[row] = verdict{lax, what}
			t.Logf("%s: %s", row, what)
		})
	})
	engines(t, func(t *testing.T, engine string) {
		w, b := newWorld(t), newWitness(t)
		c := w.config(engine, terminator.Site{Backend: b.Backend})
		c.Limits.RatePerSource = 0
		test(t, w.start(c), b, func(row, why string, lax int, what string) {
			if n, ok := ofNginx[row]; ok && lax > n.lax && why == "" {
				t.Errorf("%s: %s, which is laxer than nginx: %s", row, what, n.what)
			}
		})
	})
}

// TestHostileRequests: a request that could be understood in two ways, or that a backend could take for another one,
// is refused, or reaches the backend in one form.
func TestHostileRequests(t *testing.T) {
	hostileProxies(t, func(t *testing.T, r *running, b *witness, tell teller) {
		rows := slices.Clone(hostileRequests)
		for _, host := range slices.Sorted(maps.Keys(hostileHosts)) {
			row := hostileRequest{name: "host " + host, text: "GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n", status: 400}
			if hostileHosts[host] {
				row.status, row.goesOn, row.seen = 200, true, `GET / "" Host: `+host
			}
			rows = append(rows, row)
		}
		for _, row := range rows {
			statuses, seen := r.exchangeRaw(t, row.text), b.take()
			want := []int{row.status}
			if row.goesOn {
				want = append(want, 200)
			}
			if r.Server != nil && (!slices.Equal(statuses, want) || seen != row.seen) {
				t.Errorf("%s: %d, want %d; the backend got %s, want %s", row.name, statuses, want, seen, row.seen)
			}
			lax := refusedAndEnded
			switch {
			case seen != "", len(statuses) > 0 && statuses[0] < 400:
				lax = answered
			case len(statuses) > 1:
				lax = refused
			}
			tell(row.name, row.laxer, lax, fmt.Sprintf("%d, the backend got %s", statuses, seen))
		}
		for _, fields := range append(hostileFields, with()) {
			row, lax := fmt.Sprintf("HTTP/2 %q", fields), refusedAndEnded
			status, seen := r.send2(t, fields), b.take()
			if status > 0 && status < 400 {
				lax = answered
			}
			if right := len(fields) == len(with()) && slices.Equal(fields, with()); r.Server != nil &&
				((lax == answered) != right || (seen != "") != right) {
				t.Errorf("%s: %d; the backend got %s", row, status, seen)
			}
			tell(row, "", lax, fmt.Sprintf("%d, the backend got %s", status, seen))
		}
	})
}

// TestHostileResponses: a response of a backend that is broken, or that could be understood in two ways, doesn't
// reach the client as if it were whole, and none reaches another request.
func TestHostileResponses(t *testing.T) {
	t.Parallel()
	hostileProxies(t, func(t *testing.T, r *running, b *witness, tell teller) {
		for _, row := range hostileResponses {
			b.mu.Lock()
			b.answer = "nothing" + row.text
			b.mu.Unlock()
			for _, two := range []bool{false, true} {
				client, name := r.client(two, nil), fmt.Sprintf("%s, HTTP/2 %v", row.name, two)
				if r.Server == nil {
					client.Timeout = limit // nginx passes on a header without an end
				}
				status, body := 0, []byte(nil)
				resp, err := client.Get("https://localhost/")
				if err == nil {
					// A net/http client takes the length of 304 for a body's.
					if status = resp.StatusCode; status != http.StatusNotModified {
						body, err = io.ReadAll(resp.Body)
					}
					_ = resp.Body.Close()
				}
				cut := err != nil
				if status == http.StatusBadGateway {
					body = nil // the proxy's own
				}
				what := fmt.Sprintf("%d %q, cut %v", status, body, cut)
				if r.Server != nil && (cut != row.cut || !cut && (status != row.status || string(body) != row.body)) {
					t.Errorf("%s: %s (%v), want %d %q, cut %v", name, what, err, row.status, row.body, row.cut)
				}
				if status, next := get(t, client, "https://localhost/next"); status != 200 || next != "fine" {
					t.Errorf("%s: the next request gets %d %q", name, status, next)
				}
				lax := refusedAndEnded
				switch {
				case cut:
					lax = refused
				case status != http.StatusBadGateway:
					lax = answered
				}
				tell(name, row.laxer, lax, what)
			}
			b.take()
		}
	})
}
