package status

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// The bounds of a process's work for its askers.
const (
	patience  = time.Second // for a client that doesn't read its answer
	perSecond = 250         // connections; later ones wait in the socket's queue
	pause     = time.Second // after a connection that couldn't be accepted
)

// socketName returns the name of a process's socket. Processes of several containers may share a
// network namespace, in which the names are, and have the same ID in different PID namespaces.
func socketName(pidNamespace string, pid int) string {
	return fmt.Sprintf("@ossl-status-%s-%d", strings.Trim(strings.TrimPrefix(pidNamespace, "pid:"), "[]"), pid)
}

// namespace returns the kernel's name of a namespace of a process, such as "pid:[4026531836]", or "".
func namespace(process, kind string) string {
	name, _ := os.Readlink("/proc/" + process + "/ns/" + kind)
	return name
}

var (
	once                      sync.Once
	answered, refused, failed atomic.Uint64
)

// Start makes the process answer to its user and to root, with the reports that report returns. Only
// the first call in a process has an effect, and a socket that can't be made is only counted. Tests'
// programs don't answer: tests count goroutines, and wait in vain for those of a bubble of
// testing/synctest.
func Start(report func() Report) {
	once.Do(func() {
		if !isTest() {
			start(report)
		}
	})
}

func start(report func() Report) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: socketName(namespace("self", "pid"), os.Getpid())})
	if err != nil {
		failed.Add(1)
		return
	}
	go serve(l, report)
}

// Counts returns the counts of the process's socket, which [Report] has too.
func Counts() Asked { return Asked{answered.Load(), refused.Load(), failed.Load()} }

// isTest reports whether "go test" has built the program, or whether a test's flag is among the
// arguments. testing.Testing would need package testing in every program.
func isTest() bool {
	for _, arg := range os.Args[min(len(os.Args), 1):] {
		if strings.HasPrefix(arg, "-test.") {
			return true
		}
	}
	return len(os.Args) > 0 && strings.HasSuffix(os.Args[0], ".test")
}

// serve answers the connections one after the other.
func serve(l *net.UnixListener, report func() Report) {
	var second time.Time
	for n := 0; ; n++ {
		conn, err := l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as too many open files
			failed.Add(1)
			time.Sleep(pause)
			continue
		}
		if now := time.Now(); now.Sub(second) >= time.Second {
			second, n = now, 0
		} else if n >= perSecond {
			time.Sleep(time.Until(second.Add(time.Second)))
		}
		answer(conn, report)
	}
}

// answer sends a report, if the client's user may have it. A report fits into the socket's buffer
// unless the administrator has made that small, so that clients that don't read delay nobody.
func answer(conn *net.UnixConn, report func() Report) {
	defer conn.Close()
	client, err := peer(conn)
	if err != nil {
		failed.Add(1)
		return
	}
	// The process may have changed its user since the socket was made.
	if client.Uid != 0 && int(client.Uid) != os.Geteuid() {
		refused.Add(1)
		return
	}
	r := report().bound()
	r.Asked = Counts()
	text, err := json.Marshal(r)
	if err == nil {
		_ = conn.SetWriteDeadline(time.Now().Add(patience))
		_, err = conn.Write(append(text, '\n'))
	}
	if err != nil {
		failed.Add(1)
		return
	}
	answered.Add(1)
}

// peer returns the process at the other end: the one that called connect(2) or listen(2).
func peer(conn *net.UnixConn) (cred *syscall.Ucred, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	if e := raw.Control(func(fd uintptr) {
		cred, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); e != nil {
		return nil, e
	}
	return cred, err
}
