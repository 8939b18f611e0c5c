package ossl

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"sync"

	"github.com/ossl-go/ossl/internal/libssl"
)

// envKeyLog names the environment variable with the file that the keys of all connections are
// written to, so that Wireshark can decrypt a capture of them.
const envKeyLog = "OSSL_KEYLOG"

// environmentFiles are the files that the environment names for keys and traces.
var environmentFiles appendedFiles

// appendedFiles are files to append to, by their names. They are never closed, since a Context may
// always write.
type appendedFiles struct {
	mu    sync.Mutex
	files map[string]*os.File // guarded by mu
}

var (
	privileged    = libssl.Privileged
	errPrivileged = errors.New("this program has more rights than the user who started it")
)

// open returns the file of a name, and whether it was opened now. It doesn't wait for the reader of a
// named pipe, but returns an error. In a privileged program it returns one too: the user who has set
// the environment could make the program append to any file, and read its keys.
func (a *appendedFiles) open(name string) (file *os.File, now bool, err error) {
	if privileged() {
		return nil, false, errPrivileged
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if file := a.files[name]; file != nil {
		return file, false, nil
	}
	if file, err = os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|nonblocking, 0o600); err != nil {
		return nil, false, err
	}
	if a.files == nil {
		a.files = make(map[string]*os.File)
	}
	a.files[name] = file
	return file, true, nil
}

// logKeys makes the Context write its keys to the file that the environment names, or the settings, in
// addition to the configuration's own KeyLogWriter.
func (c *Context) logKeys() error {
	name, field := os.Getenv(envKeyLog), envKeyLog
	if name == "" {
		name, field = c.opts.keyLog, "key_log"
	}
	if name == "" {
		return nil
	}
	if c.fips {
		return &ConfigError{Field: field, Reason: "keys don't leave the module in FIPS mode"}
	}
	file, now, err := environmentFiles.open(name)
	if err != nil {
		return &ConfigError{Field: field, Reason: "the file can't be written", Err: err}
	}
	if now {
		attributes := []any{"variable", field, "file", name}
		if info, err := file.Stat(); err == nil && exposure(info) != "" {
			attributes = append(attributes, "danger", exposure(info))
		}
		slog.Warn("ossl: the keys of all TLS connections are written to a file. Its readers can decrypt their traffic", attributes...)
	}
	if own := c.config.KeyLogWriter; own != nil {
		c.config.KeyLogWriter = io.MultiWriter(own, file)
	} else {
		c.config.KeyLogWriter = file
	}
	return nil
}
