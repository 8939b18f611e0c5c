//go:build cgo

package libssl

// #include <stdlib.h>
// #include "shim.h"
// #include "fips.h"
import "C"

import (
	"bytes"
	"path/filepath"
	"runtime"
	"sync"
	"unsafe"
)

var (
	fipsMu   sync.Mutex
	fipsDone bool // guarded by fipsMu; FIPS mode is set up
)

// SetUpFIPS sets up FIPS mode, once; a failure is not remembered. process allows 1.1.1 to be put
// into FIPS mode as a whole. The library must be loaded. The error is a [*FIPSError].
func SetUpFIPS(process bool) error {
	fipsMu.Lock()
	defer fipsMu.Unlock()
	if fipsDone {
		return nil
	}
	err := fipsResult(func(from *C.ossl_fips_files, report *C.char, size C.size_t) C.int {
		return C.ossl_fips_setup(from, C.int(flag(process)), report, size)
	})
	fipsDone = err == nil
	return err
}

// TryFIPS returns an error if FIPS mode could not be set up now. It changes nothing.
func TryFIPS() error {
	fipsMu.Lock()
	defer fipsMu.Unlock()
	return fipsResult(func(from *C.ossl_fips_files, report *C.char, size C.size_t) C.int {
		return C.ossl_fips_try(from, report, size)
	})
}

// fipsFiles returns the files that have the module's configuration. A fault could hide a part of it;
// then the file at fault is left out. The caller must call free.
func fipsFiles() (from *C.ossl_fips_files, free func(), fault *ConfigFault) {
	host, fault := ReadConfig()
	var beside *Config
	// The folder of a relative path, or of none, is not searched: no file in the working directory
	// may name code to load.
	if fault == nil && filepath.IsAbs(host.File) && C.ossl_fips_in_config(host.p) == 0 {
		beside, fault = readConfigFile(filepath.Join(filepath.Dir(host.File), "fipsmodule.cnf"))
	}
	from = (*C.ossl_fips_files)(C.malloc(C.sizeof_ossl_fips_files)) // C's, since it has pointers
	from.host, from.beside = host.parsed(), beside.parsed()
	return from, func() {
		C.free(unsafe.Pointer(from))
		host.Close()
		beside.Close()
	}, fault
}

// fipsResult loads the module with call, if its file is complete. fipsMu is held.
func fipsResult(call func(from *C.ossl_fips_files, report *C.char, size C.size_t) C.int) error {
	from, free, fault := fipsFiles()
	defer free()
	if fault != nil {
		return &FIPSError{Failure: FIPSConfigFault, File: fault.File, Err: fault}
	}
	file, err := checkModules(C.ossl_fips_module_file(from))
	if err != nil {
		return &FIPSError{Failure: FIPSModuleFailed, Text: err.Error()}
	}
	const size = 1024
	report := (*C.char)(C.malloc(size))
	defer C.free(unsafe.Pointer(report))
	if status := FIPSFailure(call(from, report, size)); status != fipsReady {
		return &FIPSError{Failure: status, File: file, Text: C.GoString(report)}
	}
	return nil
}

// FIPSConfiguration returns the configuration that the module would get now, for tests. The library
// must be loaded.
func FIPSConfiguration() string {
	from, free, _ := fipsFiles()
	defer free()
	text := C.ossl_fips_configuration(from)
	defer C.free(unsafe.Pointer(text))
	return C.GoString(text)
}

// FIPSModuleInfo queries the module that FIPS mode uses. ok is false if FIPS mode was not set up.
func FIPSModuleInfo() (m FIPSModule, ok bool) {
	var info C.ossl_fips_info
	if C.ossl_fips_module(&info) != 1 {
		return m, false
	}
	m = FIPSModule{Name: C.GoString(info.name), Version: C.GoString(info.version), Build: C.GoString(info.build),
		Path: C.GoString(C.ossl_fips_path()), Provider: FIPSProvider(), Library: C.GoString(C.ossl_fips_core_path()),
		Running: info.running == 1}
	return m, true
}

