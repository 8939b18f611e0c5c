//go:build linux

// Restarts compares what long-lived connections through proxies meet at restarts: it restarts ossl proxy,
// nginx, HAProxy and hitch many times under MQTT and WebSocket clients, and prints how many of the
// connections were lost, how many processes are left, and their memory. It fails if ossl proxy loses one, or
// if a former process of ossl stays.
//
//	restarts -ossl FILE -nginx FILE -haproxy FILE -hitch FILE -mosquitto FILE [-clients 100] [-restarts 20]
package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/localca"
	"github.com/ossl-go/ossl/internal/freeport"
)

// patience bounds steps that take a moment.
const patience = time.Minute

// settle is the time that a server has after a restart, until its clients must have exchanged something.
const settle = 300 * time.Millisecond

func main() {
	programs := map[string]*string{}
	for _, name := range []string{"ossl", "nginx", "haproxy", "hitch", "mosquitto"} {
		programs[name] = flag.String(name, "", "the `file` of the program")
	}
	clients := flag.Int("clients", 200, "the `number` of connections in all")
	restarts := flag.Int("restarts", 20, "the `number` of restarts")
	flag.Parse()
	dir, err := os.MkdirTemp("", "restarts")
	if err == nil {
		r := &runner{programs: programs, dir: dir, clients: *clients, restarts: *restarts}
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
		go func() {
			<-signals
			if p := r.current.Load(); p != nil {
				p.stop()
			}
			os.RemoveAll(dir)
			os.Exit(1)
		}()
		err = r.run()
		os.RemoveAll(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "restarts:", err)
		os.Exit(1)
	}
}

type runner struct {
	programs          map[string]*string
	dir               string
	clients, restarts int
	roots             *x509.CertPool
	current           atomic.Pointer[proxy] // that runs, or nil
}

// A stack is a proxy for a load.
type stack struct {
	name   string // of the program
	signal syscall.Signal
	args   func(port, backend int) []string
	config func(port, backend int) string // of the file conf, or nil
}

func (r *runner) run() error {
	authority, err := localca.Open(filepath.Join(r.dir, "ca"), "")
	if err != nil {
		return err
	}
	r.roots = x509.NewCertPool()
	r.roots.AddCert(authority.Certificate)
	issued, err := authority.Issue(localca.Request{Names: []string{"localhost"}, Lifetime: time.Hour}, r.dir)
	if err != nil {
		return err
	}
	pair := ""
	for _, name := range []string{issued.CertificateFile, issued.KeyFile} {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		pair += string(text)
	}
	if err := os.WriteFile(filepath.Join(r.dir, "pair.pem"), []byte(pair), 0o600); err != nil {
		return err
	}
	echo, err := listenWebSocket()
	if err != nil {
		return err
	}
	defer echo.Close()
	broker, err := freeport.Take()
	if err != nil {
		return err
	}
	stopBroker, err := r.startBroker(broker)
	if err != nil {
		return err
	}
	defer stopBroker()
	fmt.Printf("%d restarts; as many connections are made before the first one and after each\n\n", r.restarts)
	fmt.Println("| load | proxy | connections | lost | processes at first | at last | RSS, MB, at first | at last | " +
		"PSS, MB, at first | at last | a connection's longest exchange, ms: median | worst |")
	fmt.Println("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
	var failed error
	for _, load := range []struct {
		name    string
		backend int
		stacks  []stack
		dial    dialFunc
	}{
		{"MQTT, mosquitto behind", broker, r.stacks(false), dialMQTT},
		{"WebSocket", echo.Addr().(*net.TCPAddr).Port, r.stacks(true), dialWebSocket},
	} {
		for _, s := range load.stacks {
			err := r.measure(load.name, load.backend, s, load.dial)
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s, %s: %w", load.name, s.name, err))
			}
		}
	}
	return failed
}

// startBroker starts mosquitto.
func (r *runner) startBroker(port int) (stop func(), err error) {
	conf := r.file("mosquitto.conf")
	text := fmt.Sprintf("listener %d 127.0.0.1\nallow_anonymous true\npersistence false\nlog_type error\n", port)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(*r.programs["mosquitto"], "-c", conf)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	if err := await(func() (net.Conn, error) { return net.Dial("tcp", loopback(port)) }); err != nil {
		stop()
		return nil, fmt.Errorf("mosquitto: %w", err)
	}
	return stop, nil
}

func (r *runner) file(name string) string { return filepath.Join(r.dir, name) }

