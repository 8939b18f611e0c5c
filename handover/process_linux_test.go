//go:build cgo || ossl_nocgo

package handover_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/handover"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// envServer names the variable that makes the test program a server. Its value is the folder with the
// server's certificate.
const envServer = "OSSL_TEST_HANDOVER"

// TestMain leaves out the tests that FIPS mode refuses.
func TestMain(m *testing.M) {
	if dir := os.Getenv(envServer); dir != "" {
		if err := runServer(dir); err != nil {
			fmt.Printf("failed %d %v\n", os.Getpid(), err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	ossltest.Main(m, []ossltest.Exception{
		{Tests: "TestUpgrades|TestKill|TestSend.*|TestInterop.*", Reason: "keys don't leave the module"},
	})
}

// A server echoes, and replaces itself at SIGUSR2. It reports by lines on its standard output, which its
// successors share.
type server struct {
	dir    string
	ctx    *ossl.Context
	shakes sync.WaitGroup // handshakes under way

	mu       sync.Mutex
	listener *net.TCPListener
	clients  map[*client]bool // that are established
	idle     *sync.Cond       // there are no clients
	pauses   []time.Duration
	accepts  chan struct{} // closed when acceptAll has returned
}

// A client is a connection of a server.
type client struct {
	conn   *ossl.Conn
	unsent []byte        // that was read, and not written
	done   chan struct{} // closed when serve has returned
}

func runServer(dir string) error {
	cert, err := tls.LoadX509KeyPair(dir+"/server.crt", dir+"/server.key")
	if err != nil {
		return err
	}
	s := &server{dir: dir, clients: make(map[*client]bool)}
	s.idle = sync.NewCond(&s.mu)
	if s.ctx, err = ossl.NewContext(&tls.Config{Certificates: []tls.Certificate{cert}}); err != nil {
		return err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR2)
	socket, err := handover.Inherited()
	if err != nil {
		return err
	}
	if socket == nil {
		if s.listener, err = net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}); err != nil {
			return err
		}
		s.acceptAll()
		fmt.Printf("listening %d %s\n", os.Getpid(), s.listener.Addr())
	} else if err := s.receive(socket); err != nil {
		return err
	}
	for {
		select {
		case <-signals:
			if s.replace() {
				return nil
			}
		case <-time.After(10 * tlstest.Patience): // the test has died
			return errors.New("nothing happens")
		}
	}
}

// acceptAll accepts connections until the listener's deadline passes.
func (s *server) acceptAll() {
	accepts := make(chan struct{})
	s.accepts = accepts
	go func() {
		defer close(accepts)
		for {
			conn, err := s.listener.Accept()
			if err != nil {
				return
			}
			s.shakes.Go(func() {
				c := s.ctx.Server(conn)
				if err := c.Handshake(); err != nil {
					conn.Close()
					return
				}
				s.start(c, nil)
			})
		}
	}()
}

// start serves a connection, beginning with bytes that it hasn't answered before.
func (s *server) start(conn *ossl.Conn, unsent []byte) {
	c := &client{conn: conn, unsent: unsent, done: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients[c] = true
	go func() {
		defer close(c.done)
		if err := c.serve(); !errors.Is(err, ossl.ErrDetached) {
			c.conn.Close()
			s.forget(c)
		}
	}()
}

func (s *server) forget(c *client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, c)
	s.idle.Broadcast()
}

func (c *client) serve() error {
	buf := make([]byte, 5000)
	for {
		for len(c.unsent) > 0 {
			n, err := c.conn.Write(c.unsent)
			c.unsent = c.unsent[n:]
			if err != nil {
				return err
			}
		}
		n, err := c.conn.Read(buf)
		c.unsent = buf[:n]
		if err != nil && n == 0 {
			return err
		}
	}
}

// receive takes the old process's connections.
func (s *server) receive(socket *net.UnixConn) error {
	ctx, cancel := context.WithTimeout(context.Background(), tlstest.Patience)
	defer cancel()
	r, err := handover.NewReceiver(ctx, socket)
	if err != nil {
		return err
	}
	defer r.Close()
	var attaching sync.WaitGroup
	var attached atomic.Int64
	for {
		item, err := r.Receive(ctx)
		if err != nil {
			attaching.Wait()
			s.mu.Lock()
			slices.Sort(s.pauses)
			fmt.Printf("took %d %d %v\n", os.Getpid(), attached.Load(), err == io.EOF)
			if n := len(s.pauses); n > 0 {
				fmt.Printf("pauses %v %v %v\n", s.pauses[n/2], s.pauses[n*99/100], s.pauses[n-1])
			}
			s.mu.Unlock()
			return nil
		}
		if item.Listener != nil {
			s.listener = item.Listener.(*net.TCPListener)
			s.acceptAll()
			continue
		}
		attaching.Go(func() {
			conn, err := item.Attach(s.ctx)
			if err != nil {
				fmt.Printf("failed %d Attach: %v\n", os.Getpid(), err)
				return
			}
			stopped := time.Unix(0, int64(binary.BigEndian.Uint64(item.Data)))
			s.start(conn, item.Data[8:])
			attached.Add(1)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.pauses = append(s.pauses, time.Since(stopped))
		})
	}
}

// replace starts a successor, and gives it all connections. It returns false if the successor died.
func (s *server) replace() bool {
	self := tlstest.Self()
	cmd := exec.Command(self[0], self[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	socket, err := handover.Start(cmd)
	if err != nil {
		fmt.Printf("failed %d %v\n", os.Getpid(), err)
		return false
	}
	fmt.Printf("started %d\n", cmd.Process.Pid)
	go cmd.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), tlstest.Patience)
	defer cancel()
	sender, err := handover.NewSender(ctx, socket)
	if err != nil {
		fmt.Printf("stayed %d %v\n", os.Getpid(), err)
		return false
	}
	if s.listener != nil {
		if err := sender.SendListener(ctx, s.listener, nil); err == nil {
			s.listener.SetDeadline(time.Unix(1, 0))
			<-s.accepts
			s.listener.SetDeadline(time.Time{})
		}
	}
	s.shakes.Wait()
	s.mu.Lock()
	var wg sync.WaitGroup
	for c := range s.clients {
		wg.Go(func() {
			err := sender.SendFunc(ctx, c.conn, func() []byte {
				<-c.done
				return append(binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixNano())), c.unsent...)
			})
			if err == nil || errors.Is(err, handover.ErrLost) {
				s.forget(c)
			} else if errors.Is(err, net.ErrClosed) || ctx.Err() != nil {
				<-c.done
			}
		})
	}
	s.mu.Unlock()
	wg.Wait()
	counts, err := sender.Counts(), sender.Close()
	fmt.Printf("left %d %d %d %d %v\n", os.Getpid(), counts.Connections, counts.Stayed, counts.Lost, err)
	if err != nil {
		if s.listener != nil {
			s.acceptAll()
		}
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.clients) > 0 {
		s.idle.Wait()
	}
	return true
}

