package libssl

import (
	"sync"
	"sync/atomic"
)

// C keeps values of Go as handles, as with [runtime/cgo.Handle], which builds without cgo can't import.
var (
	handles    sync.Map // of uintptr and any
	lastHandle atomic.Uintptr
)

// newHandle returns a handle of v, never 0. It must be freed.
func newHandle(v any) uintptr {
	handle := lastHandle.Add(1)
	handles.Store(handle, v)
	return handle
}

// valueOf returns the value that a handle refers to, nil if the handle was freed.
func valueOf(handle uintptr) any {
	v, _ := handles.Load(handle)
	return v
}

func freeHandle(handle uintptr) { handles.Delete(handle) }
