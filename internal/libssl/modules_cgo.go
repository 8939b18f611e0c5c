//go:build cgo

package libssl

// #include <stdlib.h>
import "C"

import "unsafe"

// checkModules returns an error for the first file in a list that is incomplete, or needs an
// incomplete library. It frees the list, which may be nil: paths, each with its 0, up to an empty
// one.
func checkModules(list *C.char) error {
	defer C.free(unsafe.Pointer(list))
	if list == nil {
		return nil
	}
	s := hostSearch()
	for p := list; s != nil && *p != 0; {
		file := C.GoString(p)
		if err := s.check(file); err != nil {
			return err
		}
		p = (*C.char)(unsafe.Add(unsafe.Pointer(p), len(file)+1))
	}
	return nil
}
