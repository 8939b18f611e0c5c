package stdtls

import (
	"encoding/binary"

	"github.com/ossl-go/ossl/internal/wire"
)

// withoutDot returns a ClientHello message without the dot at the end of its server name. Browsers
// send it for https://name./, and servers on libssl accept it, but crypto/tls refuses the message.
// Of two dots one remains, so crypto/tls refuses that name.
func withoutDot(message []byte) []byte {
	r := wire.Reader{Rest: message}
	r.Bytes(4 + 2 + 32)
	r.Vector(1) // session ID
	r.Vector(2) // suites
	r.Vector(1) // compression methods
	extensions := r.List(2)
	if !r.Done() {
		return message
	}
	total := len(extensions.Rest)
	for len(extensions.Rest) > 0 {
		kind, body := extensions.Number(2), extensions.Vector(2)
		if extensions.Failed {
			return message
		}
		if kind != 0 { // server_name
			continue
		}
		const head = 2 + 1 + 2 // the list's length, the name's type and its length
		n := len(body)
		if n < head+2 || body[n-1] != '.' || body[2] != 0 ||
			int(binary.BigEndian.Uint16(body)) != n-2 || int(binary.BigEndian.Uint16(body[3:])) != n-head {
			return message
		}
		end := len(message) - len(extensions.Rest)
		short := append(append([]byte(nil), message[:end-1]...), message[end:]...)
		for _, at := range []int{len(message) - total - 2, end - n - 2, end - n, end - n + 3} { // those before each vector
			binary.BigEndian.PutUint16(short[at:], binary.BigEndian.Uint16(short[at:])-1)
		}
		short[1], short[2], short[3] = byte((len(short)-4)>>16), byte((len(short)-4)>>8), byte(len(short)-4)
		return short
	}
	return message
}

// HelloRecordsWithoutDot is HelloRecords of the message without the dot at the end of its server name.
func HelloRecordsWithoutDot(message []byte) []byte { return HelloRecords(withoutDot(message)) }
