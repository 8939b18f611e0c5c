package stdtls

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"reflect"
	"slices"
	"sync"
	"unsafe"

	"github.com/ossl-go/ossl/internal/ticketsecret"
)

// A Snapshot is a copy of a configuration with its fingerprint. It keeps everything that the
// fingerprint's pointers refer to alive, so that no other object can get the same address.
type Snapshot struct {
	Fingerprint string
	Config      *tls.Config // a copy that the user can't change
	roots       []PoolRoot  // of ClientCAs: servers send their names
}

// NewSnapshot takes a snapshot of a configuration as it is now, without its ServerName.
func NewSnapshot(config *tls.Config) *Snapshot {
	s := &Snapshot{Config: config.Clone()}
	s.Config.ServerName = ""
	s.Config.Certificates = slices.Clone(s.Config.Certificates)
	for i := range s.Config.Certificates {
		cert := &s.Config.Certificates[i]
		cert.Certificate = slices.Clone(cert.Certificate)
		cert.SignedCertificateTimestamps = slices.Clone(cert.SignedCertificateTimestamps)
	}
	if s.Config.ClientCAs != nil {
		s.roots, _ = PoolRoots(s.Config.ClientCAs)
	}
	s.Fingerprint = string(Fingerprint(s.Config))
	return s
}

// Fingerprint returns bytes that identify a configuration, except for its ServerName: clients often
// differ in that alone. Otherwise two configurations with the same fingerprint are equivalent:
// numbers and strings have equal values, and functions, interfaces, maps and pointers are identical.
// A copy made by Clone has the same fingerprint, unless either has been changed since.
//
// A fingerprint contains addresses, so it is valid only while everything that the configuration
// refers to is alive: see [Snapshot].
func Fingerprint(config *tls.Config) []byte {
	memory := unsafe.Pointer(config)
	if keys := ticketKeysLayout(); keys.ok {
		mu := (*sync.RWMutex)(unsafe.Add(memory, keys.mutex))
		mu.RLock()
		defer mu.RUnlock()
	}
	b := make([]byte, 0, 1024)
	for _, f := range configLayout().fields {
		b = f.appendTo(b, unsafe.Add(memory, f.offset))
	}
	if keys := ticketKeysLayout(); keys.ok { // each SetSessionTicketKeys makes a new list; a slice begins with its pointer
		b = appendBytes(b, unsafe.Add(memory, keys.keys), unsafe.Sizeof(uintptr(0)))
	}
	if pool := config.ClientCAs; pool != nil {
		roots, _ := PoolRoots(pool)
		b = appendHeader(b, roots)
	}
	return b
}

