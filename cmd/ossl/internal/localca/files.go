package localca

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"runtime"
)

// writePair writes a chain and its key to files that must not exist. Each appears when it is whole:
// the key first, and not at all if the certificate's file exists.
func writePair(certFile string, chain [][]byte, keyFile string, key crypto.Signer) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	err = writeNew(keyFile, text, 0o600)
	clear(der)
	clear(text)
	if err != nil {
		return err
	}
	var cert []byte
	for _, der := range chain {
		cert = append(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	if err := writeNew(certFile, cert, 0o644); err != nil {
		return errors.Join(err, os.Remove(keyFile))
	}
	return nil
}

// writeNew writes a file under a temporary name, and links it to its own, which fails if that
// exists. The error then wraps fs.ErrExist.
func writeNew(name string, text []byte, mode os.FileMode) error {
	temporary, err := os.CreateTemp(filepath.Dir(name), ".ossl-") // mode 0600, O_EXCL
	var failed *os.PathError
	if errors.As(err, &failed) { // the temporary name says nothing to the user
		return &os.PathError{Op: "create", Path: name, Err: failed.Err}
	} else if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	_, err = temporary.Write(text)
	if err == nil && runtime.GOOS != "windows" {
		err = temporary.Chmod(mode)
	}
	if err == nil {
		err = temporary.Sync()
	}
	if err = errors.Join(err, temporary.Close()); err != nil {
		return err
	}
	if err := os.Link(temporary.Name(), name); err != nil {
		var link *os.LinkError
		if errors.As(err, &link) {
			return &os.PathError{Op: "create", Path: name, Err: link.Err}
		}
		return err
	}
	return syncFolder(filepath.Dir(name))
}

// syncFolder makes new names in a folder last, on systems that can.
func syncFolder(folder string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
