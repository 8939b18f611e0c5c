package main

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// serverPatience is the time after which a script that waits for a server has failed.
const serverPatience = 30 * time.Second

// serverCommands are the commands of scripts that start servers in the background.
func serverCommands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"notified": notified, "signal": sendSignal, "backend": startBackend,
	}
}

// listenNotify makes the socket to which servers send their states: sd_notify(3). So scripts need not
// guess when a server listens, or has reloaded.
func listenNotify(env *testscript.Env) error {
	folder, err := os.MkdirTemp("", "notify") // the path of a socket has at most 107 bytes
	if err != nil {
		return err
	}
	env.Defer(func() { _ = os.RemoveAll(folder) })
	path := filepath.Join(folder, "s")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return err
	}
	env.Defer(func() { _ = conn.Close() })
	env.Setenv("NOTIFY_SOCKET", path)
	env.Values[notifyKey{}] = conn
	env.Values[slowKey{}] = make(chan struct{}, 8) // an element for each request that is never answered
	return nil
}

type (
	notifyKey struct{}
	slowKey   struct{}
)

// notified is the command "notified STATE": it waits for the next state of a server, which must
// contain STATE. The server's addresses are $ADDRESS and $ADMIN from then on.
func notified(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: notified state")
	}
	conn := ts.Value(notifyKey{}).(*net.UnixConn)
	_ = conn.SetReadDeadline(time.Now().Add(serverPatience))
	b := make([]byte, 4096)
	n, err := conn.Read(b)
	ts.Check(err)
	state := string(b[:n])
	if !strings.Contains(state, args[0]) {
		ts.Fatalf("the state is %q", state)
	}
	for name, form := range map[string]string{"ADDRESS": `listening on ([^;,\s]+)`, "ADMIN": `admin on (\S+)`} {
		if m := regexp.MustCompile(form).FindStringSubmatch(state); m != nil {
			ts.Setenv(name, m[1])
		}
	}
}

// sendSignal is the command "signal NAME": it sends a signal to the last server in the background.
func sendSignal(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]syscall.Signal{"HUP": syscall.SIGHUP, "TERM": syscall.SIGTERM, "INT": syscall.SIGINT}
	running := slices.DeleteFunc(ts.BackgroundCmds(), func(cmd *exec.Cmd) bool {
		return filepath.Base(cmd.Path) != "ossl"
	})
	if neg || len(args) != 1 || signals[args[0]] == 0 || len(running) == 0 {
		ts.Fatalf("usage: signal HUP, TERM or INT, with a server in the background")
	}
	ts.Check(running[len(running)-1].Process.Signal(signals[args[0]]))
}

// startBackend is the command "backend http" or "backend echo": it starts a server behind, whose
// address is $BACKEND. The HTTP server answers with the request's headers, but never finishes the
// response to "/slow"; "backend slow" waits for a request for that path. The echo server sends back
// two lines.
func startBackend(ts *testscript.TestScript, neg bool, args []string) {
	slow := ts.Value(slowKey{}).(chan struct{})
	switch {
	case !neg && len(args) == 1 && args[0] == "slow":
		select {
		case <-slow:
		case <-time.After(serverPatience):
			ts.Fatalf("no request")
		}
	case !neg && len(args) == 1 && args[0] == "http":
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				slow <- struct{}{}
				w.WriteHeader(http.StatusOK)
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
				return
			}
			_ = r.Header.Write(w)
		}))
		ts.Defer(server.Close)
		ts.Setenv("BACKEND", server.Listener.Addr().String())
	case !neg && len(args) == 1 && args[0] == "echo":
		l, err := net.Listen("tcp", "127.0.0.1:0")
		ts.Check(err)
		ts.Defer(func() { _ = l.Close() })
		ts.Setenv("BACKEND", l.Addr().String())
		go func() {
			for {
				conn, err := l.Accept()
				if errors.Is(err, net.ErrClosed) {
					return
				}
				go func() {
					lines := bufio.NewReader(conn)
					for range 2 {
						line, _ := lines.ReadString('\n')
						_, _ = io.WriteString(conn, line)
					}
					_ = conn.Close()
				}()
			}
		}()
	default:
		ts.Fatalf("usage: backend http, slow or echo")
	}
}
