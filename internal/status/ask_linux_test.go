package status_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ossl-go/ossl/internal/status"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// roleVariable makes this program a process that a test needs. It writes a line when it begins, executes
// the commands that it reads, one a line, and answers each with a line.
const roleVariable = "OSSL_TEST_STATUS"

func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) == "" {
		os.Exit(m.Run())
	}
	fmt.Println("ready")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		answer, err := execute(words[0], words[1:])
		if err != nil {
			answer = "error: " + err.Error()
		}
		fmt.Println(answer)
	}
}

// execute executes a command of a test in a process that the test has started.
func execute(command string, args []string) (string, error) {
	n := 0
	if len(args) > 0 {
		var err error
		if n, err = strconv.Atoi(args[0]); err != nil {
			return "", err
		}
	}
	switch command {
	case "start": // with n reasons
		before := runtime.NumGoroutine()
		status.StartInTest(func() status.Report { return report(n) })
		counts := status.Counts()
		return fmt.Sprint(runtime.NumGoroutine()-before, counts.Failed), nil
	case "user":
		return "", syscall.Setresuid(n, n, n)
	case "ask":
		_, err := status.Ask(context.Background(), n)
		var e *status.AskError
		if errors.As(err, &e) {
			return fmt.Sprint(int(e.Problem)), nil
		}
		return "answer", err
	case "connect": // past the checks of Ask
		conn, err := net.Dial("unix", status.SocketName(n))
		if err != nil {
			return "", err
		}
		defer conn.Close()
		text, err := io.ReadAll(conn)
		return fmt.Sprint(len(text), err), nil
	case "exec":
		self := tlstest.Self()
		path, err := exec.LookPath(self[0])
		if err == nil {
			err = syscall.Exec(path, self, os.Environ())
		}
		return "", err
	}
	return "", fmt.Errorf("unknown command %q", command)
}

// report returns a report with n reasons.
func report(n int) status.Report {
	r := status.Report{Version: "v1.2.3", Mode: "prefer", Contexts: status.Contexts{Compiled: 3, InUse: 2},
		OpenSSL:     status.OpenSSL{Version: "OpenSSL 3.0.19", Path: "/lib/libssl.so.3"},
		Connections: []status.Connections{{Engine: "ossl", Role: "server", Count: 7}}, Records: status.Records{Direct: 7, Kernel: 1}}
	for i := range n {
		r.Left = append(r.Left, status.Reason{Text: strings.Repeat("\x01", 300), Count: uint64(n - i)})
		r.Settings = append(r.Settings, status.Setting{Name: strings.Repeat("\x01", 300), Value: strings.Repeat("\x01", 300)})
	}
	return r
}

// A process is one that a test has started.
type process struct {
	t     *testing.T
	pid   int
	in    io.Writer
	lines *bufio.Scanner
}

// newProcess starts a process, in namespaces of its own if flags are given.
func newProcess(t *testing.T, flags uintptr) *process {
	t.Helper()
	self := tlstest.Self()
	cmd := exec.Command(self[0], self[1:]...)
	// With the race detector each process would wait for a second before it exits.
	cmd.Env = append(os.Environ(), roleVariable+"=1", strings.TrimSpace("GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=0"))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	err = cmd.Start()
	if flags != 0 && errors.Is(err, syscall.EPERM) {
		t.Skip("only root can make namespaces, outside of most containers: run the test as root")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	p := &process{t, cmd.Process.Pid, in, bufio.NewScanner(out)}
	if got := p.answer(); got != "ready" {
		t.Fatal(got)
	}
	return p
}

// do sends a command to the process, and returns its answer.
func (p *process) do(format string, args ...any) string {
	p.t.Helper()
	fmt.Fprintf(p.in, format+"\n", args...)
	return p.answer()
}

func (p *process) answer() string {
	p.t.Helper()
	if !p.lines.Scan() {
		p.t.Fatalf("no answer: %v", p.lines.Err())
	}
	return p.lines.Text()
}

// start makes the process answer, with n reasons.
func (p *process) start(n int) {
	p.t.Helper()
	if got := p.do("start %d", n); got != "1 0" {
		p.t.Fatalf("Start: goroutines and failures are %q, want 1 and 0", got)
	}
}

// become gives the process another user.
func (p *process) become(user int) {
	p.t.Helper()
	if got := p.do("user %d", user); got != "" {
		p.t.Fatal(got)
	}
}

// problem returns the problem of the error of Ask, or 0 if there is none.
func problem(t *testing.T, err error) status.Problem {
	t.Helper()
	if err == nil {
		return 0
	}
	var e *status.AskError
	if !errors.As(err, &e) {
		t.Fatalf("%v has the type %T", err, err)
	}
	return e.Problem
}

// wantProblem checks that a process doesn't answer, for a reason.
func wantProblem(t *testing.T, pid int, want status.Problem) *status.AskError {
	t.Helper()
	_, err := status.Ask(t.Context(), pid)
	if got := problem(t, err); got != want {
		t.Fatalf("problem %d, want %d: %v", got, want, err)
	}
	return err.(*status.AskError)
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user: run the test as root")
	}
}

