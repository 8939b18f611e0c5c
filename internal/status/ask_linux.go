package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// askTime bounds a question. It is more than a second because a process may have answered as often as it
// may in this second.
const askTime = 5 * time.Second

// Ask asks a process for its report. Its errors are [*AskError]. The answer comes from this process
// and its user, or root: a stranger on the socket's name isn't believed.
func Ask(ctx context.Context, pid int) (Report, error) {
	p, err := processOf(pid)
	if err != nil {
		return Report{}, err
	}
	if me := os.Geteuid(); me != 0 && me != p.user {
		return Report{}, askError(OtherUser, "run it as that user, or as root",
			"process %d belongs to user %d, and this is user %d", pid, p.user, me)
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socketName(p.pidNamespace, p.inner))
	if err != nil {
		return Report{}, p.unreachable(err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Now()) })()
	server, err := peer(conn.(*net.UnixConn))
	if err != nil {
		return Report{}, askError(Failed, "", "process %d: %v", pid, err)
	}
	if int(server.Pid) != pid || server.Uid != 0 && int(server.Uid) != p.user {
		return Report{}, askError(Stranger,
			fmt.Sprintf("find out why process %d has taken it; process %d tries again when it is restarted", server.Pid, pid),
			"the socket's name is taken by process %d of user %d, which isn't asked", server.Pid, server.Uid)
	}
	text, err := io.ReadAll(io.LimitReader(conn, maxBytes+1))
	switch {
	case err != nil && ctx.Err() != nil:
		return Report{}, askError(Failed, "try again: the process may be stopped, or busy",
			"process %d has not answered in %v", pid, askTime)
	case len(text) == 0:
		return Report{}, askError(Refused, p.enter("-U "), "process %d refuses to answer to user %d", pid, os.Geteuid())
	case err != nil:
		return Report{}, askError(Failed, "", "process %d: %v", pid, err)
	case len(text) > maxBytes:
		return Report{}, askError(Failed, "", "the answer of process %d has more than %d bytes", pid, maxBytes)
	}
	var r Report
	if err := json.Unmarshal(text, &r); err != nil {
		return Report{}, askError(Failed, "", "the answer of process %d: %v", pid, err)
	}
	if r.Format != Format {
		return Report{}, askError(Failed, "use the command's version that the process was built with",
			"the answer of process %d is of format %d, and this command knows %d", pid, r.Format, Format)
	}
	return r.bound(), nil
}

// A process is the one to ask.
type process struct {
	pid, inner   int // its ID here, and in its own PID namespace
	user         int // the effective one
	pidNamespace string
}

// processOf reads /proc/PID/status, which is readable for all users (proc_pid_status(5)).
func processOf(pid int) (process, error) {
	p := process{pid: pid, inner: pid, user: -1}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return p, askError(NoProcess, "", "there is no process %d", pid)
	}
	if err != nil {
		return p, askError(Failed, "", "%v", err)
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		values := strings.Fields(value)
		switch {
		case name == "Uid" && len(values) > 1: // real, effective, saved, of the file system
			p.user, err = strconv.Atoi(values[1])
		case name == "NSpid" && len(values) > 0: // from here to the innermost namespace
			p.inner, err = strconv.Atoi(values[len(values)-1])
		}
		if err != nil {
			return p, askError(Failed, "", "/proc/%d/status: %v", pid, err)
		}
	}
	// Processes with capabilities hide their namespaces from their user. Most are in this one.
	if p.pidNamespace = namespace(strconv.Itoa(pid), "pid"); p.pidNamespace == "" {
		p.pidNamespace = namespace("self", "pid")
	}
	return p, nil
}

// unreachable returns the reason why the process's socket can't be reached.
func (p process) unreachable(err error) error {
	network, ours := namespace(strconv.Itoa(p.pid), "net"), namespace("self", "net")
	switch {
	case network != "" && network != ours:
		return askError(OtherNetwork, p.enter(""), "process %d is in another network namespace, as in a container", p.pid)
	case errors.Is(err, syscall.ECONNREFUSED):
		return askError(NotListening, "",
			"process %d has no socket: it was not built by 'ossl go', has made no TLS connection yet, or may not make sockets", p.pid)
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return askError(Failed, "", "process %d: %v", p.pid, err)
}

// enter returns the command that asks the process from within its network namespace. nsenter(1) keeps
// the PID namespace, and thus the process's ID.
func (p process) enter(flags string) string {
	return fmt.Sprintf("run it there, as root: nsenter -t %d %s-n ossl inspect --pid %d", p.pid, flags, p.pid)
}
