package terminator_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestBackendsDie: while backends die and come back, no request that can be repeated fails, and no
// other one reaches two backends. nginx has the same situation, if it is installed.
func TestBackendsDie(t *testing.T) {
	t.Run("ossl", func(t *testing.T) {
		f := newMortals(t)
		w := newWorld(t)
		c := w.config("ossl", several("http://"+f.addresses[0], "http://"+f.addresses[1], "http://"+f.addresses[2]))
		c.Limits.RatePerSource, c.Limits.PerAddress = 0, 0
		r := w.start(c)
		if lost := f.run(t, "https://localhost", r.client(false, nil), r.client(true, nil)); lost > 0 {
			t.Errorf("%d GETs are lost", lost)
		}
	})
	t.Run("nginx", func(t *testing.T) {
		if testing.Short() {
			t.Skip("long: only without -short")
		}
		program := findNginx(t)
		f := newMortals(t)
		url := startNginx(t, program, f.addresses)
		client := &http.Client{Transport: &http.Transport{}, Timeout: patience}
		t.Logf("%d GETs are lost", f.run(t, url, client))
		client.CloseIdleConnections()
	})
}

// startNginx has nginx pass requests on to some backends, and returns its URL, without TLS. It
// takes no backend for dead: if all have died within 10 seconds, it would answer 502 without trying
// one.
func startNginx(t *testing.T, program string, backends []string) string {
	t.Helper()
	address := closed(t)
	runNginx(t, program, address, "", "upstream b { keepalive 16; server "+strings.Join(backends, " max_fails=0; server ")+
		" max_fails=0; }\nserver { listen "+address+"; location / { proxy_pass http://b; proxy_http_version 1.1; "+
		"proxy_set_header Connection \"\"; } }")
	return "http://" + address
}

// findNginx returns nginx's path, or skips the test.
func findNginx(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"nginx", "/usr/sbin/nginx"} { // which isn't in the PATH of all users
		if program, err := exec.LookPath(name); err == nil {
			return program
		}
	}
	t.Skip("nginx is not installed")
	return ""
}

// runNginx runs nginx, which listens at an address, with some directives of its contexts events and http.
func runNginx(t *testing.T, program, address, events, http string) {
	t.Helper()
	folder := shortFolder(t)
	config := "daemon off; pid " + folder + "/pid; error_log stderr crit; events { " + events + " }\nhttp { access_log off;\n"
	for _, name := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		config += name + "_temp_path " + folder + "/" + name + ";\n"
	}
	file := filepath.Join(folder, "conf")
	if err := os.WriteFile(file, []byte(config+http+" }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-p", folder, "-c", file)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	for late := time.Now().Add(patience); ; <-time.After(10 * time.Millisecond) {
		if conn, err := net.Dial("tcp", address); err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(late) {
			t.Fatal("nginx doesn't listen")
		}
	}
}

// mortals are three backends that die and come back.
type mortals struct {
	addresses []string
	servers   [3]*http.Server

	mu    sync.Mutex
	times map[string]int // guarded by mu; that a backend got a POST, by its path
}

func newMortals(t *testing.T) *mortals {
	f := &mortals{times: map[string]int{}}
	for i := range f.servers {
		f.addresses = append(f.addresses, closed(t))
		f.begin(t, i)
	}
	t.Cleanup(func() {
		for _, s := range f.servers {
			_ = s.Close()
		}
	})
	return f
}

func (f *mortals) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		f.mu.Lock()
		f.times[r.URL.Path]++
		f.mu.Unlock()
	}
	_, _ = io.Copy(io.Discard, r.Body)
}

// begin starts a backend.
func (f *mortals) begin(t *testing.T, i int) {
	for late := time.Now().Add(patience); ; <-time.After(10 * time.Millisecond) {
		l, err := net.Listen("tcp", f.addresses[i])
		if err == nil {
			f.servers[i] = &http.Server{Handler: f}
			go func(s *http.Server) { _ = s.Serve(l) }(f.servers[i])
			return
		}
		if time.Now().After(late) {
			t.Fatal(err)
		}
	}
}

// run makes clients send requests while the backends die, and returns the number of GETs that failed.
func (f *mortals) run(t *testing.T, url string, clients ...*http.Client) (lost int64) {
	var answered, gets, posts atomic.Int64
	stop := make(chan struct{})
	var running sync.WaitGroup
	for i := range 8 {
		client := clients[i%len(clients)]
		running.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				path, method, body := fmt.Sprintf("/%d/%d", i, n), http.MethodGet, io.Reader(nil)
				if n%2 == 0 {
					method = http.MethodPost
				}
				if n%4 == 0 {
					body = strings.NewReader("body")
				}
				request, err := http.NewRequest(method, url+path, body)
				if err != nil {
					t.Error(err)
					return
				}
				resp, err := client.Do(request)
				if err != nil {
					t.Error(err)
					return
				}
				_ = resp.Body.Close()
				answered.Add(1)
				f.mu.Lock()
				got := f.times[path]
				f.mu.Unlock()
				switch {
				case method == http.MethodPost && (got > 1 || resp.StatusCode == 200 && got != 1):
					t.Errorf("POST: status %d, sent to %d backends", resp.StatusCode, got)
				case resp.StatusCode == 200:
				case method == http.MethodPost:
					posts.Add(1)
				default:
					gets.Add(1)
				}
			}
		})
	}
	await := func(n int64) {
		for until := answered.Load() + n; answered.Load() < until && !t.Failed(); {
			<-time.After(time.Millisecond)
		}
	}
	rounds := 12
	if testing.Short() {
		rounds = 4
	}
	for round := range rounds {
		await(200)
		_ = f.servers[round%3].Close()
		await(200)
		f.begin(t, round%3)
	}
	close(stop)
	running.Wait()
	t.Logf("%d requests; %d POSTs failed", answered.Load(), posts.Load())
	return gets.Load()
}
