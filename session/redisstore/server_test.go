package redisstore_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ossl-go/ossl/session"
	"github.com/ossl-go/ossl/session/redisstore"
)

// serverProgram returns the redis-server, or valkey-server, to test with: the one in
// OSSL_REDIS_SERVER, or in PATH.
func serverProgram(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("OSSL_REDIS_SERVER"); path != "" {
		return path // if it is wrong the test fails
	}
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("redis-server is not installed: ci/redis installs it")
	return ""
}

// A server is a Redis process without persistence, on a socket of its own unless it is given other
// arguments.
type server struct {
	t       testing.TB
	program string
	dir     string
	addr    string // the socket, or host:port
	args    []string
	pid     int
	stdin   io.Closer // when it is closed, or this process exits, the server exits
	wait    func() error
}

func startServer(t testing.TB) *server {
	t.Helper()
	s := newServer(t)
	s.addr = filepath.Join(s.dir, "s")
	s.args = []string{"--port", "0", "--unixsocket", s.addr}
	s.start()
	return s
}

// newServer returns a server that is not started and has no address or arguments yet.
func newServer(t testing.TB) *server {
	t.Helper()
	dir, err := os.MkdirTemp("", "redis") // t.TempDir's path may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, program: serverProgram(t), dir: dir}
	t.Cleanup(func() {
		if s.pid != 0 {
			s.kill()
		}
		os.RemoveAll(dir)
	})
	return s
}

func (s *server) start() {
	s.t.Helper()
	s.startUntil("ready to accept connections",
		append(slices.Clip(s.args), "--save", "", "--appendonly", "no", "--dir", s.dir, "--daemonize", "no")...)
}

// startUntil starts the program and waits for the line that reports that it is ready.
func (s *server) startUntil(ready string, args ...string) {
	s.t.Helper()
	const script = `"$@" & echo "pid $!"; read _; kill -9 $!; wait`
	cmd := exec.Command("/bin/sh", append([]string{"-c", script, "sh", s.program}, args...)...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.stdin, s.wait = stdin, cmd.Wait
	tooLong := time.AfterFunc(time.Minute, func() { stdin.Close() }) // which closes its output
	defer tooLong.Stop()
	lines := bufio.NewScanner(stdout)
	var said []string
	isReady := false // it may be ready before the shell has printed its number
	for lines.Scan() {
		said = append(said, lines.Text())
		if pid, ok := strings.CutPrefix(lines.Text(), "pid "); ok {
			if s.pid, err = strconv.Atoi(pid); err != nil {
				s.t.Fatal(err)
			}
		}
		isReady = isReady || strings.Contains(strings.ToLower(lines.Text()), ready)
		if isReady && s.pid != 0 {
			go io.Copy(io.Discard, stdout)
			return
		}
	}
	s.t.Fatalf("%s doesn't start:\n%s", s.program, strings.Join(said, "\n"))
}

func (s *server) kill() {
	s.stdin.Close()
	s.wait()
	s.pid = 0
	if strings.HasPrefix(s.addr, "/") {
		os.Remove(s.addr)
	}
}

func (s *server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := syscall.Kill(s.pid, sig); err != nil {
		s.t.Fatal(err)
	}
}

// client returns a client made by NewClient, and a counter of its commands.
func (s *server) client() (redis.UniversalClient, *countingHook) { return newClient(s.t, s.addr) }

// newClient returns a client of a server, or of the cluster of several, which are separated by
// commas.
func newClient(t testing.TB, addrs string) (redis.UniversalClient, *countingHook) {
	c := redisstore.NewClient(clientOptions(addrs))
	hook := new(countingHook)
	c.AddHook(hook)
	t.Cleanup(func() { c.Close() })
	return c, hook
}

// clientOptions has timeouts too long to affect a test: contexts bound the calls.
func clientOptions(addrs string) redis.UniversalOptions {
	return redis.UniversalOptions{
		Addrs: strings.Split(addrs, ","), ReadTimeout: time.Minute, WriteTimeout: time.Minute, PoolTimeout: time.Minute,
	}
}

// A countingHook counts the commands for sessions, a pipeline as one, but not those that the client
// sends when it connects.
type countingHook struct{ calls atomic.Int64 }

func (h *countingHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *countingHook) count(cmd redis.Cmder) {
	switch cmd.Name() {
	case "get", "getdel", "set", "del":
		h.calls.Add(1)
	}
}

func (h *countingHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.count(cmd)
		return next(ctx, cmd)
	}
}

func (h *countingHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.count(cmds[0])
		return next(ctx, cmds)
	}
}

var secret = session.Secret{1, 2, 3}

func newStore(t testing.TB, client redis.UniversalClient, c redisstore.Config) *redisstore.Store {
	t.Helper()
	if c.Secrets == nil {
		c.Secrets = []session.Secret{secret}
	}
	s, err := redisstore.New(client, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		s.Close(ctx)
	})
	return s
}

// patient is a Config for tests in which a busy machine must not cause timeouts.
var patient = redisstore.Config{Timeout: 10 * time.Second}

// eventually waits until f is true, for events in another process. The test's deadline bounds it.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for start := time.Now(); !f(); time.Sleep(10 * time.Millisecond) {
		if time.Since(start) > 3*time.Minute {
			t.Fatalf("%s: not within three minutes", what)
		}
	}
}

// flushed waits until a store has written everything.
func flushed(t testing.TB, s *redisstore.Store) {
	t.Helper()
	eventually(t, "the queue to be empty", func() bool { return s.Stats().Queued == 0 })
}

func id(i int) []byte { return fmt.Appendf(nil, "the ID of session number %d", i) }

func value(i int) []byte { return []byte(strings.Repeat(fmt.Sprintf("session %d ", i), 15)) }

// all runs f n times at once.
func all(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}
