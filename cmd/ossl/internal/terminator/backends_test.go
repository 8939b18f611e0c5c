package terminator_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
	"github.com/ossl-go/ossl/internal/freeport"
)

// several returns a site with several backends.
func several(to ...string) terminator.Site {
	return terminator.Site{Backend: terminator.Backend{To: to[0], Others: to[1:]}}
}

// closed returns an address at which nobody listens until the test does.
func closed(t *testing.T) string {
	t.Helper()
	port, err := freeport.Take()
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// TestRetries: a request goes to another backend if nothing of it was sent, or if it can be
// repeated and no response has begun. No other request is sent twice.
func TestRetries(t *testing.T) {
	const header = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"
	for _, c := range []struct {
		name   string
		bad    func(conn net.Conn, sent func()) // what the bad backend does; nil if it isn't there
		safe   int                              // the status of GET, HEAD, OPTIONS and DELETE
		unsafe int                              // the status of POST and PUT with bodies, and of POST without one
	}{
		{"not there", nil, 200, 200},
		{"closes at once", func(conn net.Conn, _ func()) { _ = conn.Close() }, 200, 502},
		{"ends after the request", func(conn net.Conn, sent func()) {
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			sent()
			_ = conn.Close()
		}, 200, 502},
		{"resets after the request", func(conn net.Conn, sent func()) {
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			sent()
			resetNow(conn)
		}, 200, 502},
		{"ends within the header", func(conn net.Conn, sent func()) {
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			sent()
			_, _ = io.WriteString(conn, header[:20])
			_ = conn.Close()
		}, 502, 502},
		{"garbage", func(conn net.Conn, sent func()) {
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			sent()
			_, _ = io.WriteString(conn, "garbage\r\n\r\n")
			_ = conn.Close()
		}, 502, 502},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			protocols(t, func(t *testing.T, http2 bool) {
				var mu sync.Mutex
				times := map[string]int{} // that backends got a request, by its path
				good := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					mu.Lock()
					times[r.URL.Path]++
					mu.Unlock()
				}))
				t.Cleanup(good.Close)
				var atBad atomic.Int64
				bad := closed(t)
				if c.bad != nil {
					l := listen(t)
					bad = l.Addr().String()
					go handle(l, func(conn net.Conn) { c.bad(conn, func() { atBad.Add(1) }) })
				}
				w := newWorld(t)
				r := w.start(w.config("ossl", several("http://"+bad, good.URL)))
				client := r.client(http2, nil)
				for i, m := range []struct {
					method, body string
					want         int
				}{
					{"GET", "", c.safe}, {"HEAD", "", c.safe}, {"OPTIONS", "", c.safe}, {"DELETE", "", c.safe},
					{"POST", "", c.unsafe}, {"POST", "body", c.unsafe}, {"PUT", "body", c.unsafe}, {"PATCH", "body", c.unsafe},
				} {
					if m.want == 200 && c.bad == nil { // each time for all that is known
						r = w.start(w.config("ossl", several("http://"+bad, good.URL)))
						client = r.client(http2, nil)
					}
					met := atBad.Load()
					failed := false
					for n := range 2 { // the first or the second begins at the bad backend
						path := fmt.Sprintf("/%d/%d", i, n)
						var body io.Reader
						if m.body != "" {
							body = strings.NewReader(m.body)
						}
						request, err := http.NewRequest(m.method, "https://localhost"+path, body)
						if err != nil {
							t.Fatal(err)
						}
						resp, err := client.Do(request)
						if err != nil {
							t.Fatal(err)
						}
						_ = resp.Body.Close()
						failed = failed || resp.StatusCode != 200
						mu.Lock()
						if n := times[path]; resp.StatusCode == 200 && n != 1 || resp.StatusCode != 200 && n != 0 ||
							resp.StatusCode != 200 && resp.StatusCode != m.want {
							t.Errorf("%s %q: status %d, and the good backend got it %d times", m.method, m.body, resp.StatusCode, n)
						}
						mu.Unlock()
					}
					if failed != (m.want != 200) {
						t.Errorf("%s %q: fails %v", m.method, m.body, failed)
					}
					if c.bad != nil && c.name != "closes at once" && atBad.Load()-met != 1 {
						t.Errorf("%s %q: the bad backend got %d requests", m.method, m.body, atBad.Load()-met)
					}
				}
			})
		})
	}
}

