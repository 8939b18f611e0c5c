package keys

import (
	"crypto/tls"
	"encoding/pem"

	"github.com/ossl-go/ossl/internal/libssl"
)

// mldsaIn returns the algorithm of the ML-DSA key in a file that OpenSSL could not load, or 0. It is
// for the error.
func mldsaIn(uri string) tls.SignatureScheme {
	text := contentOf(uri)
	defer clear(text)
	if scheme := libssl.MLDSAPrivateInfo(text); scheme != 0 {
		return scheme
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		scheme := libssl.MLDSAPrivateInfo(block.Bytes)
		clear(block.Bytes)
		if block.Type == "PRIVATE KEY" && scheme != 0 {
			return scheme
		}
	}
	return 0
}
