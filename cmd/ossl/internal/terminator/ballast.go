package terminator

import "os"

// ballastBytes is the ballast's size. Sixteen megabytes make a request over a kept connection take
// nine tenths of the processor time, and sixty-four no less (docs/PERFORMANCE.md).
const ballastBytes = 16 << 20

var ballast []byte

// HoldBallast has the garbage collector start less often. It starts when the heap has grown to twice
// what is in use, at 4 MB at the earliest, and a busy server with few connections fills that dozens
// of times a second. A block that is never touched counts as memory in use, but the kernel gives no
// pages for it: the heap may grow by its size more. It does nothing if the environment sets GOGC or
// GOMEMLIMIT, since somebody has chosen then.
func HoldBallast() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" && ballast == nil {
		ballast = make([]byte, ballastBytes)
	}
}
