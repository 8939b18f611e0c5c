package bench

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// IdleConnections is the number of idle connections of a server for IdleMemory.
const IdleConnections = 10_000

// Memory is a server's memory in use, or a connection's share of it.
type Memory struct {
	GoHeap  float64 // live objects after a garbage collection
	GoStack float64 // stacks of goroutines
	C       float64 // malloc's blocks in use, including the library's
	RSS     float64 // resident pages of all owners
}

// IdleMemory returns the memory of an idle connection, out of n, of a server of implementation impl;
// records is the record path if that is OSSL ("" is its default). An idle connection has completed
// its handshake and answered one request, and a goroutine waits in Read for the next, as in most Go
// servers.
//
// The server runs in a process of its own, started from this program's executable, so that only the
// server is measured and its heap holds no remains of earlier measurements. A program that calls
// IdleMemory must call [ServeIdle] first in main. The clients, which use crypto/tls, are in this
// process. The connections are Unix sockets: TCP would need more ports than there are.
//
// IdleMemory fails on other systems than Linux.
func IdleMemory(impl Impl, records string, n int) (m Memory, err error) {
	// Room for the connections and for the files that a process has open anyway.
	if err := raiseFileLimit(uint64(n) + 100); err != nil {
		return m, err
	}
	server, err := startIdleServer(impl, records, n)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, server.stop()) }()

	// The first connections allocate the memory that is allocated once, and close.
	const first = 20
	conns, err := server.connect(first)
	closeAll(conns)
	if err != nil {
		return m, err
	}
	before, err := server.measure(0)
	if err != nil {
		return m, err
	}
	conns, err = server.connect(n)
	defer func() {
		closeAll(conns)
		conns = nil
		debug.FreeOSMemory()
	}()
	if err != nil {
		return m, err
	}
	after, err := server.measure(n)
	if err != nil {
		return m, err
	}
	return Memory{
		GoHeap:  (after.GoHeap - before.GoHeap) / float64(n),
		GoStack: (after.GoStack - before.GoStack) / float64(n),
		C:       (after.C - before.C) / float64(n),
		RSS:     (after.RSS - before.RSS) / float64(n),
	}, nil
}

func closeAll(conns []*tls.Conn) {
	for _, c := range conns {
		c.NetConn().Close() // without close_notify, which has no use here and takes time
	}
}

// An idleServer is the process with the server.
type idleServer struct {
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	answers *bufio.Reader
	dir     string
}

// Environment variables that make a process an idleServer.
const (
	idleImplEnv   = "OSSL_BENCH_IDLE_IMPL"
	idleSocketEnv = "OSSL_BENCH_IDLE_SOCKET"
	idleLimitEnv  = "OSSL_BENCH_IDLE_CONNECTIONS"

	idleRecordsEnv = "OSSL_BENCH_IDLE_RECORDS"
)

func startIdleServer(impl Impl, records string, n int) (_ *idleServer, err error) {
	dir, err := os.MkdirTemp("", "ossl-bench-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(dir)
		}
	}()
	argv, err := selfCommand()
	if err != nil {
		return nil, err
	}
	s := &idleServer{cmd: exec.Command(argv[0], argv[1:]...), dir: dir}
	s.cmd.Env = append(os.Environ(),
		idleImplEnv+"="+string(impl), idleSocketEnv+"="+s.socket(), idleLimitEnv+"="+strconv.Itoa(n),
		idleRecordsEnv+"="+records)
	s.cmd.Stderr = os.Stderr
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.answers = bufio.NewReader(stdout)
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := s.answers.ReadString('\n'); err != nil { // now it listens
		s.stdin.Close()
		return nil, errors.Join(errors.New("bench: the server with idle connections did not start"), s.cmd.Wait())
	}
	return s, nil
}

// selfCommand returns the command that starts this program again, without arguments. If the program
// was started by a dynamic loader ("ld.so --library-path DIR PROGRAM"), to use other libraries than
// the system's, so is the new one.
func selfCommand() ([]string, error) {
	started, err := os.ReadFile("/proc/self/cmdline")
	if err != nil {
		return nil, err
	}
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	program, err := exec.LookPath(os.Args[0])
	if err != nil {
		return nil, err
	}
	if real, err := filepath.EvalSymlinks(program); err == nil && real == exe {
		return []string{exe}, nil
	}
	argv := strings.Split(string(started), "\x00")
	i := slices.Index(argv, os.Args[0])
	if i < 1 {
		return []string{exe}, nil
	}
	argv[0] = exe
	return argv[:i+1], nil
}

func (s *idleServer) socket() string { return filepath.Join(s.dir, "socket") }

// connect makes n connections, a few at a time, with one request each.
func (s *idleServer) connect(n int) ([]*tls.Conn, error) {
	// Only the server process has its authority's certificate.
	config := &tls.Config{InsecureSkipVerify: true, CurvePreferences: []tls.CurveID{tls.X25519}}
	var (
		wg    sync.WaitGroup
		made  atomic.Int64
		conns = make([]*tls.Conn, n)
		errs  = make([]error, runtime.GOMAXPROCS(0))
	)
	for worker := range errs {
		wg.Go(func() {
			reply := make([]byte, len(pong))
			for i := int(made.Add(1)) - 1; i < n; i = int(made.Add(1)) - 1 {
				raw, err := net.Dial("unix", s.socket())
				if err != nil {
					errs[worker] = err
					return
				}
				conns[i] = tls.Client(raw, config)
				if err := ask(conns[i], reply); err != nil {
					errs[worker] = err
					return
				}
			}
		})
	}
	wg.Wait()
	return slices.DeleteFunc(conns, func(c *tls.Conn) bool { return c == nil }), errors.Join(errs...)
}

// measure asks for the server's memory in use as soon as it has n connections.
func (s *idleServer) measure(n int) (m Memory, err error) {
	if _, err := fmt.Fprintln(s.stdin, n); err != nil {
		return m, err
	}
	line, err := s.answers.ReadBytes('\n')
	if err != nil {
		return m, fmt.Errorf("bench: the server with idle connections went away: %w", err)
	}
	return m, json.Unmarshal(line, &m)
}

func (s *idleServer) stop() error {
	s.stdin.Close() // the server exits at the end of its input
	return errors.Join(s.cmd.Wait(), os.RemoveAll(s.dir))
}