// FIPSProvider returns the name of the provider that FIPS mode uses or, before it is set up, would
// use. It is "" on 1.1.1. The library must be loaded.
func FIPSProvider() string {
	fipsMu.Lock()
	defer fipsMu.Unlock()
	if fipsDone {
		return C.GoString(C.ossl_fips_provider(nil))
	}
	from, free, _ := fipsFiles()
	defer free()
	return C.GoString(C.ossl_fips_provider(from))
}

// FIPSUnlisted returns the names of the providers that openssl.cnf activates and that are neither
// OpenSSL's nor known as FIPS modules. The library must be loaded.
func FIPSUnlisted() (names []string) {
	config, _ := ReadConfig()
	defer config.Close()
	if config == nil {
		return nil
	}
	list := C.ossl_fips_unlisted(config.p)
	defer C.free(unsafe.Pointer(list))
	for p := list; p != nil && *p != 0; p = (*C.char)(unsafe.Add(unsafe.Pointer(p), len(names[len(names)-1])+1)) {
		names = append(names, C.GoString(p))
	}
	return names
}

// fipsHasSignature reports whether the module has a signature algorithm, by OpenSSL's name.
func fipsHasSignature(name string) bool {
	s := C.CString(name)
	defer C.free(unsafe.Pointer(s))
	return C.ossl_fips_has_signature(s) == 1
}

// FIPSRandom fills b from the module's generator of secret bytes.
func FIPSRandom(b []byte) error {
	if len(b) > 0 && C.ossl_fips_random(bytePtr(b), C.size_t(len(b))) != 1 {
		return &Error{Op: "random bytes of the FIPS module"}
	}
	return nil
}

// Roots are certificates that libcrypto trusts, in FIPS mode.
type Roots struct{ p *C.ossl_roots }

// NewRoots returns a store of certificates, given as DER, and, if system is set, of those that
// OpenSSL is configured to trust. FIPS mode must be set up.
func NewRoots(system bool, certs [][]byte) (*Roots, error) {
	var errs [errorSlots]C.ulong
	p := C.ossl_roots_new(C.int(flag(system)), &errs[0])
	if p == nil {
		return nil, &Error{Op: "make a store of certificates", Codes: codes(&errs)}
	}
	r := &Roots{p}
	runtime.AddCleanup(r, func(p *C.ossl_roots) { C.ossl_roots_free(p) }, p)
	for _, der := range certs {
		ok := C.ossl_roots_add(p, bytePtr(der), C.size_t(len(der)), &errs[0])
		if ok != 1 {
			return nil, &Error{Op: "add a certificate", Codes: codes(&errs)}
		}
	}
	runtime.KeepAlive(r)
	return r, nil
}

// Verify verifies a chain packed by [PackChain], and returns the verified chain up to a root. If
// there is none, the error is a *VerifyError; an *Error is not about the chain.
func (r *Roots) Verify(packed []byte, q *VerifyQuery) ([]byte, error) {
	// In C memory, since the query has pointers.
	host, ip := cString(q.Host), C.CBytes(q.IP)
	defer C.free(unsafe.Pointer(host))
	defer C.free(ip)
	query := C.ossl_roots_query{
		time:      C.int64_t(q.Time.Unix()),
		of_server: C.int32_t(flag(q.OfServer)),
		level:     C.int32_t(q.SecurityLevel),
		host:      host,
		ip_len:    C.size_t(len(q.IP)),
	}
	if len(q.IP) > 0 {
		query.ip = (*C.uint8_t)(ip)
	}
	answer := C.ossl_roots_verify(r.p, bytePtr(packed), C.size_t(len(packed)), &query)
	runtime.KeepAlive(r)
	defer C.free(unsafe.Pointer(answer.chain))
	if answer.no_memory == 1 {
		return nil, &Error{Op: "verify a chain", Codes: codes(&answer.errors)}
	}
	if answer.error != 0 {
		e := &VerifyError{Code: int(answer.error), Depth: int(answer.depth), Text: "the chain can't be parsed"}
		if e.Code > 0 {
			e.Text = C.GoString(C.ossl_verify_error(C.long(e.Code)))
		}
		return nil, e
	}
	return bytes.Clone(borrowed(answer.chain, answer.chain_len)), nil
}