// FingerprintsAreComplete reports whether, in this Go version, configurations with the same
// fingerprint are equivalent: no field is unknown.
var FingerprintsAreComplete = sync.OnceValue(func() bool {
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
	// appendTo appends the field at p to a fingerprint.
	appendTo func(b []byte, p unsafe.Pointer) []byte
}

var configLayout = sync.OnceValue(func() (layout struct {
	fields []configField
	known  bool // every unexported field is a known one
}) {
	layout.known = true
	t := reflect.TypeFor[tls.Config]()
	for i := range t.NumField() {
		f := t.Field(i)
		if f.IsExported() && f.Name != "ServerName" {
			layout.fields = append(layout.fields, configField{f.Offset, f.Type.Size(), appenderOf(f.Type)})
			continue
		}
		switch f.Name {
		case "ServerName", "mutex", "sessionTicketKeys":
		case "autoSessionTicketKeys": // crypto/tls's own
		default:
			layout.known = false
		}
	}
	return layout
})

// appenderOf returns the function that appends a field of this type to a fingerprint. Strings, and
// slices of strings or numbers, are appended by their contents; certificates by appendCertificate;
// everything else by its bytes: numbers, flags, and pointers to values that must not be changed.
func appenderOf(t reflect.Type) func([]byte, unsafe.Pointer) []byte {
	switch {
	case t.Kind() == reflect.String:
		return func(b []byte, p unsafe.Pointer) []byte { return appendText(b, *(*string)(p)) }
	case t == reflect.TypeFor[[]string]():
		return func(b []byte, p unsafe.Pointer) []byte {
			list := *(*[]string)(p)
			b = appendLength(b, len(list), list == nil)
			for _, s := range list {
				b = appendText(b, s)
			}
			return b
		}
	case t == reflect.TypeFor[[]tls.Certificate]():
		return func(b []byte, p unsafe.Pointer) []byte {
			list := *(*[]tls.Certificate)(p)
			b = appendLength(b, len(list), list == nil)
			for i := range list {
				b = appendCertificate(b, &list[i])
			}
			return b
		}
	case t.Kind() == reflect.Slice && isNumber(t.Elem().Kind()):
		size := t.Elem().Size()
		return func(b []byte, p unsafe.Pointer) []byte {
			list := *(*[]byte)(p) // really of another type; its length counts elements
			b = appendLength(b, len(list), list == nil)
			return appendBytes(b, unsafe.Pointer(unsafe.SliceData(list)), uintptr(len(list))*size)
		}
	}
	size := t.Size()
	return func(b []byte, p unsafe.Pointer) []byte { return appendBytes(b, p, size) }
}

func isNumber(k reflect.Kind) bool { return k >= reflect.Bool && k <= reflect.Float64 }

func appendBytes(b []byte, p unsafe.Pointer, size uintptr) []byte {
	if size == 0 {
		return b
	}
	return append(b, unsafe.Slice((*byte)(p), size)...)
}

func appendLength(b []byte, n int, null bool) []byte {
	if null {
		n = -1
	}
	return binary.NativeEndian.AppendUint64(b, uint64(n))
}

func appendText(b []byte, s string) []byte {
	b = appendLength(b, len(s), false)
	return append(b, s...)
}

// appendHeader appends the address and the length of a slice.
func appendHeader[T any](b []byte, s []T) []byte {
	b = binary.NativeEndian.AppendUint64(b, uint64(uintptr(unsafe.Pointer(unsafe.SliceData(s)))))
	return appendLength(b, len(s), s == nil)
}

// appendCertificate appends the address of each part of a certificate: neither keys nor encodings
// are compared by their contents. Of the two lists that NewSnapshot copies, it appends the
// addresses of the elements.
func appendCertificate(b []byte, cert *tls.Certificate) []byte {
	for _, list := range [][][]byte{cert.Certificate, cert.SignedCertificateTimestamps} {
		b = appendLength(b, len(list), list == nil)
		for _, der := range list {
			b = appendHeader(b, der)
		}
	}
	b = appendBytes(b, unsafe.Pointer(&cert.PrivateKey), unsafe.Sizeof(cert.PrivateKey))
	b = appendHeader(b, cert.SupportedSignatureAlgorithms)
	b = appendHeader(b, cert.OCSPStaple)
	return binary.NativeEndian.AppendUint64(b, uint64(uintptr(unsafe.Pointer(cert.Leaf))))
}

// TicketKeys returns the key material that crypto/tls keeps of the secrets given to
// SetSessionTicketKeys, or of SessionTicketKey. The former can't be read through exported names: ok
// is false if this Go version keeps them in an unknown way. config must not be in use by another
// goroutine.
func TicketKeys(config *tls.Config) (set [][32]byte, ok bool) {
	if list := reflect.ValueOf(config).Elem().FieldByName("sessionTicketKeys"); list.IsValid() && list.Kind() == reflect.Slice {
		for i := range list.Len() {
			aes, mac := list.Index(i).FieldByName("aesKey"), list.Index(i).FieldByName("hmacKey")
			if !is16Bytes(aes) || !is16Bytes(mac) {
				return nil, false
			}
			var material [32]byte
			for k := range 16 {
				material[k], material[16+k] = byte(aes.Index(k).Uint()), byte(mac.Index(k).Uint())
			}
			set = append(set, material)
		}
	}
	//lint:ignore SA1019 deprecated, and still honoured by crypto/tls
	if secret := config.SessionTicketKey; len(set) == 0 && secret != [32]byte{} && !randomTicketKey(secret) {
		set = append(set, ticketsecret.Hash(secret))
	}
	return set, true
}

// randomTicketKey reports whether crypto/tls has put a value of its own into SessionTicketKey, by
// which it sees later whether the field was changed.
func randomTicketKey(secret [32]byte) bool { return bytes.HasPrefix(secret[:], []byte("DEPRECATED")) }

func is16Bytes(v reflect.Value) bool {
	return v.IsValid() && v.Kind() == reflect.Array && v.Len() == 16 && v.Type().Elem().Kind() == reflect.Uint8
}

// ticketKeysLayout has the offsets of the keys that SetSessionTicketKeys sets in a tls.Config, and
// of their lock.
var ticketKeysLayout = sync.OnceValue(func() (layout struct {
	mutex, keys uintptr
	ok          bool
}) {
	t := reflect.TypeFor[tls.Config]()
	mutex, hasMutex := t.FieldByName("mutex")
	keys, hasKeys := t.FieldByName("sessionTicketKeys")
	layout.ok = hasMutex && hasKeys && mutex.Type == reflect.TypeFor[sync.RWMutex]() && keys.Type.Kind() == reflect.Slice
	layout.mutex, layout.keys = mutex.Offset, keys.Offset
	return layout
})