// stacks returns the proxies for connections of TCP, or of HTTP.
func (r *runner) stacks(http bool) []stack {
	conf, pair := r.file("conf"), r.file("pair.pem")
	cert, key := r.file("localhost.pem"), r.file("localhost-key.pem")
	user := ""
	if os.Getuid() == 0 {
		user = "user root;" // other users can't read the folder
	}
	all := []stack{
		{"ossl", syscall.SIGUSR2, func(port, backend int) []string {
			to := loopback(backend)
			if http {
				to = "http://" + to
			}
			return []string{"proxy", "--cert", cert, "--key", key, "--listen", loopback(port),
				"--to", to, "--address-rate", "0", "--per-address", "0", "--address-requests", "100000", "--landlock", "off"}
		}, nil},
		{"nginx", syscall.SIGHUP, func(int, int) []string { return []string{"-c", conf, "-p", r.dir, "-e", "stderr"} },
			func(port, backend int) string {
				tls := fmt.Sprintf("listen 127.0.0.1:%d ssl; ssl_certificate %s; ssl_certificate_key %s;", port, cert, key)
				head := fmt.Sprintf("daemon off; pid %s; error_log stderr error; worker_processes 2; %s\n"+
					"events { worker_connections 4096; }", r.file("nginx.pid"), user)
				if !http {
					return fmt.Sprintf("load_module /usr/lib/nginx/modules/ngx_stream_module.so; %s\n"+
						"stream { server { %s proxy_pass 127.0.0.1:%d; } }", head, tls, backend)
				}
				return fmt.Sprintf("%s\nhttp { access_log off; server { %s location / { proxy_pass http://127.0.0.1:%d; "+
					"proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; "+
					"proxy_read_timeout 300s; } } }", head, tls, backend)
			}},
		{"haproxy", syscall.SIGUSR2, func(int, int) []string { return []string{"-W", "-db", "-f", conf} },
			func(port, backend int) string {
				mode := "tcp"
				if http {
					mode = "http"
				}
				return fmt.Sprintf("global\n maxconn 4096\ndefaults\n mode %s\n timeout connect 5s\n timeout client 300s\n"+
					" timeout server 300s\n timeout tunnel 300s\n"+
					"listen l\n bind 127.0.0.1:%d ssl crt %s\n server s 127.0.0.1:%d\n", mode, port, pair, backend)
			}},
	}
	if !http {
		all = append(all, stack{"hitch", syscall.SIGHUP, func(int, int) []string { return []string{"--config=" + conf} },
			func(port, backend int) string {
				user := ""
				if os.Getuid() == 0 {
					user = "user = \"root\"\n"
				}
				return fmt.Sprintf("frontend = \"[127.0.0.1]:%d\"\nbackend = \"[127.0.0.1]:%d\"\npem-file = %q\n"+
					"workers = 2\n%sdaemon = off\n", port, backend, pair, user)
			}})
	}
	return all
}

// A client is a connection that says something and hears the answer.
type client interface{ exchange(n int) error }

// measure prints the row of a proxy.
func (r *runner) measure(name string, backend int, s stack, dial dialFunc) error {
	port, err := freeport.Take()
	if err != nil {
		return err
	}
	if s.config != nil {
		if err := os.WriteFile(r.file("conf"), []byte(s.config(port, backend)), 0o600); err != nil {
			return err
		}
	}
	p, err := r.start(s, s.args(port, backend))
	if err != nil {
		return err
	}
	r.current.Store(p)
	defer p.stop()
	if err := await(func() (net.Conn, error) {
		return tls.Dial("tcp", loopback(port), &tls.Config{RootCAs: r.roots, ServerName: "localhost"})
	}); err != nil {
		return p.explain(err)
	}
	load := &load{dial: dial, roots: r.roots, name: name + ", " + s.name, port: port, stop: make(chan struct{})}
	defer load.close()
	each := max(1, r.clients/(r.restarts+1))
	if err := load.more(each); err != nil {
		return p.explain(err)
	}
	before := p.processes()
	for range r.restarts {
		if err := p.restart(s.signal); err != nil {
			return err
		}
		time.Sleep(settle)
		if err := load.more(each); err != nil {
			return p.explain(err)
		}
	}
	after := p.processes()
	close(load.stop)
	load.clients.Wait()
	lost := load.lost.Load()
	var worst []time.Duration
	for _, c := range load.all {
		worst = append(worst, c.worst)
	}
	slices.Sort(worst)
	ms := func(d time.Duration) float64 { return d.Seconds() * 1000 }
	fmt.Printf("| %s | %s | %d | %d | %d | %d | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f |\n", name, s.name, len(load.all), lost,
		before.number, after.number, before.rss, after.rss, before.pss, after.pss,
		ms(worst[len(worst)/2]), ms(worst[len(worst)-1]))
	switch {
	case s.name != "ossl":
		return nil
	case lost > 0:
		return p.explain(errors.New("connections were lost"))
	case after.number != before.number:
		return p.explain(errors.New("former processes stay"))
	}
	return nil
}

// A load has connections through a proxy.
type load struct {
	dial    dialFunc
	roots   *x509.CertPool
	name    string
	port    int
	stop    chan struct{}
	clients sync.WaitGroup
	lost    atomic.Int64
	all     []*connection
}

