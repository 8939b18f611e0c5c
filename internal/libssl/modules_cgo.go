//go:build cgo

package libssl

// #include <stdlib.h>
import "C"

import (
	"fmt"
	"unsafe"
)

// checkModules returns an error for the first incomplete file in a list. It frees the list, which
// may be nil: paths, each with its 0, up to an empty one.
func checkModules(list *C.char) error {
	defer C.free(unsafe.Pointer(list))
	for p := list; p != nil && *p != 0; {
		file := C.GoString(p)
		if err := checkWhole(file); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		p = (*C.char)(unsafe.Add(unsafe.Pointer(p), len(file)+1))
	}
	return nil
}
