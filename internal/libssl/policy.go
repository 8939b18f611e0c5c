package libssl

import "errors"

// ErrNoContext means that OpenSSL can't make an SSL_CTX with the host's configuration: the
// configuration has an error, and turns config_diagnostics on.
var ErrNoContext = errors.New("OpenSSL can't make an SSL_CTX with it")

// A HostCommand is one of the commands in the host's configuration for every SSL_CTX, in the
// section system_default of the module ssl_conf: SSL_CONF_cmd(3), config(5).
type HostCommand struct {
	Name, Value string
	Done        bool // libssl executes it
}

// packCommands ends each name and value with a zero, as the shim requires.
func packCommands(commands []HostCommand) []byte {
	var packed []byte
	for _, c := range commands {
		packed = append(append(packed, c.Name...), 0)
		packed = append(append(packed, c.Value...), 0)
	}
	return packed
}
