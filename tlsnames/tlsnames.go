// Package tlsnames has the names and numbers of IANA's registries for TLS: cipher suites, groups,
// signature schemes, alerts and extensions. It also has OpenSSL's names and crypto/tls's.
//
// The source is [Transport Layer Security (TLS) Parameters], as of November 2026. Values that peers
// use without registration are there too, such as values from drafts. The package needs neither cgo
// nor OpenSSL, and imports the standard library only.
//
// [Transport Layer Security (TLS) Parameters]: https://www.iana.org/assignments/tls-parameters
package tlsnames

import (
	"iter"
	"strings"
	"sync"
	"sync/atomic"
)

// An Entry is a value of a registry. The fields after Name are set in [Groups] and
// [SignatureSchemes] only.
type Entry struct {
	ID   uint16 // on the wire
	Name string // IANA's: "secp256r1"

	// OpenSSL is the name in OpenSSL's lists of groups or signature algorithms, such as "prime256v1" or
	// "RSA+SHA256". It is empty if no OpenSSL has the value, or none in TLS 1.3, nor with SHA-1.
	OpenSSL string

	// Since is the first OpenSSL release that has the value, such as "3.5.0". It is empty if all
	// releases with TLS 1.2 have a group, and all with TLS 1.3 a signature scheme.
	Since string

	// Go is the name of crypto/tls's constant, such as "CurveP256" or "PSSWithSHA256", if a Go
	// release has one.
	Go string
}

// A Registry is a table of names. It is safe for concurrent use.
type Registry struct {
	names   []name
	entries []Entry

	pages  atomic.Pointer[[256]*[256]uint16] // by the two bytes of an ID: 1 + the position of its entry
	once   sync.Once
	byName map[string]uint16 // by the names in lower case
}

// A name is an entry that has no other columns.
type name struct {
	id   uint16
	name string
}

// All returns the entries of a registry, mostly in the order of their IDs.
func (r *Registry) All() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for i := range len(r.names) + len(r.entries) {
			if !yield(r.at(i)) {
				return
			}
		}
	}
}

// Lookup returns the entry with an ID. It reports whether there is one.
func (r *Registry) Lookup(id uint16) (Entry, bool) {
	i := r.find(id)
	if i < 0 {
		return Entry{}, false
	}
	return r.at(i), true
}

// Name returns IANA's name of an ID, or "" if it has none.
func (r *Registry) Name(id uint16) string {
	i := r.find(id)
	switch {
	case i < 0:
		return ""
	case r.names != nil:
		return r.names[i].name
	}
	return r.entries[i].Name
}

// ID returns the number of an IANA name. It reports whether there is such a name. Case is ignored:
// libraries write "x25519" and "X25519".
func (r *Registry) ID(name string) (id uint16, ok bool) {
	r.once.Do(func() {
		r.byName = make(map[string]uint16, len(r.names)+len(r.entries))
		for e := range r.All() {
			r.byName[strings.ToLower(e.Name)] = e.ID
		}
	})
	id, ok = r.byName[strings.ToLower(name)]
	return id, ok
}

func (r *Registry) at(i int) Entry {
	if r.names != nil {
		return Entry{ID: r.names[i].id, Name: r.names[i].name}
	}
	return r.entries[i]
}

// find returns the position of an ID, or -1.
func (r *Registry) find(id uint16) int {
	pages := r.pages.Load()
	if pages == nil {
		pages = r.index()
	}
	if page := pages[id>>8]; page != nil {
		return int(page[id&0xff]) - 1
	}
	return -1
}

func (r *Registry) index() *[256]*[256]uint16 {
	pages, n := new([256]*[256]uint16), uint16(0)
	for e := range r.All() {
		n++
		if pages[e.ID>>8] == nil {
			pages[e.ID>>8] = new([256]uint16)
		}
		pages[e.ID>>8][e.ID&0xff] = n
	}
	r.pages.Store(pages)
	return pages
}

// cipherWords are IANA's names of parts of cipher suites, and OpenSSL's.
var cipherWords = strings.NewReplacer("AES_", "AES", "CAMELLIA_", "CAMELLIA", "ARIA_", "ARIA", "3DES_EDE_CBC", "DES-CBC3",
	"DES_CBC", "DES-CBC", "IDEA_CBC", "IDEA-CBC", "RC4_128", "RC4", "_CBC_", "-", "CCM_8", "CCM8",
	"POLY1305_SHA256", "POLY1305", "_", "-")

// pskCipherWords are the same of suites with pre-shared keys, which say CBC.
var pskCipherWords = strings.NewReplacer("AES_", "AES", "CCM_8", "CCM8", "POLY1305_SHA256", "POLY1305", "_", "-")

// OpenSSLSuite returns OpenSSL's name of a cipher suite, from IANA's: openssl-ciphers(1). It is ""
// for the suites that use Camellia with GCM or ARIA with CBC, which no OpenSSL has, and for TLS 1.2
// suites with other key exchanges than RSA, DHE, ECDHE, and PSK and ECDHE_PSK with AES or ChaCha20.
func OpenSSLSuite(name string) string {
	exchange, cipher, ok := strings.Cut(strings.TrimPrefix(name, "TLS_"), "_WITH_")
	if !ok {
		return name // a TLS 1.3 suite
	}
	switch exchange {
	case "RSA":
		exchange = ""
	case "ECDHE_RSA", "ECDHE_ECDSA", "DHE_RSA", "DHE_DSS":
		if exchange == "ECDHE_RSA" && strings.HasPrefix(cipher, "ARIA") {
			exchange = "ECDHE" // ECDHE-ARIA128-GCM-SHA256
		}
		exchange = strings.ReplaceAll(exchange, "_", "-") + "-"
	case "PSK", "ECDHE_PSK":
		if !strings.HasPrefix(cipher, "AES_") && !strings.HasPrefix(cipher, "CHACHA20_") {
			return ""
		}
		return strings.ReplaceAll(exchange, "_", "-") + "-" + pskCipherWords.Replace(cipher)
	default:
		return ""
	}
	if strings.HasPrefix(cipher, "CAMELLIA") && strings.Contains(cipher, "_GCM_") ||
		strings.HasPrefix(cipher, "ARIA") && strings.Contains(cipher, "_CBC_") {
		return ""
	}
	return exchange + cipherWords.Replace(cipher)
}
