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

// ForgetThread makes OpenSSL forget the thread, as if the goroutine went on on a new one: its first
// error there needs memory. The goroutine is locked to the thread.
func ForgetThread() { C.faults_forget_thread() }
