package terminator_test

import (
	"bufio"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// envCuts is the number of exchanges that TestCuts makes for each row of its tables, instead of one.
const envCuts = "OSSL_CUTS"

// A cutRow is a kind of exchange, and how each peer may see the other's data stop. "" allows all but
// other data, and that a part is taken for all of the data.
type cutRow struct{ kind, backend, client string }

// Over plain connections, only a regular close marks the end of a stream. In the rows with "short"
// the sender itself has closed it.
var tcpCuts = []cutRow{
	{"nothing", whole, whole},
	{"client resets", cut, ""},
	{"client ends without close_notify", cut, cut},
	{"client sends close_notify", short, whole},
	{"backend resets", "", cut},
	{"backend ends", whole, short},
	{"answer reset", whole, cut},
	{"early answer", whole, whole},
	{"answer during the upload", whole, whole},
}

var httpCuts = []cutRow{
	{"nothing", whole, whole},
	{"client resets", cut, cut},
	{"client ends without close_notify", cut, cut},
	{"client sends close_notify", cut, cut},
	{"client gives up", cut, cut},
	{"backend resets", "", cut},
	{"backend ends", "", cut},
	{"answer reset", whole, cut},
	{"answer ends", whole, cut},
	{"early answer", "", ""},
	{"answer during the upload", whole, whole},
}

// check reports an error if the side saw the data stop in another way than it must.
func (row cutRow) check(t *testing.T, socket bool, side, seen, want string) {
	t.Helper()
	// A Unix socket can't be reset: its reader sees a regular end, unless it has left data unread.
	unixCut := socket && want == cut && (side == "backend" || row.kind == "backend resets" || row.kind == "answer reset")
	switch {
	case seen == want, want == "" && (seen == whole || seen == cut || seen == ""):
	case unixCut && seen == short:
	default:
		t.Errorf("the %s has seen %q, want %q", side, seen, want)
	}
}

// cutProxies calls test with a proxy and a backend of each kind, on both record paths; with -short on one,
// without Unix sockets.
func cutProxies(t *testing.T, test func(t *testing.T, r *running, b *cutBackend, protocol, kind string)) {
	for _, records := range []string{"auto", "libssl"} {
		t.Run(records, func(t *testing.T) {
			t.Setenv("OSSL_RECORDS", records)
			for _, protocol := range []string{"TCP", "HTTP1", "HTTP2"} {
				for _, kind := range []string{"plain", "tls", "unix"} {
					if testing.Short() && (records == "libssl" || kind == "unix") {
						continue
					}
					t.Run(protocol+"/"+kind, func(t *testing.T) {
						w := newWorld(t)
						b := newCutBackend(w, kind, protocol)
						test(t, w.start(w.config("ossl", terminator.Site{Backend: b.Backend})), b, protocol, kind)
					})
				}
			}
		})
	}
}

// TestCuts: if an upload of 24 MB, with -short of 8 MB, or its answer, is cut off at any byte, neither the backend nor the
// client takes it for a whole one. The bytes that have come are the first bytes that were sent.
func TestCuts(t *testing.T) {
	rounds := 1
	if s := os.Getenv(envCuts); s != "" {
		var err error
		if rounds, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	random, exchanges := rand.New(rand.NewPCG(1, 2)), 0
	cutProxies(t, func(t *testing.T, r *running, b *cutBackend, protocol, kind string) {
		rows := httpCuts
		if protocol == "TCP" {
			rows = tcpCuts
		}
		for _, row := range rows {
			for range rounds {
				exchanges++
				size := smallUpload
				if row.backend == cut || row.backend == short || row.kind == "nothing" && kind == "plain" {
					size = uploadSize
					if testing.Short() {
						size = shortUpload
					}
				}
				part := random.Float64() // more cuts near the beginning, which cost less
				at := 1 + int(part*part*part*float64(size-2))
				chunked := exchanges%2 == 1
				t.Run(row.kind, func(t *testing.T) {
					x := newExchange(row.kind, size, at, chunked)
					row.run(t, r, b, x, protocol, kind, nil)
				})
			}
		}
	})
	t.Logf("%d exchanges", exchanges)
}

func newExchange(kind string, size, at int, chunked bool) *exchange {
	x := &exchange{kind: kind, size: size, at: at, chunked: chunked, begun: make(chan struct{}), backend: make(chan string, 1)}
	x.begin = sync.OnceFunc(func() { close(x.begun) })
	return x
}

// run makes an exchange. stop may be nil; it is called when a part of the upload has been sent.
func (row cutRow) run(t *testing.T, r *running, b *cutBackend, x *exchange, protocol, kind string, stop func()) {
	t.Helper()
	b.current.Store(x)
	var client string
	if protocol == "TCP" {
		client = x.overTCP(r.strictDial(t), stop)
	} else {
		client = x.overHTTP(r, protocol == "HTTP2", stop)
	}
	socket := kind == "unix" && protocol == "TCP"
	row.check(t, socket, "client", client, row.client)
	select {
	case seen := <-x.backend:
		row.check(t, socket, "backend", seen, row.backend)
	case <-time.After(patience):
		t.Error("the backend waits for the upload's end")
	}
	if t.Failed() {
		t.Logf("at byte %d of %d, chunked: %v", x.at, x.size, x.chunked)
	}
}

// TestCutAtEnd: a server that stops finishes an upload and its answer, or cuts both off.
func TestCutAtEnd(t *testing.T) {
	for _, c := range []struct {
		name    string
		patient bool
		row     cutRow
	}{
		{"in time", true, cutRow{"nothing", whole, whole}},
		{"late", false, cutRow{"nothing", cut, cut}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cutProxies(t, func(t *testing.T, r *running, b *cutBackend, protocol, kind string) {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				ended := make(chan int, 1)
				drain := func() { ended <- r.Drain(ctx) }
				stop := func() { go drain() }
				want := 0
				if !c.patient {
					cancel()
					stop, want = drain, 1
				}
				c.row.run(t, r, b, newExchange(c.row.kind, smallUpload, smallUpload/3, true), protocol, kind, stop)
				if n := <-ended; n != want {
					t.Errorf("%d connections were cut off, want %d", n, want)
				}
			})
		})
	}
}

// TestCutHTTP10: an HTTP/1.0 response's body is complete when the connection is closed, so a response
// that is cut off must not be closed with close_notify.
func TestCutHTTP10(t *testing.T) {
	for _, records := range []string{"auto", "libssl"} {
		for _, by := range []string{"backend", "end"} {
			t.Run(records+"/"+by, func(t *testing.T) {
				t.Setenv("OSSL_RECORDS", records)
				w, l := newWorld(t), listen(t)
				r := w.start(w.config("ossl", terminator.Site{Backend: terminator.Backend{To: "http://" + l.Addr().String()}}))
				client := r.strictDial(t)
				write(t, client, "GET / HTTP/1.0\r\nHost: localhost\r\n\r\n")
				backend := accept(t, l)
				if _, err := http.ReadRequest(bufio.NewReader(backend)); err != nil {
					t.Fatal(err)
				}
				write(t, backend, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n")
				reader := bufio.NewReader(client)
				response, err := http.ReadResponse(reader, nil)
				if err != nil {
					t.Fatal(err)
				}
				read(t, response.Body, 4)
				if by == "backend" {
					cutConn(backend, true)
				} else {
					ended, cancel := context.WithCancel(context.Background())
					cancel()
					r.Drain(ended)
				}
				if n, err := io.Copy(io.Discard, response.Body); err == nil {
					t.Errorf("the response ends regularly after %d further bytes", n)
				}
			})
		}
	}
}
