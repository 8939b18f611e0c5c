package grpctls_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/mem"
)

// readyReader is the interface in their package readyreader that gRPC's transports look for.
type readyReader interface {
	ReadOnReady(size int, pool mem.BufferPool) (*[]byte, int, error)
}

// countingPool counts its buffers in use.
type countingPool struct{ out, gets atomic.Int64 }

func (p *countingPool) Get(size int) *[]byte {
	p.out.Add(1)
	p.gets.Add(1)
	buf := make([]byte, size)
	return &buf
}

func (p *countingPool) Put(*[]byte) { p.out.Add(-1) }

func TestReadOnReady(t *testing.T) {
	s, c := handshake(t, ours.creds(serverConfig()), ours.creds(clientConfig()))
	if s.err != nil || c.err != nil {
		t.Fatal(s.err, c.err)
	}
	reader, ok := c.conn.(readyReader)
	if !ok {
		t.Fatalf("%T can't read without a buffer", c.conn)
	}
	pool := new(countingPool)
	type result struct {
		text string
		err  error
	}
	results := make(chan result)
	go func() {
		defer close(results)
		for {
			buf, n, err := reader.ReadOnReady(1024, pool)
			text := ""
			if buf != nil {
				text = string((*buf)[:n])
				pool.Put(buf)
			}
			if text != "" || err != nil {
				results <- result{text, err}
			}
			if err != nil {
				return
			}
		}
	}()
	for i, message := range []string{"one", "two"} {
		if gets := pool.gets.Load(); gets != int64(i) {
			t.Errorf("%d buffers taken for %d messages", gets, i)
		}
		if _, err := s.conn.Write([]byte(message)); err != nil {
			t.Fatal(err)
		}
		if r := await(t, "a read", results); r.text != message || r.err != nil {
			t.Errorf("%q, %v; want %q", r.text, r.err, message)
		}
	}
	if err := s.conn.Close(); err != nil {
		t.Fatal(err)
	}
	if r := await(t, "a read", results); r.text != "" || r.err != io.EOF {
		t.Errorf("at the end: %q, %v", r.text, r.err)
	}
	if out := pool.out.Load(); out != 0 {
		t.Errorf("%d buffers are not back in the pool", out)
	}
	if _, _, err := reader.ReadOnReady(1024, pool); err != io.EOF || pool.out.Load() != 0 {
		t.Errorf("after the end: %v, %d buffers out", err, pool.out.Load())
	}
	_ = c.conn.Close()
	if err := s.conn.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed twice: %v", err)
	}
}

// TestReadOnReadyIsUsed checks that gRPC does call the method.
func TestReadOnReadyIsUsed(t *testing.T) {
	checkGoroutines(t)
	used := new(atomic.Int64)
	s := serve(t, spied{ours.creds(serverConfig()), used}, nil)
	if _, err := call(soon(t), dial(t, s.addr, ours.creds(clientConfig())), nil); err != nil {
		t.Fatal(err)
	}
	if used.Load() == 0 {
		t.Error("the server's transport reads otherwise")
	}
}

type spied struct {
	credentials.TransportCredentials
	used *atomic.Int64
}

func (s spied) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := s.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	return spiedConn{conn, s.used}, info, nil
}

type spiedConn struct {
	net.Conn
	used *atomic.Int64
}

func (c spiedConn) ReadOnReady(size int, pool mem.BufferPool) (*[]byte, int, error) {
	c.used.Add(1)
	return c.Conn.(readyReader).ReadOnReady(size, pool)
}

// TestCopyFile copies a file to a connection. io.Copy calls the WriteTo of an os.File, which sends
// the file without TLS if it finds the socket.
func TestCopyFile(t *testing.T) {
	s, c := handshake(t, ours.creds(serverConfig()), ours.creds(clientConfig()))
	if s.err != nil || c.err != nil {
		t.Fatal(s.err, c.err)
	}
	text := strings.Repeat("nobody else may read this. ", 10_000)
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	copied := make(chan error, 1)
	go func() {
		n, err := io.Copy(s.conn, f)
		if n != int64(len(text)) {
			err = errors.Join(err, fmt.Errorf("%d bytes copied", n))
		}
		copied <- errors.Join(err, s.conn.Close())
	}()
	got, err := io.ReadAll(c.conn)
	if err != nil || string(got) != text {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if err := await(t, "the copy", copied); err != nil {
		t.Error(err)
	}
}
