package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/ossl-go/ossl/keys"
)

// maxInput bounds the bytes of a file that is read as a whole.
const maxInput = 16 << 20

// readInput reads a file as a whole, or in if the name is "-". It returns when the context is done,
// because the writer of a terminal or of a named pipe may never come.
func readInput(ctx context.Context, in io.Reader, name string) ([]byte, error) {
	type result struct {
		text []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := readAll(in, name)
		done <- result{text, err}
	}()
	select {
	case r := <-done:
		return r.text, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func readAll(in io.Reader, name string) ([]byte, error) {
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, maxInput+1))
	if err == nil && len(text) > maxInput {
		err = fmt.Errorf("%s has more than %d bytes", name, maxInput)
	}
	return text, err
}

// readRoots reads the file of --roots.
func readRoots(ctx context.Context, name string) (*x509.CertPool, error) {
	certificates, err := readInput(ctx, nil, name)
	if err != nil {
		return nil, inputError("--roots", err)
	}
	if certificates, err = keys.NormalizePEM(certificates); err != nil {
		return nil, usageError("--roots: " + name + ": " + err.Error())
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(certificates) {
		return nil, usageError("--roots: " + name + " has no certificates in PEM")
	}
	return pool, nil
}

// inputError is the usage error of a flag's file that can't be read, or the context's error.
func inputError(flag string, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return usageError(flag + ": " + err.Error())
}
