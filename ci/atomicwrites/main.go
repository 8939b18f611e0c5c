//go:build linux && amd64

// Command atomicwrites counts a TLS server's atomic writes to memory that its connections share. It is for ci/atomics.
//
//	atomicwrites KEEP RUN…     KEEP: the library made of keep.c. RUN: starts a program under an OpenSSL, as env does
//
// It prints a line for each OpenSSL, number of shards and operation: OpenSSL's writes to its hottest cache line, and ossl's own,
// in Go and C, to all words. It sets a breakpoint (ptrace(2)) on every atomic instruction in OpenSSL, the C library and ossl, but
// not in Go's runtime and net. Nothing is timed, so a count doesn't depend on the machine.
//
// Each operation is repeated in several shards. Memory that all repetitions write to is shared, because keep.c and GOGC=off
// prevent memory from being reused. A handshake is counted from accept to close, with an echo of one byte. A record is an echo
// of 100 bytes and one of 16 KB, on a different connection each time.
package main

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

const (
	times  = 6 // repetitions of an operation
	warmUp = 2 // uncounted rounds. With more, the record would include the report of bytes that a connection makes every 64 KB
)

func main() {
	switch {
	case len(os.Args) == 2 && os.Args[1] == "serve":
		serve()
	case len(os.Args) < 3:
		fmt.Fprintln(os.Stderr, "usage: atomicwrites KEEP RUN…")
		os.Exit(2)
	default:
		for _, run := range os.Args[2:] {
			count(os.Args[1], run, 1)
			count(os.Args[1], run, 32)
		}
	}
}

// check exits if err is not nil, with status 3 if this machine doesn't allow ptrace. The server exits then too.
func check(err error) {
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "atomicwrites:", err)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOSYS) {
		os.Exit(3)
	}
	os.Exit(1)
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

// serve runs a server, which prints its address and OpenSSL's version, and then a line for each connection that it has closed. It
// reads the next connection's shard from its input, and acknowledges it with a line.
func serve() {
	ctx := must(ossl.NewContext(tlstest.ServerConfig(func(c *tls.Config) {
		c.SessionTicketsDisabled, c.CurvePreferences = false, nil
	})))
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	fmt.Println(listener.Addr(), strings.Join(strings.Split(must(ossl.Library()).Version, ".")[:2], "."))
	go func() {
		for {
			raw := must(listener.Accept())
			go func() {
				conn := ctx.Server(raw)
				buf := make([]byte, 1<<14)
				for {
					n, err := conn.Read(buf)
					if err != nil {
						break
					}
					_ = must(conn.Write(buf[:n]))
				}
				conn.Close()
				_, _ = os.Stdout.WriteString("closed\n")
			}()
		}
	}()
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		libssl.PinShard(must(strconv.Atoi(input.Text())))
		_, _ = os.Stdout.WriteString("pinned\n")
	}
}

// A server is a process whose writes are counted.
type server struct {
	input   io.Writer
	output  *bufio.Reader
	address string
}

// count starts a server and prints the counts of its operations.
func count(keep, run string, shards int) {
	self := must(os.Executable())
	cmd := exec.Command(run, self, "serve")
	cmd.Env = append(os.Environ(), "LD_PRELOAD="+keep, "GOMAXPROCS=2", "GOGC=off", "GODEBUG=asyncpreemptoff=1",
		fmt.Sprint("OSSL_SHARDS=", shards))
	cmd.Stderr = os.Stderr
	s := server{input: must(cmd.StdinPipe()), output: bufio.NewReader(must(cmd.StdoutPipe()))}
	check(cmd.Start())
	defer syscall.Kill(cmd.Process.Pid, syscall.SIGKILL)
	var version string
	_ = must(fmt.Fscanln(s.output, &s.address, &version))

	full, resumed := clientConfig(), clientConfig()
	resumed.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	s.visit(0, resumed, false)
	var conns [times]*tls.Conn
	for i := range conns {
		conns[i] = s.connect(i, full)
	}
	operations := []struct {
		name string
		do   func(i int)
	}{
		{"full", func(i int) { s.visit(i, full, false) }},
		{"resumed", func(i int) { s.visit(i, resumed, true) }},
		{"record", func(i int) { echo(conns[i], 100); echo(conns[i], 1<<14) }},
	}
	for range warmUp {
		for _, operation := range operations {
			for i := range times {
				operation.do(i)
			}
		}
	}
	t := &tracer{pid: cmd.Process.Pid, lines: map[uint64]*[times]int{}, words: map[uint64]*[times]int{}}
	ready := make(chan error)
	go t.run(self, ready)
	check(<-ready)
	for _, operation := range operations {
		for i := range times {
			t.now.Store(int64(i + 1))
			operation.do(i)
			t.now.Store(0)
		}
		hottest, ours := t.shared()
		fmt.Println(version, operation.name, shards, hottest, ours)
	}
}

func clientConfig() *tls.Config {
	return tlstest.ClientConfig(func(c *tls.Config) {
		c.InsecureSkipVerify, c.MinVersion, c.CurvePreferences = true, tls.VersionTLS13, nil
	})
}

// connect makes a connection in a shard.
func (s *server) connect(shard int, config *tls.Config) *tls.Conn {
	fmt.Fprintln(s.input, shard)
	s.wait("pinned")
	conn := must(tls.Dial("tcp", s.address, config))
	echo(conn, 1) // the tickets arrive before the answer
	return conn
}

// visit makes a connection and waits until the server has closed it.
func (s *server) visit(shard int, config *tls.Config, resumed bool) {
	conn := s.connect(shard, config)
	if conn.ConnectionState().DidResume != resumed {
		check(fmt.Errorf("resumed: %v", !resumed))
	}
	check(conn.Close())
	s.wait("closed")
}

func (s *server) wait(word string) {
	if line := must(s.output.ReadString('\n')); line != word+"\n" {
		check(fmt.Errorf("the server wrote %q", line))
	}
}

func echo(conn net.Conn, size int) {
	buf := make([]byte, size)
	_ = must(conn.Write(buf))
	_ = must(io.ReadFull(conn, buf))
}

// median returns the median of the repetitions, so that a lock contended once doesn't matter. It returns 0 if any repetition
// lacks a write, because the memory is not shared then.
func median(n [times]int) int {
	slices.Sort(n[:])
	if n[0] == 0 {
		return 0
	}
	return n[times/2]
}
