package ossl

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/ossl-go/ossl/internal/gate"
)

// steps bounds the handshakes that compute inside C. More of them at once would finish none of them
// sooner, and cost threads.
var steps = sync.OnceValue(func() *gate.Gate { return gate.New(4 * runtime.GOMAXPROCS(0)) })

// pausedThreads bounds the threads that wait in C for Go, if libssl.PausesHoldThreads.
var pausedThreads = gate.New(gate.Max)

// maxPaused bounds the handshakes of the process that wait for Go in the middle of a step. Each of
// them holds a stack, which takes two mappings, and Linux allows a process 65,530
// (vm.max_map_count, proc_sys_vm(5)); if Go can't make one, the process crashes. The next handshake
// is refused and does not wait, because a callback of a paused handshake may be waiting for it.
const maxPaused = 16384

var paused atomic.Int32 // handshakes

var errTooManyPaused = errors.New("ossl: too many handshakes wait for callbacks and signers")
