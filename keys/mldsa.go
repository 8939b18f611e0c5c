package keys

import (
	"crypto/tls"
	"encoding/pem"
	"io"
	"os"
	"strings"

	"github.com/ossl-go/ossl/internal/libssl"
)

// maxKeyFile is the size of the files in bytes that are searched for an ML-DSA key.
const maxKeyFile = 1 << 16

// mldsaIn returns the algorithm of the ML-DSA key in a file that OpenSSL could not load, or 0. It is
// for the error.
func mldsaIn(uri string) tls.SignatureScheme {
	name := strings.TrimPrefix(uri, "file:")
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() { // to open a pipe would wait for a writer
		return 0
	}
	file, err := os.Open(name)
	if err != nil {
		return 0
	}
	defer file.Close()
	text := make([]byte, maxKeyFile)
	defer clear(text)
	n, _ := io.ReadFull(file, text)
	if scheme := libssl.MLDSAPrivateInfo(text[:n]); scheme != 0 {
		return scheme
	}
	for block, rest := pem.Decode(text[:n]); block != nil; block, rest = pem.Decode(rest) {
		scheme := libssl.MLDSAPrivateInfo(block.Bytes)
		clear(block.Bytes)
		if block.Type == "PRIVATE KEY" && scheme != 0 {
			return scheme
		}
	}
	return 0
}
