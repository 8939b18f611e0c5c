package terminator_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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
	folder, err := os.MkdirTemp("", "redis") // the path of a socket has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	socket := filepath.Join(folder, "s")
	cmd := exec.Command(program, "--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	defer stop()
	lines := bufio.NewScanner(stdout)
	for lines.Scan() && !strings.Contains(strings.ToLower(lines.Text()), "ready to accept connections") {
	}
	go func() { _, _ = io.Copy(io.Discard, stdout) }()

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
		// A lookup takes 50 ms at most; one that takes longer on a busy machine costs a full handshake.
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
		if visit(two) {
			t.Error("resumed without the store")
		}
	}
}
