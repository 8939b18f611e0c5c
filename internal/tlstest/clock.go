package tlstest

import (
	"fmt"
	"time"
	"unsafe"
)

// MoveClocks returns the time that time.Now would return if, since t, the wall clock had advanced
// by wall, which is in whole seconds, and the monotonic clock by monotonic: because the machine was
// suspended, a virtual machine was restored, or the clock was set. Package time can't make such a
// time, so its fields are set directly.
func MoveClocks(t time.Time, wall, monotonic time.Duration) time.Time {
	want := t.Round(0).Add(wall)
	p := (*struct { // time.Time
		wall uint64 // 1 bit: there is a monotonic reading; 33 bits of seconds; 30 bits of nanoseconds
		ext  int64  // the monotonic reading
		loc  *time.Location
	})(unsafe.Pointer(&t))
	if p.wall>>63 == 0 {
		panic("no monotonic reading")
	}
	p.wall += uint64(wall/time.Second) << 30
	p.ext += int64(monotonic)
	if !t.Round(0).Equal(want) || p.wall>>63 == 0 {
		panic(fmt.Sprintf("a time made by hand is %v, want %v", t, want))
	}
	return t
}
