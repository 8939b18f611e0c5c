//go:build cgo && ossl_faults

package libssl

// #cgo CFLAGS: -DOSSL_FAULTS
// #include "faults.h"
import "C"

// FailAllocations has the from-th allocation from now on fail, in OpenSSL or our C, and all others
// before the to-th.
func FailAllocations(from, to int) { C.faults_begin(C.long(from), C.long(to)) }

// CountAllocations ends that, and returns the number of allocations since.
func CountAllocations() int { return int(C.faults_end()) }