// TestBackendsOfTCP: connections go to the backends in turn, and to another one if one is not
// there.
func TestBackendsOfTCP(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		w := newWorld(t)
		one, two := listen(t), listen(t)
		absent := closed(t)
		r := w.start(w.config(engine, several(one.Addr().String(), absent, two.Addr().String())))
		var conns []net.Conn
		for range 2 {
			conns = append(conns, r.mustDial(nil), r.mustDial(nil))
			for i, l := range []net.Listener{one, two} { // the fewest requests under way: each backend has one of two
				write(t, accept(t, l), fmt.Sprint(i))
			}
		}
		got := map[string]int{}
		for _, conn := range conns {
			got[read(t, conn, 1)]++
		}
		if got["0"] != 2 || got["1"] != 2 {
			t.Errorf("answers %v", got)
		}
		r.log.await(t, "another one is tried")
	})
}

// TestNamesOfBackends: each backend's certificate must have that backend's name.
func TestNamesOfBackends(t *testing.T) {
	w := newWorld(t)
	server := func(name string) string {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, name)
		}))
		s.TLS = &tls.Config{Certificates: w.certificates(w.pair(false, name))}
		s.StartTLS()
		t.Cleanup(s.Close)
		_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
		return port
	}
	localhost, address, wrong := server("localhost"), server("127.0.0.1"), server("wrong.test")
	engines(t, func(t *testing.T, engine string) {
		site := several("https://localhost:"+localhost, "https://127.0.0.1:"+address, "https://localhost:"+wrong)
		site.Backend.CA = w.dir + "/ca/ca.pem"
		r := w.start(w.config(engine, site))
		got := map[string]int{}
		for range 6 {
			status, body := get(t, r.client(false, nil), "https://localhost/")
			if got[body]++; status != 200 {
				t.Errorf("status %d", status)
			}
		}
		if got["localhost"] == 0 || got["127.0.0.1"] == 0 || len(got) != 2 {
			t.Errorf("answers %v", got)
		}
		r.log.await(t, "level=WARN", "backend fails", wrong)
	})
}

// TestChecks: a backend whose check fails gets no requests, and gets them again when it is well.
// Its state and its counts outlive a reload.
func TestChecks(t *testing.T) {
	var ill atomic.Bool
	var requests atomic.Int64
	server := func(answer string) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/health" && answer == "one" && ill.Load() {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			if r.URL.Path != "/health" && answer == "one" {
				requests.Add(1)
			}
			_, _ = io.WriteString(w, answer)
		}))
		t.Cleanup(s.Close)
		return s
	}
	one, two := server("one"), server("two")
	w := newWorld(t)
	site := several(one.URL, two.URL)
	site.Backend.Check, site.Backend.CheckInterval = "/health", terminator.Time(200*time.Millisecond)
	config := w.config("ossl", site)
	config.Admin = "127.0.0.1:0"
	r := w.start(config)
	_, admin := r.Addrs()
	defer http.DefaultClient.CloseIdleConnections()
	await := func(up int) {
		t.Helper()
		line := fmt.Sprintf("\nossl_serve_backend_up{backend=%q,site=\"*\"} %d\n", one.URL, up)
		for late := time.Now().Add(patience); ; <-time.After(10 * time.Millisecond) {
			_, body := get(t, http.DefaultClient, "http://"+admin.String()+"/metrics")
			if strings.Contains(body, line) {
				return
			}
			if time.Now().After(late) {
				t.Fatalf("no %q in\n%s", line, body)
			}
		}
	}
	visit := func() {
		t.Helper()
		for range 10 {
			if status, body := get(t, r.client(true, nil), "https://localhost/"); status != 200 {
				t.Errorf("status %d, %q", status, body)
			}
		}
	}
	await(1)
	visit()
	if n := requests.Load(); n != 5 {
		t.Errorf("%d of 10 requests", n)
	}
	ill.Store(true)
	r.log.await(t, "backend fails", "status 503")
	await(0)
	visit()
	changed := *config
	if err := r.Reload(context.Background(), &changed); err != nil {
		t.Fatal(err)
	}
	await(0) // at once, though the new configuration's first check may still be running
	visit()
	if n := requests.Load(); n != 5 {
		t.Errorf("%d requests after the check has failed", n-5)
	}
	ill.Store(false)
	r.log.await(t, "backend is well again")
	await(1)
	visit()
	if n := requests.Load(); n != 10 {
		t.Errorf("%d of 10 requests after the check has succeeded", n-5)
	}
	one.Close()
	two.Close()
	r.log.await(t, "backend fails", two.Listener.Addr().String())
	if status, _ := get(t, r.client(true, nil), "https://localhost/"); status != 502 {
		t.Errorf("status %d without any backend", status)
	}
}

