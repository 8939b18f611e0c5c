//go:build linux

package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ossl-go/ossl/internal/freeport"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// patience bounds steps that take a moment.
const patience = 30 * time.Second

// backendRole is the role of the server behind the proxies.
const backendRole = "backend"

// A serverKey names a server.
type serverKey struct {
	stack, role string
	key         tlstest.KeyKind
	way         string // of resumption
	processors  int    // of scaled
}

// server names a row's server. nginx has no timer slack.
func (r row) server(stack string) serverKey {
	role := r.role
	if role == relaxed && stack == stackNginx {
		role = loaded
	}
	return serverKey{stack, role, r.key, r.way, r.processors}
}

// A server is a process with its children.
type server struct {
	cmd         *exec.Cmd
	port        string
	requestPort string        // of a bare server, for connections with a request
	log         string        // a file
	end         chan struct{} // closed when the process has exited
	others      []*server     // of stackProcesses, at the same ports
}

// A runner starts servers and clients.
type runner struct {
	programs      map[string]string // of stacks, and of clients
	variants      []string          // stacks that are other builds of this program
	librun        string
	clients       int
	full, resumed int // new connections of a turn, at most; 0 for no limit
	idle          int // clients
	turn          time.Duration
	slack         time.Duration // of the timers of relaxed servers
	processors    []int         // numbers of them, for scaled rows; none for other rows
	dir           string
	backend       *server
	servers       map[serverKey]*server
	numbers       map[turn]int // of h2load's requests
	libssl        string       // the file that the servers use
}

func (r *runner) file(name string) string { return filepath.Join(r.dir, name) }

