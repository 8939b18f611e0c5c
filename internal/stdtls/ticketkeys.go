package stdtls

import (
	"bytes"
	"crypto/tls"
	"reflect"
	"sync"

	"github.com/ossl-go/ossl/internal/ticketsecret"
)

// TicketKeys returns the key material that crypto/tls keeps of the secrets given to
// SetSessionTicketKeys, or of SessionTicketKey. The former can't be read through exported names: ok
// is false if this version of Go keeps them in an unknown way. config must not be in use by another
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
