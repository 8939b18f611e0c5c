package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
)

// ServeIdle does nothing in a process that a user started. In one that IdleMemory started it
// serves, and exits when it is no longer needed.
func ServeIdle() {
	impl := Impl(os.Getenv(idleImplEnv))
	if impl == "" {
		return
	}
	if err := serveIdle(impl, os.Getenv(idleSocketEnv), os.Getenv(idleLimitEnv)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serveIdle(impl Impl, socket, limit string) error {
	n, err := strconv.Atoi(limit)
	if err != nil {
		return err
	}
	if err := raiseFileLimit(uint64(n) + 100); err != nil {
		return err
	}
	ends, err := (Pair{Server: impl, Client: Std, Cert: P256, Records: os.Getenv(idleRecordsEnv)}).Open()
	if err != nil {
		return err
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	s := &idling{changed: sync.NewCond(new(sync.Mutex))}
	go s.serve(l, ends)

	fmt.Println("listening")
	for commands := bufio.NewScanner(os.Stdin); commands.Scan(); {
		n, err := strconv.Atoi(commands.Text())
		if err != nil {
			return err
		}
		s.await(n)
		m, err := memoryInUse()
		if err != nil {
			return err
		}
		if err := json.NewEncoder(os.Stdout).Encode(m); err != nil {
			return err
		}
	}
	return nil
}

// An idling server counts its connections.
type idling struct {
	changed *sync.Cond // guards open
	open    int
}

func (s *idling) serve(l net.Listener, ends *Ends) {
	for {
		raw, err := l.Accept()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		s.add(1)
		go func() {
			_ = answer(ends.Server(raw)) // the clients close without close_notify
			s.add(-1)
		}()
	}
}

func (s *idling) add(n int) {
	s.changed.L.Lock()
	s.open += n
	s.changed.L.Unlock()
	s.changed.Broadcast()
}

func (s *idling) await(n int) {
	s.changed.L.Lock()
	for s.open != n {
		s.changed.Wait()
	}
	s.changed.L.Unlock()
}

// memoryInUse collects garbage and measures the remaining memory.
func memoryInUse() (Memory, error) {
	// A collection halves stacks that are mostly unused (the handshake needed more), empties pools
	// in two steps, and frees objects with cleanups one step later. An idle server has one every
	// two minutes; these are enough for all steps.
	for range 8 {
		runtime.GC()
	}
	debug.FreeOSMemory()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return Memory{}, err
	}
	resident, err := strconv.Atoi(strings.Fields(string(statm))[1])
	if err != nil {
		return Memory{}, err
	}
	return Memory{
		GoHeap:  float64(stats.HeapAlloc),
		GoStack: float64(stats.StackInuse),
		C:       float64(cHeapInUse()),
		RSS:     float64(resident * os.Getpagesize()),
	}, nil
}