// prepare writes certificates, files and the clients' configurations.
func (r *runner) prepare() error {
	if err := writeCerts(r.dir, []tlstest.KeyKind{tlstest.RSA2048, tlstest.P256}); err != nil {
		return err
	}
	if err := os.Mkdir(r.file("files"), 0o700); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"files/index.html": strings.Repeat("x", smallFile),
		"files/large.bin":  strings.Repeat("x", largeFile),
		"wrk.lua":          wrkScript,
		"openssl.cnf":      opensslConf,
	} {
		if err := os.WriteFile(r.file(name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// startAll starts the servers of rows, and the backend.
func (r *runner) startAll(rows []row) (err error) {
	r.servers = map[serverKey]*server{}
	if r.bare() {
		return r.startServers(rows)
	}
	if r.backend, err = r.start(serverKey{stack: stackNginx, role: backendRole}, 0); err != nil {
		return fmt.Errorf("the backend: %w", err)
	}
	return r.startServers(rows)
}

func (r *runner) startServers(rows []row) (err error) {
	for _, row := range rows {
		for _, stack := range r.stacks(row) {
			k := row.server(stack)
			if r.servers[k] != nil {
				continue
			}
			if r.servers[k], err = r.start(k, r.clients); err != nil {
				delete(r.servers, k)
				return fmt.Errorf("%s, %s: %w", stack, row.role, err)
			}
		}
	}
	return nil
}

func (r *runner) stopAll() error {
	var errs []error
	for _, s := range r.servers {
		errs = append(errs, s.stop())
	}
	if r.backend != nil {
		errs = append(errs, r.backend.stop())
	}
	return errors.Join(errs...)
}

// start starts a server for a number of clients at a time.
func (r *runner) start(k serverKey, clients int) (*server, error) {
	port, err := freeport.Take()
	if err != nil {
		return nil, err
	}
	requestPort := port
	if r.bare() && k.stack != stackNginx {
		if requestPort, err = freeport.Take(); err != nil {
			return nil, err
		}
	}
	return r.startAt(k, strconv.Itoa(port), strconv.Itoa(requestPort), clients, 0)
}

// startAt starts a server, or its further process of a number, at ports.
func (r *runner) startAt(k serverKey, port, requestPort string, clients, number int) (*server, error) {
	name := fmt.Sprintf("%s-%s-%s-%s-%d-%d", k.stack, k.role, k.key, k.way, k.processors, number)
	name = strings.NewReplacer(" ", "-", ",", "", "/", "").Replace(name)
	args, err := r.arguments(k, name, port, requestPort, clients+1000)
	if err != nil {
		return nil, err
	}
	program := r.programs[k.stack]
	if program == "" { // a bare server of this program
		if program, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	if r.librun != "" && k.role != backendRole {
		program, args = r.librun, append([]string{program}, args...)
	}
	program, args = k.pin(program, args)
	s := &server{cmd: exec.Command(program, args...), port: port, requestPort: requestPort, log: r.file(name + ".out"),
		end: make(chan struct{})}
	out, err := os.Create(s.log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	s.cmd.Stdout, s.cmd.Stderr = out, out
	s.cmd.Env = append(os.Environ(), k.environment()...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	slack := time.Duration(0) // the host's
	if k.role == relaxed {
		slack = r.slack
	}
	if err := startRelaxed(s.cmd, slack); err != nil {
		return nil, err
	}
	go func() {
		_ = s.cmd.Wait() // a status is of little use: some servers exit by the signal
		close(s.end)
	}()
	if k.stack == stackProcesses && number == 0 {
		for i := 1; i < k.processors; i++ {
			other, err := r.startAt(k, port, requestPort, clients, i)
			if err != nil {
				return nil, errors.Join(err, s.stop())
			}
			s.others = append(s.others, other)
		}
	}
	if err := s.awaitStart(k); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	if k.role == backendRole || k.stack == stackGo || k.stack == stackStd {
		return s, nil
	}
	if err := r.sameLibrary(s); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// arguments returns a server's command line, and writes the file that it names.
func (r *runner) arguments(k serverKey, name, port, requestPort string, connections int) (args []string, err error) {
	backend := ""
	if r.backend != nil {
		backend = r.backend.port
	}
	conf, text := r.file(name+".conf"), ""
	switch {
	case r.bare() && k.stack != stackNginx:
		stack, base := stackOSSL, r.file(string(k.key))
		if k.stack == stackStd {
			stack = stackStd
		}
		args = []string{"-serve", stack, "-way", k.way, "-cert", base + ".pem", "-key", base + ".key"}
		if k.stack == stackProcesses {
			args = append(args, "-shared")
		}
		return append(args, "-ports", port+","+requestPort), nil
	case k.stack == stackOSSL, k.stack == stackGo:
		return r.osslArguments(k, port, backend, connections), nil
	case k.stack == stackNginx:
		text = nginxConf(k, r.dir, name, port, cmp.Or(backend, "1"), connections)
		args = []string{"-c", conf, "-e", r.file(name + ".log")}
	case k.stack == stackStunnel:
		text = stunnelConf(k, r.dir, port, backend)
		args = []string{conf}
	case k.stack == stackHitch:
		if text, err = hitchConf(k, r.dir, port, backend); err != nil {
			return nil, err
		}
		args = []string{"--config=" + conf}
	}
	return args, os.WriteFile(conf, []byte(text), 0o600)
}

// osslArguments lifts the limits that no other server has.
func (r *runner) osslArguments(k serverKey, port, backend string, connections int) []string {
	command, what := "serve", []string{r.file("files")}
	switch k.role {
	case tcp:
		command, what = "proxy", []string{"--to", "127.0.0.1:" + backend}
	case reverse:
		command, what = "proxy", []string{"--to", "http://127.0.0.1:" + backend}
	}
	engine := "ossl"
	if k.stack == stackGo {
		engine = "go"
	}
	base := r.file(string(k.key))
	args := []string{command, "--engine", engine, "--listen", "127.0.0.1:" + port, "--cert", base + ".pem", "--key", base + ".key",
		"--connections", strconv.Itoa(connections), "--per-address", "0", "--address-rate", "0", "--log-level", "error",
		"--header-timeout", patientTime, "--idle-timeout", patientTime}
	return append(args, what...)
}

// awaitStart waits until the server serves, and all its processes are there. 'ossl serve' accepts
// connections before it has loaded OpenSSL, so it must have shaken hands.
func (s *server) awaitStart(k serverKey) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for ; ctx.Err() == nil; pause(ctx, 10*time.Millisecond) {
		select {
		case <-s.end:
			return fmt.Errorf("the server has ended: %s", s.said())
		default:
		}
		if k.stack == stackProcesses && !strings.HasSuffix(s.said(), listening) {
			continue // another process may be the one that answers
		}
		conn, err := net.Dial("tcp", "127.0.0.1:"+s.port)
		if err != nil {
			continue
		}
		if k.role != backendRole {
			_ = conn.SetDeadline(time.Now().Add(patience))
			err = tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(ctx)
		}
		_ = conn.Close()
		if err != nil {
			continue
		}
		if len(s.processes()) >= processesOf(k) {
			return nil
		}
	}
	return fmt.Errorf("the server did not start: %s", s.said())
}

// processesOf is the least number of a server's processes.
func processesOf(k serverKey) int {
	switch {
	case k.role == backendRole, k.role == loaded && k.stack == stackNginx:
		return 2
	case k.role == scaled && k.stack == stackNginx:
		return 1 + k.processors
	case k.stack == stackNginx, k.stack == stackHitch:
		return 1 + workers
	}
	return 1
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// sameLibrary refuses a comparison of two libraries.
func (r *runner) sameLibrary(s *server) error {
	pids := s.processes()
	file, err := libssl(pids[len(pids)-1])
	switch {
	case err != nil:
		return err
	case r.libssl == "":
		r.libssl = file
	case r.libssl != file:
		return fmt.Errorf("servers use different libraries: %s, %s", r.libssl, file)
	}
	return nil
}

func (s *server) processes() []string {
	pids := processes(s.cmd.Process.Pid)
	for _, other := range s.others {
		pids = append(pids, other.processes()...)
	}
	return pids
}

// said returns the last part of the server's output.
func (s *server) said() string {
	text, _ := os.ReadFile(s.log)
	return strings.TrimSpace(string(text[max(0, len(text)-2000):]))
}

// ended returns an error if the server has exited by itself.
func (s *server) ended() error {
	select {
	case <-s.end:
		return fmt.Errorf("the server has ended: %s", s.said())
	default:
		return nil
	}
}

// used returns the processor time of the server with its children.
func (s *server) used() (time.Duration, error) { return processorTime(s.processes()) }

// stop stops the server and waits for it.
func (s *server) stop() error {
	var errs []error
	for _, other := range s.others {
		errs = append(errs, other.stop())
	}
	return errors.Join(append(errs, s.stopFirst())...)
}

func (s *server) stopFirst() error {
	select {
	case <-s.end:
		return nil
	default:
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	killer := time.AfterFunc(patience, func() { _ = s.cmd.Process.Kill() })
	defer killer.Stop()
	<-s.end
	return nil
}