// TestUpgradeAtOne: an upgrade works with several backends, and counts as under way until it is
// closed.
func TestUpgradeAtOne(t *testing.T) {
	w := newWorld(t)
	one, two := listen(t), listen(t)
	r := w.start(w.config("ossl", several("http://"+one.Addr().String(), "http://"+two.Addr().String())))
	type arrival struct {
		at   net.Listener
		conn net.Conn
	}
	arrivals := make(chan arrival)
	for _, l := range []net.Listener{one, two} {
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				arrivals <- arrival{l, conn}
			}
		}()
	}
	upgrade := func() (at net.Listener, end func()) {
		conn := r.mustDial(nil)
		write(t, conn, upgradeRequest)
		backend := <-arrivals
		in := bufio.NewReader(backend.conn)
		if _, err := http.ReadRequest(in); err != nil {
			t.Fatal(err)
		}
		write(t, backend.conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || resp.StatusCode != 101 {
			t.Fatal(resp, err)
		}
		write(t, conn, "hello")
		if got := read(t, in, 5); got != "hello" {
			t.Errorf("%q", got)
		}
		return backend.at, func() {
			_ = conn.Close()
			_ = backend.conn.Close()
		}
	}
	first, _ := upgrade()
	second, end := upgrade()
	if first == second {
		t.Error("both upgrades are at one backend")
	}
	for late := time.Now().Add(patience); ; { // its end is noticed a moment later
		end()
		var at net.Listener
		at, end = upgrade()
		if at == second {
			break
		}
		if time.Now().After(late) {
			t.Fatal("an upgrade that has ended counts as under way")
		}
	}
	end()
}

// TestChecksOfTCP: the check of a TCP backend finds that it accepts no connection, or fails in the
// handshake, before a client meets it.
func TestChecksOfTCP(t *testing.T) {
	w := newWorld(t)
	secure := func(address, name string) net.Listener {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		config := &tls.Config{Certificates: w.certificates(w.pair(false, name))}
		go handle(l, func(conn net.Conn) {
			c := tls.Server(conn, config)
			if c.Handshake() == nil {
				_, _ = io.WriteString(c, "hello")
				_ = c.CloseWrite()
				_, _ = io.Copy(io.Discard, c)
			}
		})
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	good, wrong := secure("127.0.0.1:0", "127.0.0.1"), secure("127.0.0.1:0", "wrong.test")
	engines(t, func(t *testing.T, engine string) {
		absent := closed(t)
		site := several("tls://"+good.Addr().String(), "tls://"+wrong.Addr().String(), "tls://"+absent)
		site.Backend.CA = w.dir + "/ca/ca.pem"
		site.Backend.Check, site.Backend.CheckInterval = "connect", terminator.Time(200*time.Millisecond)
		r := w.start(w.config(engine, site))
		r.log.await(t, "backend fails", wrong.Addr().String())
		r.log.await(t, "backend fails", absent)
		for range 6 {
			if got := read(t, r.mustDial(nil), 5); got != "hello" {
				t.Errorf("%q", got)
			}
		}
		if strings.Contains(r.log.String(), "another one is tried") {
			t.Error("a client has met a backend whose check fails")
		}
		back := secure(absent, "127.0.0.1")
		r.log.await(t, "backend is well again", absent)
		_ = back.Close()
	})
}

// TestSlowClientsPauseNoBackend: clients that don't send their bodies in time don't count against
// backends.
func TestSlowClientsPauseNoBackend(t *testing.T) {
	t.Parallel()
	backend := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	t.Cleanup(backend.Close)
	w := newWorld(t)
	c := w.config("ossl", several(backend.URL, strings.Replace(backend.URL, "127.0.0.1", "localhost", 1)))
	c.Limits.Idle = terminator.Time(limit / 5)
	r := w.start(c)
	var clients sync.WaitGroup
	for i := range 16 {
		client := r.client(i%2 == 0, nil)
		clients.Go(func() {
			body, rest := io.Pipe()
			defer rest.Close()
			go func() { _, _ = rest.Write([]byte("x")) }()
			resp, err := client.Post("https://localhost/", "", body)
			if err != nil {
				t.Error(err)
				return
			}
			if _ = resp.Body.Close(); resp.StatusCode != 408 {
				t.Errorf("status %d", resp.StatusCode)
			}
		})
	}
	clients.Wait()
	if strings.Contains(r.log.String(), "backend fails") {
		t.Error("slow clients have paused a backend")
	}
}
