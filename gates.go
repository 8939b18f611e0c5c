package ossl

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/ossl-go/ossl/internal/gate"
	"github.com/ossl-go/ossl/internal/libssl"
)

// stepGate bounds the handshakes that compute inside C, to four for each processor that Go may use. More
// of them at once would finish none of them sooner, and cost threads.
var stepGate = sync.OnceValue(func() *gate.Gate {
	g := new(gate.Gate)
	sizeSteps(g)
	return g
})

// steps returns the gate. Now and then it looks whether GOMAXPROCS has changed, as it does when a
// container gets other limits. Each look takes a lock of Go's scheduler.
func steps() *gate.Gate {
	g := stepGate()
	if rand.Uint32()%256 == 0 {
		sizeSteps(g)
	}
	return g
}

func stepPlaces() int { return 4 * runtime.GOMAXPROCS(0) }

func sizeSteps(g *gate.Gate) {
	places := stepPlaces()
	if g.Resize(places) {
		libssl.KeepStacks(places) // so many steps may end at the same time
	}
}

// pausedThreads bounds the threads that wait in C for Go, if libssl.PausesHoldThreads.
var pausedThreads = gate.New(gate.Max)

// maxPaused bounds the handshakes of the process that wait for Go in the middle of a step. Each of
// them holds a stack, which takes two mappings, and Linux allows a process 65,530
// (vm.max_map_count, proc_sys_vm(5)); if Go can't make one, the process crashes. The next handshake
// is refused and does not wait, because a callback of a paused handshake may be waiting for it.
const maxPaused = 16384

var paused atomic.Int32 // handshakes

var errTooManyPaused = errors.New("ossl: too many handshakes wait for callbacks and signers")
