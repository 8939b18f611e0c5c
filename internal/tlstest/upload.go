package tlstest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"
)

// An Upload is a number of bytes that a client writes before it closes, without reading, and the
// time when the server, which never writes, begins to read.
type Upload struct {
	Size  int
	After time.Duration // the server waits until the client has closed, and no longer than this: some clients can't before it reads
}

// MaxUpload is the size of the largest Upload.
const MaxUpload = 10_000_000

var uploadData = sync.OnceValue(func() []byte {
	b := make([]byte, MaxUpload)
	rand.NewChaCha8([32]byte{}).Read(b)
	return b
})

// Run returns an error if data that the client's Write and Close reported as sent didn't reach the
// server.
func (u Upload) Run(client, server End, resumed bool) error {
	a, b := Loopback()
	c, s := client(a), server(b)
	data := uploadData()[:u.Size]
	closed, received := make(chan struct{}), make(chan error, 1)
	go func() {
		defer s.Close()
		received <- func() error {
			if err := s.Handshake(); err != nil {
				return err
			}
			if did := s.ConnectionState().DidResume; did != resumed {
				return fmt.Errorf("DidResume is %v", did)
			}
			wait := time.NewTimer(u.After)
			defer wait.Stop()
			select {
			case <-closed:
			case <-wait.C:
			}
			got, err := io.ReadAll(s)
			if err == nil && !bytes.Equal(got, data) {
				err = errors.New("other data came")
			}
			if err != nil {
				return fmt.Errorf("after %d of %d bytes: %w", len(got), len(data), err)
			}
			return nil
		}()
	}()
	_, err := c.Write(data)
	if closeErr := c.Close(); err == nil {
		err = closeErr
	}
	close(closed)
	if lost := <-received; err == nil {
		err = lost
	}
	return err
}
