package keys_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"log"
	"os"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/keys"
)

// A server with a key in a hardware security module, by pkcs11-provider.
func ExampleLoadX509KeyPair() {
	cert, err := keys.LoadX509KeyPair("/etc/service/chain.pem", "pkcs11:token=service;object=tls;type=private",
		keys.WithProvider("pkcs11"),
		keys.WithPassphrase(func(string) ([]byte, error) {
			pin, err := os.ReadFile("/run/secrets/pin")
			return bytes.TrimSpace(pin), err
		}),
		keys.WithMaxSigners(14)) // the token has 16 sessions
	if err != nil {
		log.Fatal(err)
	}
	listener, err := ossl.Listen("tcp", ":443", &tls.Config{Certificates: []tls.Certificate{cert}})
	if err != nil {
		log.Fatal(err)
	}
	defer listener.Close()
}

// The key of a PKCS #12 file stays in OpenSSL's memory.
func ExampleLoad() {
	key, err := keys.Load("testdata/store/pair.p12",
		keys.WithPassphrase(func(string) ([]byte, error) { return []byte("store-secret"), nil }))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%v: %T\n", key, key.Public())
	// Output: key testdata/store/pair.p12: *ecdsa.PublicKey
}
