package libssl

// A HostCommand is one of those that the host's configuration has for every SSL_CTX, in the section system_default of the module
// ssl_conf: SSL_CONF_cmd(3), config(5).
type HostCommand struct {
	Name, Value string
	Done        bool // libssl carries it out
}