func TestAsk(t *testing.T) {
	p := newProcess(t, 0)
	wantProblem(t, p.pid, status.NotListening)
	p.start(2)
	got, err := status.Ask(t.Context(), p.pid)
	if err != nil {
		t.Fatal(err)
	}
	if want := report(2).Bound(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if got, err = status.Ask(t.Context(), p.pid); err != nil || got.Asked.Answered != 1 {
		t.Errorf("the second answer counts %+v, %v, want one before", got.Asked, err)
	}
	wantProblem(t, 1<<30, status.NoProcess)
}

// TestExec: a program that a process executes in its place doesn't inherit the socket, and can make its own.
func TestExec(t *testing.T) {
	p := newProcess(t, 0)
	p.start(0)
	if got := p.do("exec"); got != "ready" {
		t.Fatal(got)
	}
	wantProblem(t, p.pid, status.NotListening)
	p.start(0)
	if _, err := status.Ask(t.Context(), p.pid); err != nil {
		t.Error(err)
	}
}

// TestNotInTests: a test's program doesn't answer.
func TestNotInTests(t *testing.T) {
	status.Start(func() status.Report { return report(0) })
	wantProblem(t, os.Getpid(), status.NotListening)
}

func TestUsers(t *testing.T) {
	needRoot(t)
	const user, other = 54321, 54322
	server, same, another := newProcess(t, 0), newProcess(t, 0), newProcess(t, 0)
	server.become(user)
	server.start(0)
	same.become(user)
	another.become(other)
	if got := same.do("ask %d", server.pid); got != "answer" {
		t.Errorf("the same user: %s", got)
	}
	if got := another.do("ask %d", server.pid); got != fmt.Sprint(int(status.OtherUser)) {
		t.Errorf("another user: %s", got)
	}
	if got := another.do("connect %d", server.pid); got != "0 <nil>" {
		t.Errorf("another user has got bytes, an error: %s", got)
	}
	got, err := status.Ask(t.Context(), server.pid) // as root
	if err != nil || got.Asked.Refused != 1 {
		t.Errorf("root: %+v, %v, want one refused connection", got.Asked, err)
	}
	// A process that has given up root's privileges since answers to its present user.
	dropped := newProcess(t, 0)
	dropped.start(0)
	dropped.become(other)
	if got := another.do("ask %d", dropped.pid); got != "answer" {
		t.Errorf("the new user of a process: %s", got)
	}
	if got := same.do("connect %d", dropped.pid); got != "0 <nil>" {
		t.Errorf("another user of that process has got bytes, an error: %s", got)
	}
}

// TestStranger: another process has taken the name of the process's socket.
func TestStranger(t *testing.T) {
	p := newProcess(t, 0)
	stranger, err := net.Listen("unix", status.SocketName(p.pid))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			conn, err := stranger.Accept()
			if err != nil {
				return
			}
			_ = json.NewEncoder(conn).Encode(report(0).Bound())
			conn.Close()
		}
	}()
	if got := p.do("start"); got != "0 1" {
		t.Errorf("Start: goroutines and failures are %q, want 0 and 1", got)
	}
	e := wantProblem(t, p.pid, status.Stranger)
	if !strings.Contains(e.Do, strconv.Itoa(os.Getpid())) {
		t.Errorf("%q doesn't name the stranger, %d", e.Do, os.Getpid())
	}
	stranger.Close()
	if got := p.do("start"); got != "1 1" {
		t.Errorf("Start: goroutines and failures are %q, want 1 and the one before", got)
	}
	if _, err := status.Ask(t.Context(), p.pid); err != nil {
		t.Error(err)
	}
}

