package ossl

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"

	"github.com/ossl-go/ossl/internal/libssl"
)

// LibraryInfo describes the OpenSSL in use. The values come from the library itself, not from the
// name of its file.
type LibraryInfo struct {
	Version     string // "3.0.19", "1.1.1w"
	VersionText string // "OpenSSL 3.0.19 27 Jan 2026"
	Path        string // libssl's path, without symbolic links
	CryptoPath  string // of libcrypto

	// Object is the SHA-256 hash of the object with this module's C code, if the program was built
	// without cgo, with the module ossl/nocgo. It is empty if cgo compiled the code.
	Object string

	// FIPS reports whether WithFIPS works: the library's FIPS module can be loaded, and passes its
	// self-test with the host's configuration.
	FIPS bool
	// FIPSRequired is the reason, other than the program itself, why all Contexts are in FIPS mode:
	// the environment variable OSSL_FIPS, the kernel, or the default properties of the library or in
	// the host's configuration. It is empty if there is none.
	FIPSRequired string
	// FIPSUnknown is the reason why it is unknown whether FIPS mode is required, or nil if it is known.
	// It is set if the kernel's setting or a file of the host's configuration can't be read. No Context
	// can be made until it can.
	FIPSUnknown error

	HostPolicy HostPolicy // the restrictions on TLS in the host's configuration

	// Shards is the number of parts that a Context made now has, if WithShards doesn't say otherwise.
	Shards int
}

// Library loads OpenSSL, if that has not happened yet, and describes it. The error wraps
// [ErrUnavailable] if no usable library is found, or is a [*ConfigError] if OSSL_FIPS, OSSL_SLIM,
// OSSL_TRIM or OSSL_SHARDS has an unknown value.
func Library() (LibraryInfo, error) {
	lib, err := loadLibrary("")
	if err != nil {
		return LibraryInfo{}, err
	}
	required, err := fipsRequired()
	if e, ok := err.(*ConfigError); ok && e.Field == envFIPS {
		return LibraryInfo{}, err
	}
	host := theHost()
	info := LibraryInfo{
		FIPSRequired: required,
		FIPSUnknown:  err,
		Version:      lib.Version(),
		VersionText:  lib.Text,
		Path:         lib.Path,
		CryptoPath:   lib.CryptoPath,
		Object:       libssl.ObjectHash(),
		FIPS:         hasFIPS(),
		HostPolicy:   HostPolicy(host.Policy).clone(),
		Shards:       new(options).shardCount(),
	}
	if info.HostPolicy.Err == nil && required == "" {
		info.HostPolicy.Err = host.Dropped
	}
	return info, nil
}

// hasFIPS reports whether there is a FIPS module that works. It must load the module for this, so
// it remembers that there is one that works, or none at all. Other failures may pass.
func hasFIPS() bool {
	if works := worksFIPS.Load(); works != nil {
		return *works
	}
	err := libssl.TryFIPS()
	works := err == nil
	var e *libssl.FIPSError
	if works || errors.As(err, &e) && e.NoModule() {
		worksFIPS.Store(&works)
	}
	return works
}

var worksFIPS atomic.Pointer[bool]

// A libraryLoadError is an error of internal/libssl for a library that can't be loaded, with this
// package's prefix.
type libraryLoadError struct{ err error }

func (e *libraryLoadError) Error() string { return "ossl: " + e.err.Error() }
func (e *libraryLoadError) Unwrap() error { return e.err }

// shardsOfEnvironment returns the number of shards that the environment asks for, 0 if it names none.
func shardsOfEnvironment() (int, error) {
	named := os.Getenv(libssl.EnvShards)
	if named == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(named)
	if err != nil || n < 1 || n > libssl.MaxShards {
		return 0, &ConfigError{Field: libssl.EnvShards, Reason: fmt.Sprintf("%q is not a number from 1 to %d", named, libssl.MaxShards)}
	}
	return n, nil
}

// shardCount returns the number of shards of a Context with these options. The library must be loaded.
func (o *options) shardCount() int {
	n := o.shards
	if n == 0 {
		n, _ = shardsOfEnvironment() // loadLibrary has refused others
	}
	return libssl.Shards(n)
}

func loadLibrary(spec string) (*libssl.Library, error) {
	if slim := os.Getenv(libssl.EnvSlim); slim != "" && slim != "off" {
		return nil, &ConfigError{Field: libssl.EnvSlim, Reason: fmt.Sprintf("%q is not %q", slim, "off")}
	}
	if trim := os.Getenv(envTrim); trim != "" && trim != "off" {
		return nil, &ConfigError{Field: envTrim, Reason: fmt.Sprintf("%q is not %q", trim, "off")}
	}
	if _, err := shardsOfEnvironment(); err != nil {
		return nil, err
	}
	lib, err := libssl.Load(spec)
	if err != nil {
		return nil, &libraryLoadError{err}
	}
	return lib, nil
}
