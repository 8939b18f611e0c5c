package terminator

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ossl-go/ossl/httptls"
	"github.com/ossl-go/ossl/keys"
)

// keyOptions returns the options to load a pair's key. The key of a file that has no password gets an
// error with the remedy if it is encrypted; a token may have its PIN elsewhere.
func (p Pair) keyOptions() []keys.Option {
	if _, isFile := filePath(p.Key); p.Password == "" && !isFile {
		return nil
	}
	return []keys.Option{keys.WithPassphrase(func(string) ([]byte, error) {
		if p.Password == "" {
			return nil, errors.New("the key is encrypted: key-password-file names the file of its password")
		}
		return readPassword(p.Password)
	})}
}

// maxPassword bounds the bytes of the file of a password.
const maxPassword = 4096

// readPassword reads a password from a file that others can't read.
func readPassword(name string) ([]byte, error) {
	f, err := openPrivate(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text := make([]byte, maxPassword+1)
	n, err := readFull(f, text)
	if err != nil {
		clear(text)
		return nil, err
	}
	for n > 0 && (text[n-1] == '\n' || text[n-1] == '\r') {
		n--
	}
	if n == 0 || n > maxPassword {
		clear(text)
		return nil, fmt.Errorf("%s must hold a password of up to %d bytes", name, maxPassword)
	}
	return text[:n], nil
}

// newReloader loads a pair from files. The password's file is read again with the pair.
func (p Pair) newReloader() (*httptls.Reloader, error) {
	r, err := httptls.NewReloader(p.Cert, p.Key, p.keyOptions()...)
	if e := new(keys.Error); errors.As(err, &e) && strings.Contains(e.Reason, "unsupported kind") {
		return nil, fmt.Errorf("%w; see docs/KEYS.md", err)
	}
	return r, err
}
