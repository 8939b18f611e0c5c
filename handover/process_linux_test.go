//go:build cgo || ossl_nocgo

package handover_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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

// A server echoes, and replaces itself at SIGUSR2. It reports by lines on its standard output,
// which its successors share.
type server struct {
	handover.Server
	listeners []net.Listener

	mu     sync.Mutex
	pauses []time.Duration
}

func runServer(dir string) error {
	cert, err := tls.LoadX509KeyPair(dir+"/server.crt", dir+"/server.key")
	if err != nil {
		return err
	}
	s := new(server)
	s.Serve = s.echo
	if s.Context, err = ossl.NewContext(&tls.Config{Certificates: []tls.Certificate{cert}}); err != nil {
		return err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR2)
	fmt.Printf("started %d\n", os.Getpid())
	ctx, cancel := context.WithTimeout(context.Background(), tlstest.Patience)
	defer cancel()
	if s.listeners, err = s.Inherit(ctx); s.listeners == nil && err == nil {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		s.listeners = []net.Listener{l}
		go s.Accept(l)
		fmt.Printf("listening %d %s\n", os.Getpid(), l.Addr())
	} else {
		s.report(err)
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

// echo sends back all that it reads. The first 8 bytes of the data are the time at which the old
// process stopped.
func (s *server) echo(conn *ossl.Conn, data []byte) []byte {
	if len(data) > 0 {
		stopped := time.Unix(0, int64(binary.BigEndian.Uint64(data)))
		data = data[8:]
		s.mu.Lock()
		s.pauses = append(s.pauses, time.Since(stopped))
		s.mu.Unlock()
	}
	err := func() error {
		buf := make([]byte, 5000)
		for {
			for len(data) > 0 {
				n, err := conn.Write(data)
				data = data[n:]
				if err != nil {
					return err
				}
			}
			n, err := conn.Read(buf)
			data = buf[:n]
			if err != nil && n == 0 {
				return err
			}
		}
	}()
	if !errors.Is(err, ossl.ErrDetached) {
		return nil
	}
	return append(binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixNano())), data...)
}

// report prints how the hand-over to this process went, with the error.
func (s *server) report(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.pauses)
	fmt.Printf("took %d %v\n", os.Getpid(), err)
	if n := len(s.pauses); n > 0 {
		fmt.Printf("pauses %v %v %v\n", s.pauses[n/2], s.pauses[n*99/100], s.pauses[n-1])
	}
}

// replace gives everything to a successor. It returns false if that failed.
func (s *server) replace() bool {
	self := tlstest.Self()
	cmd := exec.Command(self[0], self[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	ctx, cancel := context.WithTimeout(context.Background(), tlstest.Patience)
	defer cancel()
	counts, err := s.Replace(ctx, cmd, s.listeners...)
	fmt.Printf("left %d %d %d %d %v\n", os.Getpid(), counts.Connections, counts.Stayed, counts.Lost, err)
	return err == nil && s.Wait(ctx) == nil
}

// A fleet is a server with its successors.
type fleet struct {
	t    *testing.T
	addr string
	ca   string // a file

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
	ca := tlstest.WriteFiles(t).CA
	cmd.Env = append(os.Environ(), envServer+"="+filepath.Dir(ca))
	pr, pw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = pw, pw
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pw.Close()
	f := &fleet{t: t, ca: ca, pids: []int{cmd.Process.Pid}, update: make(chan struct{}), ended: make(chan struct{})}
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
			if _, err := fmt.Sscanf(line, "started %d", &pid); err == nil && !slices.Contains(f.pids, pid) {
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

// isOurs reports whether a process belongs to a fleet. The number of one that has gone may be
// another's now.
func isOurs(pid int) bool {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && bytes.Contains(env, []byte(envServer+"="))
}
