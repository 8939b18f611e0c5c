package redisstore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ossl-go/ossl/session/redisstore"
)

// A process is a member of a fleet in a process of its own.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.Writer
	lines *bufio.Scanner
}

// patience bounds the time for an answer of a member of a fleet, even if the store is away for a
// while.
const patience = 2 * time.Minute

// killLater kills the process if its current task takes too long. The task is over when the
// returned function is called.
func (p *process) killLater() (stop func()) {
	timer := time.AfterFunc(patience, func() { p.cmd.Process.Kill() })
	return func() { timer.Stop() }
}

// startProcess starts a member on the store at addrs, with additional environment variables.
func startProcess(t *testing.T, addrs string, env ...string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), memberEnv+"="+addrs), env...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{t, cmd, stdin, bufio.NewScanner(stdout)}
	t.Cleanup(func() {
		stdin.Close()
		defer p.killLater()()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// ask sends a command and returns the answer.
func (p *process) ask(format string, args ...any) string {
	if _, err := fmt.Fprintf(p.stdin, format+"\n", args...); err != nil {
		p.t.Error(err)
		return ""
	}
	defer p.killLater()()
	if !p.lines.Scan() {
		p.t.Errorf("no answer to "+format, args...)
	}
	return p.lines.Text()
}

func startFleet(t *testing.T, n int) (*server, []*process) {
	t.Helper()
	s := startServer(t)
	var members []*process
	for range n {
		members = append(members, startProcess(t, s.addr))
	}
	return s, members
}

// TestFleetSessions: sessions that one process makes are found by the others, and each can be taken
// once.
func TestFleetSessions(t *testing.T) {
	t.Parallel()
	server, members := startFleet(t, 3)
	const each = 100
	all(len(members), func(m int) {
		for i := range each {
			if got := members[m].ask("put %d", m*each+i); got != "ok" {
				t.Error(got)
			}
		}
		members[m].ask("flush")
	})
	var found, taken atomic.Int64
	all(len(members), func(m int) {
		for i := range each * len(members) {
			switch got := members[m].ask("get %d", i); got {
			case "true true <nil>":
				found.Add(1)
			default:
				t.Errorf("member %d, session %d: %s", m, i, got)
			}
		}
	})
	all(len(members), func(m int) {
		for i := range each * len(members) {
			switch got := members[m].ask("take %d", i); got {
			case "true true <nil>":
				taken.Add(1)
			case "false false <nil>":
			default:
				t.Errorf("member %d, session %d: %s", m, i, got)
			}
		}
	})
	sessions := int64(each * len(members))
	t.Logf("%d sessions of %d processes: found %d times, taken %d times", sessions, len(members), found.Load(), taken.Load())
	if found.Load() != sessions*int64(len(members)) || taken.Load() != sessions {
		t.Errorf("found %d times, taken %d times", found.Load(), taken.Load())
	}

	// A store that has lost its data, or was down, has no sessions, and accepts new ones.
	server.kill()
	server.start()
	for m, p := range members {
		eventually(t, "the store to be back", func() bool {
			p.ask("put %d", m)
			p.ask("flush")
			return p.ask("get %d", m) == "true true <nil>"
		})
		if got := p.ask("get %d", each+m); got != "false false <nil>" && m == 0 {
			t.Errorf("after a restart: %s", got)
		}
	}
}

// TestFleetKeys: all processes can open the tickets that any of them seals; keys are rotated by one
// of them, and outlive the store.
func TestFleetKeys(t *testing.T) {
	t.Parallel()
	server, members := startFleet(t, 3)
	seen := map[string]bool{}
	look := func() {
		t.Helper()
		for m, p := range members {
			name := p.ask("seals")
			if name == "none" {
				continue
			}
			seen[name] = true
			for o, other := range members {
				held := other.ask("opens")
				if held == "" && len(seen) == 1 {
					continue // a fleet's first key: a ring can't open without a key that seals, and this member's begins to seal a moment later
				}
				if !strings.Contains(held, name) {
					t.Errorf("member %d seals with %s, member %d opens %q", m, name, o, held)
				}
			}
		}
	}
	keys := func(n int) func() bool {
		return func() bool { look(); return len(seen) >= n || t.Failed() }
	}
	eventually(t, "a first key", func() bool {
		look()
		return !slices.ContainsFunc(members, func(p *process) bool { return p.ask("seals") == "none" })
	})
	eventually(t, "rotation", keys(2))

	// The store loses its data: members restore the keys, and a new member gets them.
	before := members[0].ask("seals")
	server.kill()
	look()
	server.start()
	late := startProcess(t, server.addr)
	eventually(t, "the late member to know the keys", func() bool { return strings.Contains(late.ask("opens"), before) })
	members = append(members, late)
	eventually(t, "rotation after a restart", keys(len(seen)+1))

	// A store that hangs stops no member.
	server.signal(syscall.SIGSTOP)
	for range 20 {
		look()
	}
	server.signal(syscall.SIGCONT)
	eventually(t, "rotation after a pause", keys(len(seen)+1))
	t.Logf("%d keys", len(seen))
}

// TestKeysSync uses Keys against the server without Run.
func TestKeysSync(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client, _ := server.client()
	ctx := t.Context()
	a, err := redisstore.NewKeys(client, calmKeys)
	if err != nil {
		t.Fatal(err)
	}
	b, err := redisstore.NewKeys(client, calmKeys)
	if err != nil {
		t.Fatal(err)
	}
	all(8, func(i int) { // at once: one publishes
		k := []*redisstore.Keys{a, b}[i%2]
		eventually(t, "an answer in time", func() bool {
			err := k.Sync(ctx)
			if err != nil && !errors.Is(err, context.DeadlineExceeded) { // on a busy machine
				t.Error(err)
			}
			return err == nil || t.Failed()
		})
	})
	if n := a.Stats().Published + b.Stats().Published; n != 1 {
		t.Errorf("%d keys were published", n)
	}
	if keys, _ := a.Ring().Snapshot(); len(keys) != 0 {
		t.Error("a key is used before its time")
	}
	names := client.Keys(ctx, "*:record").Val() // the lease of a member that came second may be there for a moment too
	if len(names) != 1 || !strings.HasPrefix(names[0], "ossl:{keys:") {
		t.Fatalf("in the store: %q", names)
	}
	if ttl := client.PTTL(ctx, names[0]).Val(); ttl <= calmKeys.Lifetime {
		t.Errorf("the record stays for %v", ttl)
	}
	eventually(t, "the key's time", func() bool {
		if err := a.Sync(ctx); err != nil { // on a busy machine the deadline may pass
			t.Log(err)
			return false
		}
		keys, _ := a.Ring().Snapshot()
		return len(keys) == 1
	})
	if s := a.Stats(); s.Keys != 1 || s.SealFrom.IsZero() || s.LastError != nil || s.LastSync.IsZero() {
		t.Errorf("%+v", s)
	}
	server.kill()
	if err := a.Sync(ctx); err == nil || a.Stats().Failures == 0 {
		t.Error("no error without a store")
	}
	if keys, _ := a.Ring().Snapshot(); len(keys) != 1 {
		t.Error("the key is gone with the store")
	}
}
