package client

import "github.com/ossl-go/ossl/audit/internal/hello"

// UpdateKeys sends a KeyUpdate that asks the server for one.
func UpdateKeys(c *Conn) error { return (&post13{Conn: c}).updateKeys(1) }

// plain is the protection of a server that encrypts nothing, so that fuzzing gets past it.
type plain struct{}

func (plain) open(header [headerSize]byte, record []byte) (byte, []byte, error) {
	return header[0], record, nil
}

// ReadEncrypted reads the messages from EncryptedExtensions to Finished from a Conn that encrypts
// nothing.
func ReadEncrypted(c *Conn, config *Config) (*State, error) {
	h := &handshake13{Conn: c, config: config, hello: *config.Hello} // nothing random, for the fuzzer's sake
	h.suite, h.server = suites13[0], make([]byte, 32)
	h.in, h.State.Version = plain{}, hello.TLS13
	for _, step := range []func() error{h.readEncrypted, h.readCertificates, h.readFinished} {
		if err := step(); err != nil {
			return &h.State, err
		}
	}
	return &h.State, nil
}

// ReadPost reads messages after a handshake from a Conn that encrypts nothing.
func ReadPost(c *Conn, data []byte) error {
	half, err := newHalf13(suites13[0], make([]byte, 32))
	if err != nil {
		return err
	}
	c.out, c.State.Version = half, hello.TLS13
	p := &post13{Conn: c, suite: suites13[0], resumption: make([]byte, 32)}
	c.in = half
	c.messages = data
	c.post = p.handle
	return c.handleMessages()
}

// NewConn returns a Conn before its handshake.
var NewConn = newConn
