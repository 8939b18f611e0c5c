package libssl

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
	err := fipsResult(func(from *c_ossl_fips_files, report *c_char, size c_size_t) c_int {
		return c_ossl_fips_setup(from, c_int(flag(process)), report, size)
	})
	fipsDone = err == nil
	return err
}

// TryFIPS returns an error if FIPS mode could not be set up now. It changes nothing.
func TryFIPS() error {
	fipsMu.Lock()
	defer fipsMu.Unlock()
	return fipsResult(func(from *c_ossl_fips_files, report *c_char, size c_size_t) c_int {
		return c_ossl_fips_try(from, report, size)
	})
}

// fipsFiles returns the files that have the module's configuration. A fault could hide a part of it;
// then the file at fault is left out. The caller must call free.
func fipsFiles() (from *c_ossl_fips_files, free func(), fault *ConfigFault) {
	host, fault := ReadConfig()
	var beside *Config
	// The folder of a relative path, or of none, is not searched: no file in the working directory
	// may name code to load.
	if fault == nil && filepath.IsAbs(host.File) && c_ossl_fips_in_config(host.p) == 0 {
		beside, fault = readConfigFile(filepath.Join(filepath.Dir(host.File), "fipsmodule.cnf"))
	}
	from = (*c_ossl_fips_files)(c_malloc(c_sizeof_ossl_fips_files)) // C's, since it has pointers
	from.host, from.beside = host.parsed(), beside.parsed()
	return from, func() {
		c_free(unsafe.Pointer(from))
		host.Close()
		beside.Close()
	}, fault
}

// fipsResult loads the module with call, if its file is complete. fipsMu is held.
func fipsResult(call func(from *c_ossl_fips_files, report *c_char, size c_size_t) c_int) error {
	from, free, fault := fipsFiles()
	defer free()
	if fault != nil {
		return &FIPSError{Failure: FIPSConfigFault, File: fault.File, Err: fault}
	}
	file, err := checkModules(c_ossl_fips_module_file(from))
	if err != nil {
		return &FIPSError{Failure: FIPSModuleFailed, Text: err.Error()}
	}
	const size = 1024
	report := (*c_char)(c_malloc(size))
	defer c_free(unsafe.Pointer(report))
	if status := FIPSFailure(call(from, report, size)); status != fipsReady {
		return &FIPSError{Failure: status, File: file, Text: c_GoString(report)}
	}
	return nil
}

// FIPSConfiguration returns the configuration that the module would get now, for tests. The library
// must be loaded.
func FIPSConfiguration() string {
	from, free, _ := fipsFiles()
	defer free()
	text := c_ossl_fips_configuration(from)
	defer c_free(unsafe.Pointer(text))
	return c_GoString(text)
}

// FIPSModuleInfo queries the module that FIPS mode uses. ok is false if FIPS mode was not set up.
func FIPSModuleInfo() (m FIPSModule, ok bool) {
	var info c_ossl_fips_info
	if c_ossl_fips_module(&info) != 1 {
		return m, false
	}
	m = FIPSModule{Name: c_GoString(info.name), Version: c_GoString(info.version), Build: c_GoString(info.build),
		Path: c_GoString(c_ossl_fips_path()), Provider: FIPSProvider(), Library: c_GoString(c_ossl_fips_core_path()),
		Running: info.running == 1}
	return m, true
}

// FIPSProvider returns the name of the provider that FIPS mode uses or, before it is set up, would
// use. It is "" on 1.1.1. The library must be loaded.
func FIPSProvider() string {
	fipsMu.Lock()
	defer fipsMu.Unlock()
	if fipsDone {
		return c_GoString(c_ossl_fips_provider(nil))
	}
	from, free, _ := fipsFiles()
	defer free()
	return c_GoString(c_ossl_fips_provider(from))
}

