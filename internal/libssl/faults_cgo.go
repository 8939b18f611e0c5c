//go:build cgo && ossl_faults

package libssl

// #cgo CFLAGS: -DOSSL_FAULTS
// #include "faults.h"
import "C"

// FailAllocations makes allocations in OpenSSL and in our C code fail: from the from-th one,
// counted from this call, to the one before the to-th.
func FailAllocations(from, to int) { C.faults_begin(C.long(from), C.long(to)) }

// CountAllocations undoes FailAllocations, and returns the number of allocations since its call.
func CountAllocations() int { return int(C.faults_end()) }
