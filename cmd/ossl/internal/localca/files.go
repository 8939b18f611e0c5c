package localca

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/ossl-go/ossl/cmd/ossl/internal/wholefile"
)

// keyIn returns the key in a file or, if there is no such file, a new key, which it has made. The error
// for a key of another kind wraps fs.ErrExist.
func keyIn(file string, kind Kind) (key crypto.Signer, made bool, err error) {
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
		key, err := newKey(kind)
		return key, true, err
	}
	if err := checkFile(file, 0); err != nil {
		return nil, false, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, false, err
	}
	defer clear(text)
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, false, existing(file, "holds no key that can be used")
	}
	defer clear(block.Bytes)
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, false, existing(file, "holds no key that can be used")
	}
	key, ok := parsed.(crypto.Signer)
	if !ok || !kind.is(key) {
		return nil, false, existing(file, fmt.Sprintf("holds a key of another kind than %s", kind))
	}
	return key, false, nil
}

func existing(file, reason string) error {
	return &fs.PathError{Op: "create", Path: file, Err: fmt.Errorf("%w, and %s", fs.ErrExist, reason)}
}

// writePair writes a certificate to a file that must not exist, and before it its key, unless that is
// there already.
func writePair(certFile string, cert []byte, keyFile string, key crypto.Signer, keyMade bool) error {
	certText := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	files := []wholefile.File{{Name: certFile, Mode: 0o644, Text: certText}}
	if keyMade {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			return err
		}
		text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
		defer clear(text)
		clear(der)
		files = append([]wholefile.File{{Name: keyFile, Mode: 0o600, Text: text}}, files...)
	}
	return wholefile.Create(files...)
}