// FIPSUnlisted returns the names of the providers that openssl.cnf activates and that are neither
// OpenSSL's nor known as FIPS modules. The library must be loaded.
func FIPSUnlisted() (names []string) {
	config, _ := ReadConfig()
	defer config.Close()
	if config == nil {
		return nil
	}
	list := c_ossl_fips_unlisted(config.p)
	defer c_free(unsafe.Pointer(list))
	for p := list; p != nil && *p != 0; p = (*c_char)(unsafe.Add(unsafe.Pointer(p), len(names[len(names)-1])+1)) {
		names = append(names, c_GoString(p))
	}
	return names
}

// fipsHasSignature reports whether the module has a signature algorithm, by OpenSSL's name.
func fipsHasSignature(name string) bool {
	s := c_CString(name)
	defer c_free(unsafe.Pointer(s))
	return c_ossl_fips_has_signature(s) == 1
}

// FIPSRandom fills b from the module's generator of secret bytes.
func FIPSRandom(b []byte) error {
	if len(b) > 0 && c_ossl_fips_random(bytePtr(b), c_size_t(len(b))) != 1 {
		return &Error{Op: "random bytes of the FIPS module"}
	}
	return nil
}

// FIPSVerify reports whether the FIPS module accepts a signature by the key of a certificate, given as
// DER. hash is a [HashName], or "" for algorithms that sign messages. pss means RSA-PSS.
func FIPSVerify(cert []byte, hash string, pss bool, signed, signature []byte) (bool, error) {
	name := cString(hash)
	defer c_free(unsafe.Pointer(name))
	var errs [errorSlots]c_ulong
	switch c_ossl_fips_verify(bytePtr(cert), c_size_t(len(cert)), name, c_int(flag(pss)), bytePtr(signed), c_size_t(len(signed)),
		bytePtr(signature), c_size_t(len(signature)), &errs[0]) {
	case 1:
		return true, nil
	case 0:
		return false, nil
	}
	return false, &Error{Op: "verify a signature", Codes: codes(&errs)}
}

// Roots are certificates that libcrypto trusts, in FIPS mode.
type Roots struct{ p *c_ossl_roots }

// NewRoots returns a store of certificates, given as DER, and, if system is set, of those that
// OpenSSL is configured to trust. FIPS mode must be set up.
func NewRoots(system bool, certs [][]byte) (*Roots, error) {
	var errs [errorSlots]c_ulong
	p := c_ossl_roots_new(c_int(flag(system)), &errs[0])
	if p == nil {
		return nil, &Error{Op: "make a store of certificates", Codes: codes(&errs)}
	}
	r := &Roots{p}
	runtime.AddCleanup(r, func(p *c_ossl_roots) { c_ossl_roots_free(p) }, p)
	for _, der := range certs {
		ok := c_ossl_roots_add(p, bytePtr(der), c_size_t(len(der)), &errs[0])
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
	host, ip := cString(q.Host), c_CBytes(q.IP)
	defer c_free(unsafe.Pointer(host))
	defer c_free(ip)
	query := c_ossl_roots_query{
		time:      c_int64_t(q.Time.Unix()),
		of_server: c_int32_t(flag(q.OfServer)),
		level:     c_int32_t(q.SecurityLevel),
		host:      host,
		ip_len:    c_size_t(len(q.IP)),
	}
	if len(q.IP) > 0 {
		query.ip = (*c_uint8_t)(ip)
	}
	answer := c_ossl_roots_verify(r.p, bytePtr(packed), c_size_t(len(packed)), &query)
	runtime.KeepAlive(r)
	defer c_free(unsafe.Pointer(answer.chain))
	if answer.no_memory == 1 {
		return nil, &Error{Op: "verify a chain", Codes: codes(&answer.errors)}
	}
	if answer.error != 0 {
		e := &VerifyError{Code: int(answer.error), Depth: int(answer.depth), Text: "the chain can't be parsed"}
		if e.Code > 0 {
			e.Text = c_GoString(c_ossl_verify_error(c_long(e.Code)))
		}
		return nil, e
	}
	return bytes.Clone(borrowed(answer.chain, answer.chain_len)), nil
}
