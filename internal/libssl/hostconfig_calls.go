package libssl

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// A Config is the host's openssl.cnf, with the files that it includes. A file that doesn't exist is
// an empty one, as for libcrypto.
type Config struct {
	File string
	text []byte
	p    *c_ossl_config
}

// ConfigFile returns the file that libcrypto reads its configuration from by default, or "".
func ConfigFile() string {
	file := c_ossl_config_file()
	defer c_free(unsafe.Pointer(file))
	return c_GoString(file)
}

// ReadConfig reads the host's openssl.cnf anew. If the fault is Missing, it comes with the rest of
// the configuration; other faults come with nil. The caller must call Close, which takes nil. The
// library must be loaded.
func ReadConfig() (*Config, *ConfigFault) {
	file := c_ossl_config_file()
	defer c_free(unsafe.Pointer(file))
	if file == nil {
		return nil, &ConfigFault{File: "openssl.cnf", At: "openssl.cnf", Err: syscall.ENOMEM}
	}
	return readConfigFile(c_GoString(file))
}

// hostConfig is the text of the host's openssl.cnf, once it could be read without a fault, and idle the
// same, parsed, if nobody uses it: loading the library and the first Context take it in turn.
var hostConfig, idle atomic.Pointer[Config]

// HostConfig returns the host's openssl.cnf as it was when the library was loaded and read it or, if
// it had a fault then, as [ReadConfig] returns it.
func HostConfig() (*Config, *ConfigFault) {
	if c := idle.Swap(nil); c != nil {
		return c, nil
	}
	if c := hostConfig.Load(); c != nil {
		p, err := parseConfig(c.text)
		if err != nil {
			return nil, &ConfigFault{File: c.File, At: c.File, Err: err}
		}
		return &Config{c.File, c.text, p}, nil
	}
	c, fault := ReadConfig()
	c.remember(fault)
	return c, fault
}

// remember keeps the text for HostConfig, if there is no fault.
func (c *Config) remember(fault *ConfigFault) {
	if fault == nil {
		hostConfig.Store(&Config{File: c.File, text: c.text})
	}
}

// lend leaves the configuration of HostConfig to its next caller. c must not be used again.
func (c *Config) lend() {
	if !idle.CompareAndSwap(nil, c) {
		c.Close()
	}
}

func readConfigFile(file string) (*Config, *ConfigFault) {
	r := &configReader{file: file, expand: expandConfig, new: c_ossl_version() >= Version3_0}
	text, fault := r.read()
	if text == nil {
		return nil, fault
	}
	p, err := parseConfig(text)
	if err != nil {
		return nil, &ConfigFault{File: file, At: file, Err: err,
			NoAlgorithms: fault == nil && !errors.Is(err, syscall.ENOMEM) && !bytes.Contains(text, []byte("alg_section"))}
	}
	return &Config{file, text, p}, fault
}

// Close frees the configuration.
func (c *Config) Close() {
	if c != nil {
		c_ossl_config_free(c.p)
	}
}

// parsed returns the parsed configuration. It takes nil.
func (c *Config) parsed() *c_ossl_config {
	if c == nil {
		return nil
	}
	return c.p
}

func parseConfig(text []byte) (*c_ossl_config, error) {
	var errs [errorSlots]c_ulong
	p := c_ossl_config_parse(bytePtr(text), c_size_t(len(text)), &errs[0])
	if p != nil {
		return p, nil
	}
	queue := &Error{Codes: codes(&errs)}
	if queue.NoMemory() || queue.Reason() == "" {
		return nil, syscall.ENOMEM
	}
	return nil, errors.New(queue.Reason())
}

// expandConfig returns a value in a configuration.
func expandConfig(text []byte, section, name string) (string, error) {
	p, err := parseConfig(text)
	if err != nil {
		return "", err
	}
	defer c_ossl_config_free(p)
	s, n := c_CString(section), c_CString(name)
	defer c_free(unsafe.Pointer(s))
	defer c_free(unsafe.Pointer(n))
	value := c_ossl_config_value(p, s, n)
	if value == nil {
		return "", fmt.Errorf("in section %s: the file that it names is unknown", section)
	}
	return c_GoString(value), nil
}

// FIPSByHost returns the reason why the host's OpenSSL is to be in FIPS mode by default, or "": its
// default properties, or the properties that openssl.cnf asks for, regardless of the state of the
// file. The error means that the answer is unknown. It is not remembered. The library must be
// loaded.
func FIPSByHost() (why string, err error) {
	if c_ossl_fips_by_host() == 1 {
		return "asked for by the default properties of the host's OpenSSL", nil
	}
	c, fault := HostConfig()
	if fault != nil && fault.HidesFIPS() {
		return "", fault
	}
	if c == nil {
		return "", nil
	}
	if fault == nil {
		defer c.lend()
	} else {
		defer c.Close()
	}
	var problem [512]c_char
	switch c_ossl_config_asks_fips(c.p, &problem[0], c_size_t(len(problem))) {
	case c_OSSL_FIPS_ASKED:
		return "asked for by the default properties in " + c.File + ", which OpenSSL has ignored", nil
	case c_OSSL_FIPS_UNKNOWN:
		return "", &ConfigFault{File: c.File, At: c.File, Err: errors.New(c_GoString(&problem[0])), Parsed: true}
	case c_OSSL_FIPS_NO_MEMORY:
		return "", &ConfigFault{File: c.File, At: c.File, Err: syscall.ENOMEM}
	}
	return "", nil
}

// Dropped returns the demands of the configuration that the library, which has read it, did not
// carry out, with the reasons. Those on TLS and for FIPS mode are not among them.
func (c *Config) Dropped() (list []string, err error) {
	p := c_ossl_config_dropped(c.p)
	if p == nil {
		return nil, syscall.ENOMEM
	}
	defer c_free(unsafe.Pointer(p))
	for at := p; *at != 0; {
		kind := *at
		name := c_GoString((*c_char)(unsafe.Add(unsafe.Pointer(at), 1)))
		detail := c_GoString((*c_char)(unsafe.Add(unsafe.Pointer(at), 1+len(name)+1)))
		at = (*c_char)(unsafe.Add(unsafe.Pointer(at), 1+len(name)+1+len(detail)+1))
		switch kind {
		case c_OSSL_DROPPED_PROVIDER:
			list = append(list, fmt.Sprintf("the provider %s is not active%s", name, stateOf(detail)))
		case c_OSSL_DROPPED_ENGINE:
			list = append(list, fmt.Sprintf("the engine %s is not loaded%s", name, stateOf(detail)))
		case c_OSSL_DROPPED_SECTION:
			list = append(list, fmt.Sprintf("the section %s, named by %s, is missing", detail, name))
		case c_OSSL_DROPPED_BEHIND:
			list = append(list, fmt.Sprintf("%s is not in force, since OpenSSL stops at %s before it", name, detail))
		}
	}
	return list, nil
}

// stateOf describes a module's file.
func stateOf(file string) string {
	if file == "" {
		return ""
	}
	f, err := os.Open(file)
	if err == nil {
		f.Close()
		return " (" + file + ")"
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Sprintf(" (%s: %v)", file, err)
}
