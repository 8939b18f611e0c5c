package libssl

import (
	"slices"
	"syscall"
)

// An Error is the content of OpenSSL's error queue after a failed operation.
type Error struct {
	Op      string
	Setting string   // the setting that was refused, for contexts
	Codes   []uint64 // packed, oldest first
}

func (e *Error) Error() string {
	s := e.Op
	if e.Setting != "" {
		s += ": " + e.Setting
	}
	if reason := e.Reason(); reason != "" {
		s += ": " + reason
	}
	return s
}

// Reason returns OpenSSL's words for the first code that has any.
func (e *Error) Reason() string {
	for _, code := range e.Codes {
		if reason := Reason(code); reason != "" {
			return reason
		}
	}
	return ""
}

// The kinds of errors that Go distinguishes, as shim.h numbers them.
const (
	errorOther = iota
	errorSystem
	errorVersion
	errorLength
	errorNoScheme
)

func (e *Error) is(kind int) bool {
	return slices.ContainsFunc(e.Codes, func(code uint64) bool {
		k, _ := errorKind(code)
		return k == kind
	})
}

// VersionRefused reports whether libssl refused the version in a record's header.
func (e *Error) VersionRefused() bool { return e.is(errorVersion) }

// LengthRefused reports whether libssl refused the length in a record's header.
func (e *Error) LengthRefused() bool { return e.is(errorLength) }

// Errno returns the first error of the operating system, or 0 if there is none.
func (e *Error) Errno() syscall.Errno {
	for _, code := range e.Codes {
		if kind, errno := errorKind(code); kind == errorSystem {
			return errno
		}
	}
	return 0
}

// WithoutFileLookup returns e without the errors of OSSL_STORE_open(3)'s search for a file and for
// a scheme of the URI's name, which comes before it asks the provider.
func (e *Error) WithoutFileLookup() *Error {
	codes := slices.DeleteFunc(slices.Clone(e.Codes), func(code uint64) bool {
		kind, _ := errorKind(code)
		return kind == errorSystem || kind == errorNoScheme
	})
	return &Error{Op: e.Op, Setting: e.Setting, Codes: codes}
}
