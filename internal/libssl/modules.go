package libssl

import "unsafe"

// checkModules returns the first file in a list, or "", and an error for the first one that is
// incomplete, or needs an incomplete library. It frees the list, which may be nil: paths, each with
// its 0, up to an empty one.
func checkModules(list *c_char) (first string, err error) {
	defer c_free(unsafe.Pointer(list))
	if list == nil {
		return "", nil
	}
	s := hostSearch()
	for p := list; *p != 0; {
		file := c_GoString(p)
		if first == "" {
			first = file
		}
		if s != nil {
			if err := s.check(file); err != nil {
				return first, err
			}
		}
		p = (*c_char)(unsafe.Add(unsafe.Pointer(p), len(file)+1))
	}
	return first, nil
}
