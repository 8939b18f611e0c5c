package terminator

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
)

// ends returns the offsets in a text at which a framing finds the ends of requests, until it refuses
// one.
func (f *framing) ends(text []byte) (ends []int) {
	for i := range text {
		before := f.state
		f.scan(text[i : i+1])
		if f.state == inRequestLine && before != inRequestLine {
			ends = append(ends, i+1)
		}
	}
	return ends
}

// parsedEnds returns the offsets at which net/http finds the ends of requests, until an error, and
// the number of requests whose header it has accepted.
func parsedEnds(text []byte) (ends []int, headers int) {
	source := bytes.NewReader(text)
	reader := bufio.NewReaderSize(source, 16)
	for {
		for { // as net/http's server does after a POST
			next, err := reader.Peek(1)
			if err != nil || next[0] != '\r' && next[0] != '\n' {
				break
			}
			_, _ = reader.Discard(1)
		}
		r, err := http.ReadRequest(reader)
		if err != nil || r.ProtoMajor != 1 { // which net/http's server refuses
			return ends, headers
		}
		headers++
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return ends, headers
		}
		ends = append(ends, len(text)-source.Len()-reader.Buffered())
	}
}

const (
	requestStart = "POST / HTTP/1.1\r\nHost: a\r\n"
	chunkedField = "Transfer-Encoding: chunked\r\n"
)

var framings = []struct {
	name, text string
	whole      int   // the requests that are seen completely
	ambiguous  int64 // the first one that is refused, or 0
}{
	{"no body", requestStart + "\r\n" + requestStart + "\r\n", 2, 0},
	{"lengths", requestStart + "Content-Length: 3\r\n\r\nabc" + requestStart + "Content-Length: 0\r\n\r\n", 2, 0},
	{"line ends after bodies", requestStart + "content-length:3 \r\n\r\nabc\r\n\n" + requestStart + "\n", 2, 0},
	{"chunks", requestStart + chunkedField +
		"\r\n3;x=y\r\nabc\r\nA \r\n0123456789\r\n000\r\nTrailer: x\r\n\r\n" + requestStart + "\r\n", 2, 0},
	{"request in a body", requestStart + "Content-Length: 30\r\n\r\n" + requestStart + "\r\n\r\n", 1, 0},
	{"request in a chunk", requestStart + chunkedField + "\r\n1a\r\n" + requestStart + "\r\n0\r\n\r\n", 1, 0},
	{"long line", requestStart + "X: " + strings.Repeat("x", 10_000) +
		"\r\nContent-Length: 1\r\n\r\na" + requestStart + "\r\n", 2, 0},
	{"long request line of HTTP/1.0", "GET /" + strings.Repeat("x", 10_000) + " HTTP/1.0\r\n" + chunkedField +
		"\r\n0\r\n\r\n", 0, 1},
	{"length and coding", requestStart + "\r\n" + requestStart + "Content-Length: 3\r\n" + chunkedField + "\r\n0\r\n\r\n", 1, 2},
	{"coding and length", requestStart + chunkedField + "content-length: 3\r\n\r\n0\r\n\r\n", 0, 1},
	{"two lengths", requestStart + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 0, 1},
	{"two codings", requestStart + chunkedField + chunkedField + "\r\n0\r\n\r\n", 0, 1},
	{"other coding", requestStart + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 0, 1},
	{"no digits", requestStart + "Content-Length: \r\n\r\n", 0, 1},
	{"signed length", requestStart + "Content-Length: +1\r\n\r\na", 0, 1},
	{"long length", requestStart + "Content-Length: 0000000000000001\r\n\r\na", 0, 1},
	{"hexadecimal length", requestStart + "Content-Length: a\r\n\r\n0123456789", 0, 1},
	{"folded", requestStart + "X: a\r\n\tContent-Length: 3\r\n\r\n", 0, 1},
	{"coding of HTTP/1.0", "POST / HTTP/1.0\r\n" + chunkedField + "\r\n0\r\n\r\n", 0, 1},
	{"wrong chunk", requestStart + chunkedField + "\r\n-3\r\nabc\r\n0\r\n\r\n", 0, 2},
	{"long chunk", requestStart + chunkedField + "\r\n3\r\nabcd\r\n0\r\n\r\n", 0, 2},
}

func TestFraming(t *testing.T) {
	for _, test := range framings {
		t.Run(test.name, func(t *testing.T) {
			f := new(framing)
			if ends := f.ends([]byte(test.text)); len(ends) != test.whole || f.ambiguous.Load() != test.ambiguous {
				t.Errorf("%d requests, refused from %d on", len(ends), f.ambiguous.Load())
			}
			all := new(framing)
			all.scan([]byte(test.text))
			if all.state != f.state || all.ambiguous.Load() != f.ambiguous.Load() || all.requests != f.requests {
				t.Errorf("at once: %+v, byte by byte: %+v", all, f)
			}
			if got := testing.AllocsPerRun(10, func() { new(framing).scan([]byte(requestStart + "\r\n")) }); got > 2 {
				t.Errorf("%v allocations for a request in one read", got)
			}
		})
	}
}

// FuzzFraming: if a request isn't refused, its end is the one that net/http sees.
func FuzzFraming(f *testing.F) {
	for _, test := range framings {
		f.Add([]byte(test.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		framing := new(framing)
		ours := framing.ends(text)
		theirs, headers := parsedEnds(text)
		first := framing.ambiguous.Load()
		for i, end := range theirs {
			if first != 0 && int64(i+1) >= first {
				break // refused
			}
			if i >= len(ours) || ours[i] != end {
				t.Fatalf("request %d of %q ends at %d for net/http; ends here: %v, refused from %d on", i+1, text, end, ours, first)
			}
		}
		if first == 0 && headers > len(theirs)+1 {
			t.Fatalf("%q: %d headers", text, headers)
		}
	})
}
