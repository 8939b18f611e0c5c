//go:build linux

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ossl-go/ossl/ci/internal/load"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// patience bounds steps that take a moment; a measurement of the client takes longer.
const patience = 10 * time.Second

// A runner starts servers and clients.
type runner struct {
	client, nginx, librun string
	variants              []variant
	clients               int
	full, resumed         int // connections of a turn, at most
	turn                  time.Duration
	slack                 time.Duration // of the Go servers' timers in rows with it
	dir                   string
	servers               map[serverKey]*server
	names                 []string // of the servers' TLS libraries
	libssl                string   // the file that ossl and nginx use
}

// A variant is another build of this program.
type variant struct{ name, program string }

// A serverKey names a server: each has one key and one way of resumption.
type serverKey struct {
	stack string
	key   tlstest.KeyKind
	way   string
	slack bool
}

// server names a row's server. nginx has no slack.
func (r row) server(stack string) serverKey {
	return serverKey{stack, r.key, r.way, r.slack && stack != stackNginx}
}

// nameSize is the width of the table's column.
const nameSize = 12

func (r *runner) addVariant(name, program string) error {
	if len(name) > nameSize || slices.Contains([]string{stackGo, stackOSSL, stackNginx}, name) ||
		slices.ContainsFunc(r.variants, func(v variant) bool { return v.name == name }) {
		return fmt.Errorf("the name %q is taken, or longer than %d bytes", name, nameSize)
	}
	r.variants = append(r.variants, variant{name, program})
	return nil
}

// stacks returns the names of all servers, in the order of the table.
func (r *runner) stacks() []string {
	all := []string{stackGo, stackOSSL}
	for _, v := range r.variants {
		all = append(all, v.name)
	}
	if r.nginx != "" {
		all = append(all, stackNginx)
	}
	return all
}

