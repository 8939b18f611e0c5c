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
	for _, i := range configLayout().lists {
		if list := reflect.ValueOf(s.Config).Elem().Field(i); !list.IsNil() {
			own := reflect.MakeSlice(list.Type(), list.Len(), list.Len())
			reflect.Copy(own, list)
			list.Set(own)
		}
	}
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

// Matches reports whether config has the snapshot's fingerprint. It builds none: with many
// certificates that takes long, and connections are made more often than configurations.
func (s *Snapshot) Matches(config *tls.Config) bool {
	own, other := unsafe.Pointer(s.Config), unsafe.Pointer(config)
	if keys := ticketKeysLayout(); keys.ok {
		mu := (*sync.RWMutex)(unsafe.Add(other, keys.mutex))
		mu.RLock()
		defer mu.RUnlock()
		if !sameBytes(unsafe.Add(own, keys.keys), unsafe.Add(other, keys.keys), unsafe.Sizeof(uintptr(0))) {
			return false
		}
	}
	for _, f := range configLayout().fields {
		if !f.same(unsafe.Add(own, f.offset), unsafe.Add(other, f.offset)) {
			return false
		}
	}
	if config.ClientCAs == nil {
		return true
	}
	roots, _ := PoolRoots(config.ClientCAs)
	return sameHeader(s.roots, roots)
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
	offset uintptr
	fieldKind
}

// A fieldKind has the functions for the fields of a type.
type fieldKind struct {
	appendTo func(b []byte, p unsafe.Pointer) []byte // appends the field at p to a fingerprint
	same     func(p, q unsafe.Pointer) bool          // reports whether it would append the same for p and q
}

var configLayout = sync.OnceValue(func() (layout struct {
	fields []configField
	lists  []int // the indexes of the fields that are compared by their elements, except Certificates
	known  bool  // every unexported field is a known one
}) {
	layout.known = true
	t := reflect.TypeFor[tls.Config]()
	for i := range t.NumField() {
		f := t.Field(i)
		if f.IsExported() && f.Name != "ServerName" {
			kind := kindOf(f.Type)
			if f.Name == "SessionTicketKey" {
				kind = secretKind
			}
			if f.Type.Kind() == reflect.Slice && (f.Type.Elem().Kind() == reflect.String || isNumber(f.Type.Elem().Kind())) {
				layout.lists = append(layout.lists, i)
			}
			layout.fields = append(layout.fields, configField{f.Offset, kind})
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

// kindOf returns the functions for fields of this type. Strings, and slices of strings or numbers, are
// appended and compared by their contents; certificates by appendCertificate and sameCertificate;
// everything else by its bytes: numbers, flags, and pointers to values that must not be changed.
func kindOf(t reflect.Type) fieldKind {
	switch {
	case t.Kind() == reflect.String:
		return fieldKind{
			func(b []byte, p unsafe.Pointer) []byte { return appendText(b, *(*string)(p)) },
			func(p, q unsafe.Pointer) bool { return *(*string)(p) == *(*string)(q) },
		}
	case t == reflect.TypeFor[[]string]():
		return listKind(func(b []byte, s *string) []byte { return appendText(b, *s) }, func(s, r *string) bool { return *s == *r })
	case t == reflect.TypeFor[[]tls.Certificate]():
		return listKind(appendCertificate, sameCertificate)
	case t.Kind() == reflect.Slice && isNumber(t.Elem().Kind()):
		size := t.Elem().Size()
		return fieldKind{
			func(b []byte, p unsafe.Pointer) []byte {
				list := *(*[]byte)(p) // really of another type; its length counts elements
				b = appendLength(b, len(list), list == nil)
				return appendBytes(b, unsafe.Pointer(unsafe.SliceData(list)), uintptr(len(list))*size)
			},
			func(p, q unsafe.Pointer) bool {
				list, other := *(*[]byte)(p), *(*[]byte)(q) // likewise
				return len(list) == len(other) && (list == nil) == (other == nil) && sameBytes(unsafe.Pointer(unsafe.SliceData(list)),
					unsafe.Pointer(unsafe.SliceData(other)), uintptr(len(list))*size)
			},
		}
	}
	size := t.Size()
	return fieldKind{
		func(b []byte, p unsafe.Pointer) []byte { return appendBytes(b, p, size) },
		func(p, q unsafe.Pointer) bool { return sameBytes(p, q, size) },
	}
}

// secretKind is for SessionTicketKey. If it is not set, crypto/tls's servers put a random value into it.
var secretKind = fieldKind{
	func(b []byte, p unsafe.Pointer) []byte { secret := secretAt(p); return append(b, secret[:]...) },
	func(p, q unsafe.Pointer) bool { return secretAt(p) == secretAt(q) },
}

func secretAt(p unsafe.Pointer) [32]byte {
	if secret := *(*[32]byte)(p); !randomTicketKey(secret) {
		return secret
	}
	return [32]byte{}
}

// listKind returns the functions for slices, from those for their elements.
func listKind[T any](appendTo func([]byte, *T) []byte, same func(a, b *T) bool) fieldKind {
	return fieldKind{
		func(b []byte, p unsafe.Pointer) []byte {
			list := *(*[]T)(p)
			b = appendLength(b, len(list), list == nil)
			for i := range list {
				b = appendTo(b, &list[i])
			}
			return b
		},
		func(p, q unsafe.Pointer) bool { return sameList(*(*[]T)(p), *(*[]T)(q), same) },
	}
}

func sameList[T any](list, other []T, same func(a, b *T) bool) bool {
	if len(list) != len(other) || (list == nil) != (other == nil) {
		return false
	}
	for i := range list {
		if !same(&list[i], &other[i]) {
			return false
		}
	}
	return true
}

func isNumber(k reflect.Kind) bool { return k >= reflect.Bool && k <= reflect.Float64 }

func appendBytes(b []byte, p unsafe.Pointer, size uintptr) []byte {
	if size == 0 {
		return b
	}
	return append(b, unsafe.Slice((*byte)(p), size)...)
}

func sameBytes(p, q unsafe.Pointer, size uintptr) bool {
	return size == 0 || string(unsafe.Slice((*byte)(p), size)) == string(unsafe.Slice((*byte)(q), size))
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

// sameHeader reports whether appendHeader appends the same for two slices.
func sameHeader[T any](s, r []T) bool {
	return unsafe.SliceData(s) == unsafe.SliceData(r) && len(s) == len(r)
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

// sameCertificate reports whether appendCertificate appends the same for two certificates.
func sameCertificate(a, b *tls.Certificate) bool {
	sameDER := func(a, b *[]byte) bool { return sameHeader(*a, *b) }
	return sameList(a.Certificate, b.Certificate, sameDER) &&
		sameBytes(unsafe.Pointer(&a.PrivateKey), unsafe.Pointer(&b.PrivateKey), unsafe.Sizeof(a.PrivateKey)) &&
		sameHeader(a.SupportedSignatureAlgorithms, b.SupportedSignatureAlgorithms) &&
		sameHeader(a.OCSPStaple, b.OCSPStaple) &&
		sameList(a.SignedCertificateTimestamps, b.SignedCertificateTimestamps, sameDER) && a.Leaf == b.Leaf
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
