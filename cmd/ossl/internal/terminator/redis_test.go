package terminator_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestRedis: servers with the same store and secret resume each other's sessions, one with another
// secret doesn't, and without the store clients make full handshakes. It gives out the first ticket
// key after a minute, and so has all sessions here.
func TestRedis(t *testing.T) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed")
	}
	socket := filepath.Join(shortFolder(t), "s")
	stop := startRedis(t, program, "port 0", "unixsocket "+socket)

	w := newWorld(t)
	config := func(digit string) *terminator.Config {
		c := w.config("ossl", terminator.Site{Root: w.folder(map[string]string{"index.html": "x"})})
		c.Redis, c.RedisSecret = socket, filepath.Join(w.dir, "secret"+digit)
		w.write(c.RedisSecret, strings.Repeat("0"+digit, 32)+"\n")
		return c
	}
	cache := tls.NewLRUClientSessionCache(0)
	visit := func(r *running) bool {
		t.Helper()
		conn := r.mustDial(func(config *tls.Config) { config.ClientSessionCache = cache })
		write(t, conn, "GET / HTTP/1.0\r\nHost: localhost\r\n\r\n")
		_, _ = io.ReadAll(conn) // the ticket too
		return conn.ConnectionState().DidResume
	}
	one, two, other := w.start(config("1")), w.start(config("1")), w.start(config("2"))
	for _, c := range []struct {
		name string
		then *running
		want bool
	}{{"same server", one, true}, {"another server", two, true}, {"another secret", other, false}} {
		resumed := false
		// A lookup takes 50 ms at most; one that takes longer on a busy machine costs a full
		// handshake.
		for try := 0; try < 20 && resumed != c.want || try == 0; try++ {
			visit(one)
			resumed = visit(c.then)
		}
		if resumed != c.want {
			t.Errorf("%s: DidResume is %v", c.name, resumed)
		}
	}
	stop()
	for range 2 {
		visit(one) // two would resume a session of its own that waits to be written
		if visit(two) {
			t.Error("resumed without the store")
		}
	}
}

// startRedis starts a redis-server, waits until it serves, and returns a function that kills it.
func startRedis(t *testing.T, program string, lines ...string) (stop func()) {
	t.Helper()
	folder := shortFolder(t)
	file := filepath.Join(folder, "conf")
	text := strings.Join(append(lines, "save \"\"", "dir "+folder), "\n") + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, file)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Cleanup(stop)
	output := bufio.NewScanner(stdout)
	for ready := false; !ready; {
		if !output.Scan() {
			t.Fatal("redis-server has ended")
		}
		ready = strings.Contains(strings.ToLower(output.Text()), "ready to accept connections")
	}
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	return stop
}

