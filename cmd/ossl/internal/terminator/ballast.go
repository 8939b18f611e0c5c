package terminator

import "os"

// ballastBytes is the ballast's size. Sixteen megabytes make a request over a kept connection take
// nine tenths of the processor time, and sixty-four no less (docs/PERFORMANCE.md).
const ballastBytes = 16 << 20

var ballast []byte

// HoldBallast makes the garbage collector start less often. The collector starts when the heap has
// grown to twice the memory in use, at 4 MB at the earliest. A busy server with few connections fills
// 4 MB dozens of times a second. The ballast is a block that counts as memory in use, so the heap may
// grow by its size more. Nothing touches it, so the kernel gives no pages for it. HoldBallast does
// nothing if the environment sets GOGC or GOMEMLIMIT, since somebody has chosen then.
func HoldBallast() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" && ballast == nil {
		ballast = make([]byte, ballastBytes)
	}
}