// A fleet is a server with its successors.
type fleet struct {
	t    *testing.T
	addr string

	mu     sync.Mutex
	lines  []string
	pids   []int
	update chan struct{} // closed and replaced at each line
	ended  chan struct{} // closed when no process is left
}

// startFleet starts a server. All its processes are killed at the end of the test.
func startFleet(t *testing.T) *fleet {
	t.Helper()
	if ossltest.RecordsByLibssl() {
		t.Skip("OSSL_RECORDS=libssl: libssl has the records")
	}
	self := tlstest.Self()
	cmd := exec.Command(self[0], self[1:]...)
	cmd.Env = append(os.Environ(), envServer+"="+filepathDir(tlstest.WriteFiles(t).CA))
	pr, pw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = pw, pw
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pw.Close()
	f := &fleet{t: t, pids: []int{cmd.Process.Pid}, update: make(chan struct{}), ended: make(chan struct{})}
	go f.read(pr)
	t.Cleanup(func() {
		f.killAll()
		cmd.Wait()
		if t.Failed() {
			t.Log(strings.Join(f.lines, "\n"))
		}
	})
	f.addr = f.await("listening", 1)[2]
	return f
}

func filepathDir(path string) string { return path[:strings.LastIndexByte(path, '/')] }

// read notes the lines of the processes' output.
func (f *fleet) read(from *os.File) {
	defer from.Close()
	var rest []byte
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		rest = append(rest, buf[:n]...)
		f.mu.Lock()
		for i := bytes.IndexByte(rest, '\n'); i >= 0; i = bytes.IndexByte(rest, '\n') {
			line := string(rest[:i])
			rest = rest[i+1:]
			f.lines = append(f.lines, line)
			var pid int
			if _, err := fmt.Sscanf(line, "started %d", &pid); err == nil {
				f.pids = append(f.pids, pid)
			}
		}
		close(f.update)
		f.update = make(chan struct{})
		f.mu.Unlock()
		if err != nil {
			close(f.ended)
			return
		}
	}
}

// find returns the words of the n-th line that begins with a word, or nil.
func (f *fleet) find(word string, n int) []string {
	for _, line := range f.lines {
		if words := strings.Fields(line); len(words) > 0 && words[0] == word {
			if n--; n == 0 {
				return words
			}
		}
	}
	return nil
}

// await waits for the n-th line that begins with a word, and returns its words.
func (f *fleet) await(word string, n int) []string {
	f.t.Helper()
	timeout := time.After(tlstest.Patience)
	for {
		f.mu.Lock()
		words, update := f.find(word, n), f.update
		f.mu.Unlock()
		if words != nil {
			return words
		}
		select {
		case <-update:
		case <-f.ended:
			f.t.Fatalf("all processes have ended, without line %d of %q", n, word)
		case <-timeout:
			f.t.Fatalf("no line %d of %q", n, word)
		}
	}
}

// all returns the processes' numbers, oldest first.
func (f *fleet) all() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.pids)
}

// killAll kills all processes, and waits until none is left.
func (f *fleet) killAll() {
	for {
		for _, pid := range f.all() {
			if isOurs(pid) {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		select {
		case <-f.ended:
			return
		case <-time.After(10 * time.Millisecond): // one may have been started in between
		}
	}
}

// isOurs reports whether a process belongs to a fleet. The number of one that has gone may be another's now.
func isOurs(pid int) bool {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && bytes.Contains(env, []byte(envServer+"="))
}
