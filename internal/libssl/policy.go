package libssl

import "errors"

// ErrNoContext says that OpenSSL makes no SSL_CTX with the host's configuration: something is wrong in it, and it has
// config_diagnostics on.
var ErrNoContext = errors.New("OpenSSL makes no SSL_CTX with it")

// A HostCommand is one of those that the host's configuration has for every SSL_CTX, in the section system_default of the module
// ssl_conf: SSL_CONF_cmd(3), config(5).
type HostCommand struct {
	Name, Value string
	Done        bool // libssl carries it out
}

// packCommands puts a zero behind each name and value, as the shim reads them.
func packCommands(commands []HostCommand) []byte {
	var packed []byte
	for _, c := range commands {
		packed = append(append(packed, c.Name...), 0)
		packed = append(append(packed, c.Value...), 0)
	}
	return packed
}