// startAll starts the servers of rows.
func (r *runner) startAll(rows []row) error {
	r.servers = map[serverKey]*server{}
	if err := load.WriteCerts(r.dir, []tlstest.KeyKind{tlstest.RSA2048, tlstest.P256}); err != nil {
		return err
	}
	for _, row := range rows {
		for _, stack := range r.stacks() {
			k := row.server(stack)
			if !row.has(stack) || r.servers[k] != nil {
				continue
			}
			start := r.startGo
			if stack == stackNginx {
				start = r.startNginx
			}
			s, err := start(k)
			if err == nil {
				r.servers[k] = s
				err = r.note(stack, s)
			}
			if err != nil {
				return fmt.Errorf("%s, %s, by %s: %w", stack, row.key, row.way, err)
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
	return errors.Join(errs...)
}

// file returns the path of a certificate or key: ca.pem, P256.pem, P256.key.
func (r *runner) file(name string) string { return filepath.Join(r.dir, name) }

// note remembers a server's TLS library, and refuses a comparison of two libraries.
func (r *runner) note(stack string, s *server) error {
	if !slices.Contains(r.names, s.name) {
		r.names = append(r.names, s.name)
	}
	if stack == stackGo {
		return nil
	}
	pids := s.processes()
	file, err := load.Libssl(pids[len(pids)-1])
	if err != nil {
		return err
	}
	switch {
	case r.libssl == "":
		r.libssl = file
	case r.libssl != file:
		return fmt.Errorf("servers use different libraries: %s, %s", r.libssl, file)
	}
	return nil
}

// A server is a process with its children.
type server struct {
	cmd         *exec.Cmd
	stdin       io.Closer
	port        string
	requestPort string
	name        string
}

// command returns a server's command.
func (r *runner) command(program string, args ...string) *exec.Cmd {
	if r.librun != "" {
		return exec.Command(r.librun, append([]string{program}, args...)...)
	}
	return exec.Command(program, args...)
}

func (r *runner) startGo(k serverKey) (*server, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	stack := k.stack
	for _, v := range r.variants {
		if v.name == k.stack {
			stack, program = stackOSSL, v.program
		}
	}
	args := []string{"-serve", stack, "-way", k.way, "-cert", r.file(string(k.key) + ".pem"), "-key", r.file(string(k.key) + ".key")}
	cmd := r.command(program, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	slack := time.Duration(0) // the host's
	if k.slack {
		slack = r.slack
	}
	if err := startRelaxed(cmd, slack); err != nil {
		return nil, err
	}
	s := &server{cmd: cmd, stdin: stdin}
	lines := bufio.NewScanner(stdout) // ends with the process, if that can't serve
	lines.Scan()
	first, second, _ := strings.Cut(lines.Text(), " ")
	_, s.port, err = net.SplitHostPort(first)
	if err == nil {
		_, s.requestPort, err = net.SplitHostPort(second)
	}
	lines.Scan()
	s.name = lines.Text()
	if err != nil || s.name == "" {
		return nil, errors.Join(errors.New("the server did not start"), err, s.stop())
	}
	return s, nil
}

// startRelaxed starts a program with a timer slack, which it inherits from the thread that starts it:
// prctl(2), PR_SET_TIMERSLACK. The thread then has its own again: it can't end before the program,
// which Pdeathsig would end.
func startRelaxed(cmd *exec.Cmd, slack time.Duration) error {
	if slack == 0 {
		return cmd.Start()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	set := func(slack time.Duration) error {
		_, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_TIMERSLACK, uintptr(slack), 0)
		if errno != 0 {
			return fmt.Errorf("timer slack: %w", errno)
		}
		return nil
	}
	if err := set(slack); err != nil {
		return err
	}
	return errors.Join(cmd.Start(), set(0)) // 0 stands for the thread's own
}

// nginxConf makes nginx behave like the Go servers. It sends one ticket in TLS 1.3, as they do.
const nginxConf = `daemon off;
pid %[1]s/%[6]s.pid;
error_log %[1]s/nginx.log crit;
worker_processes 1;
%[2]s
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path %[1]s/nginx;
  proxy_temp_path %[1]s/nginx;
  fastcgi_temp_path %[1]s/nginx;
  uwsgi_temp_path %[1]s/nginx;
  scgi_temp_path %[1]s/nginx;
  server {
    listen 127.0.0.1:%[3]s ssl;
    ssl_certificate %[1]s/%[4]s.pem;
    ssl_certificate_key %[1]s/%[4]s.key;
    ssl_protocols TLSv1.2 TLSv1.3;
    ssl_conf_command NumTickets 1;
    %[5]s
    return 200 "%[7]s";
  }
}
`

func (r *runner) startNginx(k serverKey) (*server, error) {
	port, err := load.FreePort()
	if err != nil {
		return nil, err
	}
	sessions := "ssl_session_tickets on; ssl_session_cache off;"
	if k.way == byID {
		sessions = "ssl_session_tickets off; ssl_session_cache shared:sessions:10m;"
	}
	user := ""
	if os.Getuid() == 0 {
		user = "user root;" // who can read the folder
	}
	name := fmt.Sprintf("nginx-%s-%s", k.key, k.way)
	conf := r.file(name + ".conf")
	body := strings.Repeat("x", requestSize)
	if err := os.WriteFile(conf, fmt.Appendf(nil, nginxConf, r.dir, user, port, k.key, sessions, name, body), 0o600); err != nil {
		return nil, err
	}
	cmd := r.command(r.nginx, "-c", conf, "-e", r.file("nginx.log"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{cmd: cmd, port: port, requestPort: port, name: stackNginx + " on the same"}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err != nil {
			continue
		}
		conn.Close()
		if len(s.processes()) == 2 { // the master and its worker
			return s, nil
		}
	}
	err = s.stop()
	log, _ := os.ReadFile(r.file("nginx.log"))
	return nil, fmt.Errorf("nginx did not start: %w\n%s%s", err, said.String(), log)
}

func (s *server) processes() []string { return load.Processes(s.cmd.Process.Pid) }

// stop ends the server and waits for it.
func (s *server) stop() error {
	if s.stdin != nil {
		s.stdin.Close()
	} else if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	killer := time.AfterFunc(patience, func() { _ = s.cmd.Process.Kill() })
	defer killer.Stop()
	return s.cmd.Wait()
}
