package ossl

import (
	"crypto/tls"
	"encoding/binary"
	"reflect"
	"slices"
	"sync"
	"unsafe"
)

// A configPrint is a configuration as bytes, with references that keep those bytes valid. Two configurations with the same bytes
// are equivalent: numbers and strings have equal values, and functions, interfaces, maps and pointers are identical. A copy made
// by Clone has the same bytes, unless the configuration or the copy was changed since.
//
// A configPrint keeps all that its pointers refer to alive, so that no other object can have the same address.
type configPrint struct {
	bytes  string
	config *tls.Config // a copy that the user can't change
	roots  []poolRoot  // of ClientCAs: servers send their names
}

// printConfig takes a print of a configuration as it is now.
func printConfig(config *tls.Config) *configPrint {
	p := &configPrint{config: config.Clone()}
	p.config.Certificates = slices.Clone(p.config.Certificates)
	for i := range p.config.Certificates {
		cert := &p.config.Certificates[i]
		cert.Certificate = slices.Clone(cert.Certificate)
		cert.SignedCertificateTimestamps = slices.Clone(cert.SignedCertificateTimestamps)
	}
	if p.config.ClientCAs != nil {
		p.roots, _ = rootsOf(p.config.ClientCAs)
	}
	p.bytes = string(configBytes(p.config))
	return p
}

// configBytes returns the bytes of a configuration's print. They are valid only while everything that it refers to is alive.
func configBytes(config *tls.Config) []byte {
	memory := unsafe.Pointer(config)
	if keys := ticketKeysLayout(); keys.ok {
		mu := (*sync.RWMutex)(unsafe.Add(memory, keys.mutex))
		mu.RLock()
		defer mu.RUnlock()
	}
	print := make([]byte, 0, 1024)
	for _, f := range configLayout().fields {
		print = f.appendTo(print, unsafe.Add(memory, f.offset))
	}
	if keys := ticketKeysLayout(); keys.ok { // each SetSessionTicketKeys makes a new list; a slice begins with its pointer
		print = appendBytes(print, unsafe.Add(memory, keys.keys), unsafe.Sizeof(uintptr(0)))
	}
	if pool := config.ClientCAs; pool != nil {
		roots, _ := rootsOf(pool)
		print = appendHeader(print, roots)
	}
	return print
}

// canShare reports whether, in this version of Go, configurations with the same print are equivalent: no field is unknown.
var canShare = sync.OnceValue(func() bool {
	cert, known := reflect.TypeFor[tls.Certificate](), true
	for i := range cert.NumField() { // appendCertificate
		known = known && slices.Contains([]string{"Certificate", "PrivateKey", "SupportedSignatureAlgorithms", "OCSPStaple",
			"SignedCertificateTimestamps", "Leaf"}, cert.Field(i).Name)
	}
	return known && configLayout().known && ticketKeysLayout().ok && poolLayout().ok
})

// A configField is an exported field of tls.Config.
type configField struct {
	offset, size uintptr
	// appendTo appends the field at p to a print.
	appendTo func(print []byte, p unsafe.Pointer) []byte
}

var configLayout = sync.OnceValue(func() (layout struct {
	fields []configField
	known  bool // every unexported field is a known one
}) {
	layout.known = true
	t := reflect.TypeFor[tls.Config]()
	for i := range t.NumField() {
		f := t.Field(i)
		if f.IsExported() {
			layout.fields = append(layout.fields, configField{f.Offset, f.Type.Size(), appenderOf(f.Type)})
			continue
		}
		switch f.Name {
		case "mutex", "sessionTicketKeys":
		case "autoSessionTicketKeys": // crypto/tls's own
		default:
			layout.known = false
		}
	}
	return layout
})

// appenderOf returns the function that appends a field of this type to a print. Strings, and slices of strings or numbers, are
// appended by their contents; certificates by appendCertificate; all else by its bytes: numbers, flags, and pointers to values
// that must not be changed.
func appenderOf(t reflect.Type) func([]byte, unsafe.Pointer) []byte {
	switch {
	case t.Kind() == reflect.String:
		return func(print []byte, p unsafe.Pointer) []byte { return appendText(print, *(*string)(p)) }
	case t == reflect.TypeFor[[]string]():
		return func(print []byte, p unsafe.Pointer) []byte {
			list := *(*[]string)(p)
			print = appendLength(print, len(list), list == nil)
			for _, s := range list {
				print = appendText(print, s)
			}
			return print
		}
	case t == reflect.TypeFor[[]tls.Certificate]():
		return func(print []byte, p unsafe.Pointer) []byte {
			list := *(*[]tls.Certificate)(p)
			print = appendLength(print, len(list), list == nil)
			for i := range list {
				print = appendCertificate(print, &list[i])
			}
			return print
		}
	case t.Kind() == reflect.Slice && isNumber(t.Elem().Kind()):
		size := t.Elem().Size()
		return func(print []byte, p unsafe.Pointer) []byte {
			list := *(*[]byte)(p) // really of another type; its length counts elements
			print = appendLength(print, len(list), list == nil)
			return appendBytes(print, unsafe.Pointer(unsafe.SliceData(list)), uintptr(len(list))*size)
		}
	}
	size := t.Size()
	return func(print []byte, p unsafe.Pointer) []byte { return appendBytes(print, p, size) }
}

func isNumber(k reflect.Kind) bool { return k >= reflect.Bool && k <= reflect.Float64 }

func appendBytes(print []byte, p unsafe.Pointer, size uintptr) []byte {
	if size == 0 {
		return print
	}
	return append(print, unsafe.Slice((*byte)(p), size)...)
}

func appendLength(print []byte, n int, null bool) []byte {
	if null {
		n = -1
	}
	return binary.NativeEndian.AppendUint64(print, uint64(n))
}

func appendText(print []byte, s string) []byte {
	print = appendLength(print, len(s), false)
	return append(print, s...)
}

// appendHeader appends the address and the length of a slice.
func appendHeader[T any](print []byte, s []T) []byte {
	print = binary.NativeEndian.AppendUint64(print, uint64(uintptr(unsafe.Pointer(unsafe.SliceData(s)))))
	return appendLength(print, len(s), s == nil)
}

// appendCertificate appends the address of each part of a certificate: neither keys nor encodings are compared by their contents.
// Of the two lists that printConfig copies, it appends the addresses of the elements.
func appendCertificate(print []byte, cert *tls.Certificate) []byte {
	for _, list := range [][][]byte{cert.Certificate, cert.SignedCertificateTimestamps} {
		print = appendLength(print, len(list), list == nil)
		for _, der := range list {
			print = appendHeader(print, der)
		}
	}
	print = appendBytes(print, unsafe.Pointer(&cert.PrivateKey), unsafe.Sizeof(cert.PrivateKey))
	print = appendHeader(print, cert.SupportedSignatureAlgorithms)
	print = appendHeader(print, cert.OCSPStaple)
	return binary.NativeEndian.AppendUint64(print, uint64(uintptr(unsafe.Pointer(cert.Leaf))))
}