// A dialFunc makes a client of a connection. The number is the client's own.
type dialFunc func(conn net.Conn, number int) (client, error)

// A connection has a client that exchanges messages all the time.
type connection struct {
	conn  net.Conn
	count atomic.Int64
	gone  atomic.Bool
	worst time.Duration // of an exchange; used by the client alone
}

// more makes a number of connections, and waits until all that are left have exchanged a message.
func (l *load) more(number int) error {
	for range number {
		conn, err := net.DialTimeout("tcp", loopback(l.port), patience)
		if err != nil {
			return err
		}
		c := &connection{conn: conn}
		l.all = append(l.all, c)
		_ = conn.SetDeadline(time.Now().Add(patience))
		made, err := l.dial(tls.Client(conn, &tls.Config{RootCAs: l.roots, ServerName: "localhost"}), len(l.all))
		if err != nil {
			return err
		}
		l.clients.Go(func() { l.use(c, made) })
	}
	before := make([]int64, len(l.all))
	for i, c := range l.all {
		before[i] = c.count.Load()
	}
	for i, c := range l.all {
		for c.count.Load() == before[i] && !c.gone.Load() {
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}

// use exchanges messages until the load stops.
func (l *load) use(c *connection, made client) {
	for n := 0; ; n++ {
		begun := time.Now()
		_ = c.conn.SetDeadline(begun.Add(patience))
		if err := made.exchange(n); err != nil {
			if l.lost.Add(1) == 1 {
				fmt.Fprintf(os.Stderr, "%s: %v\n", l.name, err)
			}
			c.gone.Store(true)
			return
		}
		c.worst = max(c.worst, time.Since(begun))
		c.count.Add(1)
		select {
		case <-l.stop:
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (l *load) close() {
	for _, c := range l.all {
		_ = c.conn.Close()
	}
}

// A proxy is a running server, with its children and successors.
type proxy struct {
	session int // of all its processes
	cmd     *exec.Cmd
	main    int // the process that gets signals
	log     string
	follow  bool // another process becomes the main one at a restart
}

// start starts a proxy in a session of its own.
func (r *runner) start(s stack, args []string) (*proxy, error) {
	p := &proxy{log: r.file("log"), follow: s.name == "ossl"}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd = exec.Command(*r.programs[s.name], args...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go p.cmd.Wait()
	p.session, p.main = p.cmd.Process.Pid, p.cmd.Process.Pid
	return p, nil
}

// stop kills all processes of the session.
func (p *proxy) stop() {
	for range 3 { // a process may be starting another one
		for _, pid := range p.pids() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func (p *proxy) explain(err error) error {
	text, _ := os.ReadFile(p.log)
	return fmt.Errorf("%w; its log:\n%s", err, text)
}

var successor = regexp.MustCompile(`this one ends" pid=([0-9]+)`)

// restart restarts the proxy, and waits until the former process of ossl has a successor.
func (p *proxy) restart(signal syscall.Signal) error {
	known, err := os.ReadFile(p.log)
	if err != nil {
		return err
	}
	if err := syscall.Kill(p.main, signal); err != nil || !p.follow {
		return err
	}
	for late := time.Now().Add(patience); time.Now().Before(late); time.Sleep(5 * time.Millisecond) {
		text, err := os.ReadFile(p.log)
		if err != nil {
			return err
		}
		if m := successor.FindSubmatch(text[len(known):]); m != nil {
			p.main, err = strconv.Atoi(string(m[1]))
			return err
		}
	}
	return p.explain(errors.New("no other process has taken over"))
}

// pids returns the processes of the session.
func (p *proxy) pids() (pids []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has exited
		}
		rest := string(text)[strings.LastIndexByte(string(text), ')')+1:]
		fields := strings.Fields(rest) // from the state on
		if len(fields) > 3 && fields[0] != "Z" && fields[3] == strconv.Itoa(p.session) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// memory is that of processes, in MB.
type memory struct {
	number   int
	rss, pss float64
}

func (p *proxy) processes() (m memory) {
	for _, pid := range p.pids() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			continue
		}
		m.number++
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			if len(fields) < 2 {
				continue
			}
			kb, _ := strconv.ParseFloat(fields[1], 64)
			switch fields[0] {
			case "Rss:":
				m.rss += kb / 1024
			case "Pss:":
				m.pss += kb / 1024
			}
		}
	}
	return m
}

// await waits until a connection succeeds, and closes it.
func await(dial func() (net.Conn, error)) (err error) {
	for late := time.Now().Add(patience); time.Now().Before(late); time.Sleep(10 * time.Millisecond) {
		var conn net.Conn
		if conn, err = dial(); err == nil {
			return conn.Close()
		}
	}
	return err
}

func loopback(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }
