package terminator

import (
	"bytes"
	"sync/atomic"
)

// A framing follows the requests on an HTTP/1 connection, to find those whose end is ambiguous:
// another server in front of this one may see it elsewhere, and would take a part of a body for a
// request, or give a response to another client. net/http accepts such requests, and hides the reason
// from handlers: it joins folded lines, and removes a Content-Length beside a Transfer-Encoding (RFC
// 9112, section 6.1).
type framing struct {
	state    framingState
	requests int64 // whose header has begun
	line     []byte
	rest     uint64 // bytes of the body, or of the chunk, that are still to come

	http10, chunked, sized bool // of the request's header
	length                 uint64

	// ambiguous is the number of the first request, from 1, that must be refused, or 0. Nothing is known
	// about what follows.
	ambiguous atomic.Int64
}

type framingState int

const (
	inRequestLine framingState = iota
	inHeader
	inBody
	inChunkSize
	inChunk
	inChunkEnd
	inTrailer
	framingOff
)

// Of a line that comes in parts, the first bytes and the last ones are kept.
const (
	lineHead = 512
	lineTail = 16
)

// scan follows the next bytes of the connection.
func (f *framing) scan(b []byte) {
	for len(b) > 0 && f.state != framingOff {
		if f.state == inBody || f.state == inChunk {
			n := min(f.rest, uint64(len(b)))
			f.rest -= n
			b = b[n:]
			if f.rest == 0 && f.state == inBody {
				f.state = inRequestLine
			} else if f.rest == 0 {
				f.state = inChunkEnd
			}
			continue
		}
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			f.keep(b)
			return
		}
		line := b[:end]
		if len(f.line) > 0 {
			f.keep(line)
			line = f.line
		}
		f.take(bytes.TrimSuffix(line, []byte("\r")))
		f.line = f.line[:0]
		b = b[end+1:]
	}
}

// between reports whether nothing is known of a request behind a number of them.
func (f *framing) between(requests int64) bool {
	return f.state == inRequestLine && len(f.line) == 0 && f.requests == requests
}

// keep keeps a part of a line.
func (f *framing) keep(part []byte) {
	f.line = append(f.line, part...)
	if len(f.line) > lineHead+lineTail {
		f.line = append(f.line[:lineHead], f.line[len(f.line)-lineTail:]...)
	}
}

// take follows a whole line.
func (f *framing) take(line []byte) {
	switch f.state {
	case inRequestLine:
		if len(line) == 0 {
			return // RFC 9112, section 2.2
		}
		f.requests++
		f.http10 = bytes.HasSuffix(line, []byte(" HTTP/1.0"))
		f.chunked, f.sized, f.length = false, false, 0
		f.state = inHeader
	case inHeader:
		if len(line) == 0 {
			f.endHeader()
		} else {
			f.takeField(line)
		}
	case inChunkSize:
		size, _, _ := bytes.Cut(line, []byte(";"))
		f.takeSize(bytes.TrimRight(size, " \t"))
	case inChunkEnd:
		f.state = inChunkSize
		if len(line) > 0 {
			f.refuse(f.requests + 1)
		}
	case inTrailer:
		if len(line) == 0 {
			f.state = inRequestLine
		}
	}
}

// takeField follows a line of a header.
func (f *framing) takeField(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.Trim(value, " \t")
	switch {
	case line[0] == ' ' || line[0] == '\t': // a folded line: RFC 9112, section 5.2
		f.refuse(f.requests)
	case bytes.EqualFold(name, []byte("Transfer-Encoding")):
		if f.chunked || !bytes.EqualFold(value, []byte("chunked")) {
			f.refuse(f.requests)
		}
		f.chunked = true
	case bytes.EqualFold(name, []byte("Content-Length")):
		length, ok := number(value, 10)
		if f.sized || !ok {
			f.refuse(f.requests)
		}
		f.sized, f.length = true, length
	}
}

// endHeader begins the body.
func (f *framing) endHeader() {
	switch {
	case f.chunked && (f.sized || f.http10):
		f.refuse(f.requests)
	case f.chunked:
		f.state = inChunkSize
	case f.length > 0:
		f.state, f.rest = inBody, f.length
	default:
		f.state = inRequestLine
	}
}

// takeSize begins a chunk.
func (f *framing) takeSize(text []byte) {
	size, ok := number(text, 16)
	switch {
	case !ok: // net/http's Read of the body fails
		f.refuse(f.requests + 1)
	case size == 0:
		f.state = inTrailer
	default:
		f.state, f.rest = inChunk, size
	}
}

// refuse notes the first request that must be refused. The requests after it are not followed.
func (f *framing) refuse(request int64) {
	f.state = framingOff
	f.ambiguous.Store(request)
}

// refuses reports whether the request with a number, from 1, must be refused.
func (f *framing) refuses(request int64) bool {
	first := f.ambiguous.Load()
	return first != 0 && request >= first
}

// number parses digits alone: no sign, no space.
func number(text []byte, base uint64) (value uint64, ok bool) {
	const most = 15 // digits, which can't overflow
	for _, c := range text {
		digit := uint64(c - '0')
		if c >= 'a' && c <= 'f' {
			digit = uint64(c-'a') + 10
		} else if c >= 'A' && c <= 'F' {
			digit = uint64(c-'A') + 10
		} else if c < '0' || c > '9' {
			return 0, false
		}
		if digit >= base {
			return 0, false
		}
		value = value*base + digit
	}
	return value, len(text) > 0 && len(text) <= most
}