// TestRedisAccess: the store may ask for TLS with a certificate, and for a user with a password who
// may do no more than docs/SERVE.md lists. The log and the metrics report that it fails and that it
// is back, once each, and have no secret.
func TestRedisAccess(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed")
	}
	const password, wrong = "correct-horse-7", "wrong-horse-8"
	w := newWorld(t)
	address := closed(t)
	_, port, _ := net.SplitHostPort(address)
	server, client := w.pair(false, "store.test"), w.pair(true, "client.test")
	lines := []string{"port 0", "tls-port " + port, "bind 127.0.0.1", "tls-auth-clients yes",
		"tls-cert-file " + server.Cert, "tls-key-file " + server.Key, "tls-ca-cert-file " + filepath.Join(w.dir, "ca", "ca.pem"),
		"user default off", "user ossl on >" + password + " ~ossl:* resetchannels -@all " +
			"+get +getdel +set +del +time +watch +unwatch +multi +exec +select"}
	stop := startRedis(t, program, lines...)
	c := w.config("ossl", terminator.Site{Root: w.folder(map[string]string{"index.html": "x"})})
	c.Admin = "127.0.0.1:0"
	c.Redis, c.RedisSecret = "rediss://"+address+"/3", filepath.Join(w.dir, "secret")
	c.RedisUser, c.RedisPassword = "ossl", filepath.Join(w.dir, "password")
	c.RedisCA, c.RedisName = filepath.Join(w.dir, "ca", "ca.pem"), "store.test"
	c.RedisCert, c.RedisKey = client.Cert, client.Key
	w.write(c.RedisSecret, strings.Repeat("01", 32)+"\n")
	w.write(c.RedisPassword, wrong+"\n")
	r := w.start(c)
	_, admin := r.Addrs()
	awaitMetric := func(line string) {
		t.Helper()
		for late := time.Now().Add(patience); ; <-time.After(20 * time.Millisecond) {
			_, body := get(t, http.DefaultClient, "http://"+admin.String()+"/metrics")
			if strings.Contains(body, "\n"+line) {
				return
			}
			if time.Now().After(late) {
				t.Fatalf("no %q in\n%s", line, body)
			}
		}
	}
	cache := tls.NewLRUClientSessionCache(0)
	visit := func() bool {
		conn := r.mustDial(func(config *tls.Config) { config.ClientSessionCache = cache })
		write(t, conn, "GET / HTTP/1.0\r\nHost: localhost\r\n\r\n")
		_, _ = io.ReadAll(conn) // the ticket too
		return conn.ConnectionState().DidResume
	}
	r.log.await(t, "level=WARN", "redis fails", "WRONGPASS")
	awaitMetric("ossl_serve_redis_up 0\n")
	w.write(c.RedisPassword, password)
	if err := r.Reload(context.Background(), c); err != nil { // which reads the password again
		t.Fatal(err)
	}
	r.log.await(t, "redis answers again")
	awaitMetric("ossl_serve_redis_up 1\n")
	for late := time.Now().Add(patience); !visit(); {
		if time.Now().After(late) {
			t.Fatal("no session is resumed")
		}
	}
	awaitMetric("ossl_serve_redis_polls_total{result=\"succeeded\"}")
	if _, body := get(t, http.DefaultClient, "http://"+admin.String()+"/metrics"); strings.Contains(body,
		"ossl_serve_redis_lookups_total{result=\"hit\"} 0\n") {
		t.Error("no hit is counted")
	}
	stop()
	for range 20 {
		begun := time.Now()
		visit() // which may resume a session that waits to be written
		if took := time.Since(begun); took > limit {
			t.Errorf("a handshake without the store took %v", took)
		}
	}
	awaitMetric("ossl_serve_redis_up 0\n")
	startRedis(t, program, lines...)
	awaitMetric("ossl_serve_redis_up 1\n")
	text := r.log.String()
	if strings.Count(text, "redis fails") != 2 || strings.Count(text, "redis answers again") != 2 {
		t.Error("the changes of the store's state aren't logged once each")
	}
	if strings.Contains(text, password) || strings.Contains(text, wrong) {
		t.Error("the log has a password")
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestRedisSettings: settings of the store that contradict each other are refused, and no error has
// a password.
func TestRedisSettings(t *testing.T) {
	const password = "hunter2"
	for want, change := range map[string]func(*terminator.Config){
		"redis: the URL has a user":       func(c *terminator.Config) { c.Redis = "redis://u:" + password + "@h:1" },
		"redis: neither HOST":             func(c *terminator.Config) { c.Redis = password + "@h:1" },
		"redis: the URL is neither":       func(c *terminator.Config) { c.Redis = "http://u:" + password + "@h:1" },
		"redis: the database":             func(c *terminator.Config) { c.Redis = "redis://h:1/x" },
		"redis-user needs redis-password": func(c *terminator.Config) { c.RedisUser = "u" },
		"redis-ca needs a store with TLS": func(c *terminator.Config) { c.RedisCA = "f" },
		"redis-name needs a store":        func(c *terminator.Config) { c.RedisName = "n" },
		"redis-key needs a store":         func(c *terminator.Config) { c.RedisKey = "n" },
		"redis-cert and redis-key go":     func(c *terminator.Config) { c.Redis, c.RedisCert = "rediss://h:1", "f" },
		"redis-password-file needs redis": func(c *terminator.Config) { c.Redis, c.RedisSecret, c.RedisPassword = "", "", "f" },
	} {
		c := &terminator.Config{Listen: []string{":443"}, Engine: "ossl", Limits: terminator.DefaultLimits(),
			Store: terminator.Store{Redis: "h:1", RedisSecret: "s"},
			Sites: []terminator.Site{{Root: "/srv", Pairs: []terminator.Pair{{Cert: "c", Key: "k"}}}}}
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
		change(c)
		if err := c.Check(); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), password) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	w := newWorld(t)
	c := w.config("ossl", terminator.Site{Root: w.folder(nil)})
	c.Redis, c.RedisSecret, c.RedisPassword = "127.0.0.1:1", filepath.Join(w.dir, "secret"), filepath.Join(w.dir, "password")
	w.write(c.RedisSecret, strings.Repeat("01", 32))
	w.write(c.RedisPassword, password)
	if err := os.Chmod(c.RedisPassword, 0o644); err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.DiscardHandler)
	if _, err := terminator.Start(context.Background(), c, logger, logger); err == nil || !strings.Contains(err.Error(), "0644") {
		t.Errorf("a password that all can read: %v", err)
	}
}
