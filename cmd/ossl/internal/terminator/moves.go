package terminator

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// The kinds of frames, the first bytes of their headers.
const (
	frameOffer  = 'o'
	frameGo     = 'g'
	frameEnd    = 'e' // the former process has moved all that can move; a movedCounts in JSON
	frameHave   = 'h'
	frameRefuse = 'r' // a reason
)

// A header of a frame has its kind, the number of the tunnel, and the length of what follows.
const frameHeaderLen = 1 + 4 + 4

// maxOffer bounds the bytes of an offer: both states may have data that waits.
const maxOffer = 4 << 20

// movesVersion is the version of the frames. A process that takes tunnels writes it when it is ready;
// others write 1.
const movesVersion = 2

// A frame is a message between the two processes.
type frame struct {
	kind byte
	id   uint32
	body []byte
	fds  []int // of an offer: the client's socket, and the backend's if there is one
}

// A moves is one end of the Unix socket between the two processes.
type moves struct {
	conn    *net.UnixConn
	writing sync.Mutex
}

// write writes a frame. It reports whether the other process may have got it.
func (m *moves) write(f frame) (sent bool, err error) {
	m.writing.Lock()
	defer m.writing.Unlock()
	if err := m.conn.SetWriteDeadline(time.Now().Add(movePatience)); err != nil {
		return false, err
	}
	header := binary.BigEndian.AppendUint32([]byte{f.kind}, f.id)
	header = binary.BigEndian.AppendUint32(header, uint32(len(f.body)))
	n, _, err := m.conn.WriteMsgUnix(header, rights(f.fds), nil)
	if err == nil && n < len(header) {
		err = io.ErrShortWrite
	}
	if err == nil && len(f.body) > 0 {
		_, err = m.conn.Write(f.body)
	}
	return n == len(header), err
}

// read reads a frame.
func (m *moves) read() (f frame, err error) {
	var header [frameHeaderLen]byte
	for have := 0; have < len(header); {
		n, fds, err := readRights(m.conn, header[have:])
		f.fds = append(f.fds, fds...)
		if err == nil && n == 0 {
			err = io.EOF
		}
		if err != nil {
			closeAll(f.fds)
			return frame{}, err
		}
		have += n
	}
	f.kind, f.id = header[0], binary.BigEndian.Uint32(header[1:])
	length := binary.BigEndian.Uint32(header[5:])
	if length > maxOffer {
		err = fmt.Errorf("a frame of %d bytes", length)
	} else {
		f.body = make([]byte, length)
		_, err = io.ReadFull(m.conn, f.body)
	}
	if err != nil {
		closeAll(f.fds)
		clear(f.body)
		return frame{}, err
	}
	return f, nil
}

// appendOffer appends the parts of an offer, each with its length.
func appendOffer(to []byte, parts ...[]byte) []byte {
	for _, part := range parts {
		to = binary.BigEndian.AppendUint32(to, uint32(len(part)))
		to = append(to, part...)
	}
	return to
}

// splitOffer splits an offer into its parts.
func splitOffer(body []byte) (text, client, backend []byte, err error) {
	parts := []*[]byte{&text, &client, &backend}
	for _, part := range parts {
		if len(body) < 4 || uint32(len(body)-4) < binary.BigEndian.Uint32(body) {
			return nil, nil, nil, io.ErrUnexpectedEOF
		}
		end := 4 + binary.BigEndian.Uint32(body)
		*part, body = body[4:end:end], body[end:]
	}
	if len(body) > 0 {
		return nil, nil, nil, errors.New("data behind an offer")
	}
	return text, client, backend, nil
}
