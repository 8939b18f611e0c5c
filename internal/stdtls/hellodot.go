package stdtls

import "encoding/binary"

// withoutDot returns a ClientHello message without the dot at the end of its server name. Browsers
// send it for https://name./, and servers on libssl accept it, but crypto/tls refuses the message.
// Of two dots one remains, so crypto/tls refuses that name.
func withoutDot(message []byte) []byte {
	p := parser(message)
	var session, suites, compressions, extensions parser
	if !p.skip(4+2+32) || !p.vector8(&session) || !p.vector16(&suites) || !p.vector8(&compressions) ||
		!p.vector16(&extensions) || len(p) > 0 {
		return message
	}
	total := len(extensions)
	for len(extensions) > 0 {
		var kind uint16
		var body parser
		if !extensions.uint16(&kind) || !extensions.vector16(&body) {
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
		end := len(message) - len(extensions)
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
