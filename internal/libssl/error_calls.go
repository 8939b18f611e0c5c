package libssl

const errorSlots = c_OSSL_MAX_ERRORS

func codes(packed *[errorSlots]c_ulong) []uint64 {
	var list []uint64
	for _, code := range packed {
		if code == 0 {
			break
		}
		list = append(list, uint64(code))
	}
	return list
}

// Reason returns OpenSSL's text for a packed error code, or "".
func Reason(code uint64) string {
	if text := c_ossl_error_reason(c_ulong(code)); text != nil {
		return c_GoString(text)
	}
	return ""
}

// errorKind returns the kind of a packed error code and, depending on it, the errno or libssl's
// reason. The library must be loaded.
func errorKind(code uint64) (kind, number int) {
	var n c_int
	kind = int(c_ossl_error_kind(c_ulong(code), &n))
	return kind, int(n)
}