// TestAnswers: answers that no process should give.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       status.Problem
	}{
		{"none", "", status.Refused},
		{"garbage", "hello\n", status.Failed},
		{"cut", `{"format":1,`, status.Failed},
		{"format", `{"format":2}`, status.Failed},
		{"endless", "[" + strings.Repeat(" ", status.MaxBytes), status.Failed},
		{"nothing else", `{"format":1}`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := net.Listen("unix", status.SocketName(os.Getpid()))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				if conn, err := l.Accept(); err == nil {
					_, _ = io.WriteString(conn, c.text)
					conn.Close()
				}
			}()
			_, err = status.Ask(t.Context(), os.Getpid())
			if got := problem(t, err); got != c.want {
				t.Errorf("problem %d, want %d: %v", got, c.want, err)
			}
		})
	}
	t.Run("late", func(t *testing.T) {
		l, err := net.Listen("unix", status.SocketName(os.Getpid()))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err = status.Ask(ctx, os.Getpid()); problem(t, err) != status.Failed {
			t.Errorf("%v, want a timeout", err)
		}
	})
}

// TestSilentClients: clients that read nothing don't keep others waiting for long, even if answers are as
// long as can be.
func TestSilentClients(t *testing.T) {
	p := newProcess(t, 0)
	p.start(1000)
	for range 3 {
		conn, err := net.Dial("unix", status.SocketName(p.pid))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	if _, err := status.Ask(t.Context(), p.pid); err != nil {
		t.Error(err)
	}
}

// TestSlowClient: a client gets a second to read an answer that doesn't fit into the socket's buffer.
func TestSlowClient(t *testing.T) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: status.SocketName(os.Getpid())})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := l.AcceptUnix()
	if err == nil {
		err = conn.SetWriteBuffer(1)
	}
	if err != nil {
		t.Fatal(err)
	}
	before := status.Counts().Failed
	status.Answer(conn, func() status.Report { return report(1000) })
	if got := status.Counts().Failed - before; got != 1 {
		t.Errorf("%d failures, want 1", got)
	}
}

// TestManyRequests: all are answered, and no faster than the bound.
func TestManyRequests(t *testing.T) {
	n := 1000
	if testing.Short() {
		n = 2*status.PerSecond + 1
	}
	p := newProcess(t, 0)
	p.start(0)
	start := time.Now()
	for i := range n {
		if _, err := status.Ask(t.Context(), p.pid); err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
	}
	if took := time.Since(start); took < time.Duration(n/status.PerSecond-1)*time.Second {
		t.Errorf("%d answers in %v: the bound is %d in a second", n, took, status.PerSecond)
	}
}

// TestPIDNamespace: the process has ID 1 for itself, as in a container that shares the host's network.
func TestPIDNamespace(t *testing.T) {
	p, q := newProcess(t, syscall.CLONE_NEWPID), newProcess(t, syscall.CLONE_NEWPID)
	p.start(0)
	q.start(0)
	for _, pid := range []int{p.pid, q.pid} {
		if _, err := status.Ask(t.Context(), pid); err != nil {
			t.Error(err)
		}
	}
}

// TestNetworkNamespace: Ask says how to reach a process in another network namespace, and that works.
func TestNetworkNamespace(t *testing.T) {
	p := newProcess(t, syscall.CLONE_NEWNET)
	p.start(0)
	e := wantProblem(t, p.pid, status.OtherNetwork)
	_, command, _ := strings.Cut(e.Do, ": ")
	enter, command, ok := strings.Cut(command, " ossl inspect --pid ")
	if !ok || command != strconv.Itoa(p.pid) {
		t.Fatalf("%q is no command", e.Do)
	}
	if _, err := exec.LookPath("nsenter"); err != nil {
		t.Skip("nsenter is not installed")
	}
	cmd := exec.Command("nsenter", append(strings.Fields(enter)[1:], tlstest.Self()...)...)
	cmd.Env = append(os.Environ(), roleVariable+"=1")
	cmd.Stdin = strings.NewReader(fmt.Sprintf("ask %d\n", p.pid))
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "ready\nanswer\n" {
		t.Errorf("%s: %q, %v", cmd, out, err)
	}
}
