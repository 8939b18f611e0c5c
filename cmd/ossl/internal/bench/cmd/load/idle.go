//go:build linux

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/ossl-go/ossl/internal/tlstest"
)

const (
	connecting = 16              // clients at a time
	ofAddress  = 2000            // clients that have the same address, since ports are finite
	settling   = 2 * time.Second // for servers to end the work of the last handshakes
)

// checkIdle returns an error if this process, or a server, can't have so many connections.
func checkIdle(clients int) error {
	const others = 1000
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	if limit.Max < uint64(clients+others) {
		return fmt.Errorf("%d idle clients need 'ulimit -Hn' of %d, which is %d", clients, clients+others, limit.Max)
	}
	return nil
}

// hold returns the resident memory of a server for an idle client, in bytes. The server is started
// for it alone.
func (r *runner) hold(ctx context.Context, t turn) (bytes float64, err error) {
	s, err := r.start(t.row.server(t.stack), r.idle)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := r.connectSome(ctx, s, connecting, t.row.request > 0); err != nil { // the first ones cost a server more
		return 0, err
	}
	before, err := s.resident()
	if err != nil {
		return 0, err
	}
	clients, err := r.connect(ctx, s, r.idle, t.row.request > 0)
	defer func() { closeAll(clients) }()
	if err != nil {
		return 0, err
	}
	pause(ctx, settling)
	after, err := s.resident()
	if err != nil {
		return 0, err
	}
	for i, c := range clients { // all must still be there
		if err := c.ask(); err != nil {
			return 0, fmt.Errorf("client %d of %d: %w", i, len(clients), err)
		}
	}
	return float64(after-before) / float64(len(clients)), nil
}

func (r *runner) connectSome(ctx context.Context, s *server, n int, request bool) error {
	clients, err := r.connect(ctx, s, n, request)
	closeAll(clients)
	return err
}

// connect connects clients, some at a time.
func (r *runner) connect(ctx context.Context, s *server, n int, request bool) ([]*idler, error) {
	config := &tls.Config{RootCAs: tlstest.CA().Pool(), ServerName: serverName, MinVersion: tls.VersionTLS13,
		CurvePreferences: []tls.CurveID{tls.X25519}}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	numbers := make(chan int)
	clients := make([]*idler, n)
	var wait sync.WaitGroup
	for range connecting {
		wait.Go(func() {
			for i := range numbers {
				var err error
				if clients[i], err = dialIdler(ctx, s.port, i, config); err == nil && request {
					err = clients[i].ask()
				}
				if err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		numbers <- i
	}
	close(numbers)
	wait.Wait()
	return clients, context.Cause(ctx)
}

// An idler is a client that waits.
type idler struct{ conn *tls.Conn }

// dialIdler connects the client of a number.
func dialIdler(ctx context.Context, port string, number int, config *tls.Config) (*idler, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	from := net.IPv4(127, 0, 0, byte(1+number/ofAddress))
	dialer := tls.Dialer{NetDialer: &net.Dialer{LocalAddr: &net.TCPAddr{IP: from}}, Config: config}
	conn, err := dialer.DialContext(ctx, "tcp", "127.0.0.1:"+port)
	if err != nil {
		return nil, err
	}
	return &idler{conn: conn.(*tls.Conn)}, nil
}

// ask makes a request. A client that waits has no buffer.
func (c *idler) ask() error {
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := io.WriteString(c.conn, "GET / HTTP/1.1\r\nHost: "+serverName+"\r\n\r\n"); err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReaderSize(c.conn, 1024), nil)
	if err != nil {
		return err
	}
	n, err := io.Copy(io.Discard, resp.Body)
	if err == nil && (resp.StatusCode != http.StatusOK || n != smallFile) {
		err = fmt.Errorf("an answer of %d bytes, %s", n, resp.Status)
	}
	return err
}

func closeAll(clients []*idler) {
	for _, c := range clients {
		if c != nil {
			if tcp, ok := c.conn.NetConn().(*net.TCPConn); ok {
				_ = tcp.SetLinger(0) // else ports are used up by connections that are closed
			}
			_ = c.conn.NetConn().Close()
		}
	}
}

var rssLine = regexp.MustCompile(`(?m)^Rss: +(\d+) kB$`)

// resident returns the resident memory of the server with its children, in bytes.
func (s *server) resident() (sum int64, err error) {
	for _, pid := range s.processes() {
		text, err := os.ReadFile("/proc/" + pid + "/smaps_rollup")
		if err != nil {
			return 0, err
		}
		kilobytes, err := parseRSS(string(text))
		if err != nil {
			return 0, err
		}
		sum += kilobytes << 10
	}
	return sum, nil
}

// parseRSS parses /proc/PID/smaps_rollup.
func parseRSS(text string) (kilobytes int64, err error) {
	line := rssLine.FindStringSubmatch(text)
	if line == nil {
		return 0, fmt.Errorf("no Rss in %q", text)
	}
	return strconv.ParseInt(line[1], 10, 64)
}
