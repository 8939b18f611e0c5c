package terminator_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"testing"

	"golang.org/x/net/http2"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestLeave: at a reload no request is lost that a client sends at that moment. In HTTP/1.1 the next
// response announces that the connection will be closed. In HTTP/2 the server announces it twice: first
// without a last stream, so that requests which are on their way are answered.
func TestLeave(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, engine string) {
		w := newWorld(t)
		config := w.config(engine, terminator.Site{Root: w.folder(map[string]string{"a": "text"})})
		r := w.start(config)

		kept := r.mustDial(nil)
		reader := bufio.NewReader(kept)
		request := func() *http.Response {
			write(t, kept, "GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n")
			resp, err := http.ReadResponse(reader, nil)
			if err != nil {
				t.Fatal(err)
			}
			if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "text" {
				t.Fatalf("%q, %v", body, err)
			}
			return resp
		}
		if request().Close {
			t.Error("the connection ends at once")
		}

		framer := r.framer(t)
		if err := framer.WriteSettings(); err != nil {
			t.Fatal(err)
		}
		answered := map[uint32]bool{}
		var last []uint32 // of GOAWAY frames
		next := func() {
			frame, err := framer.ReadFrame()
			if err != nil {
				t.Fatal(err)
			}
			switch frame := frame.(type) {
			case *http2.GoAwayFrame:
				if last = append(last, frame.LastStreamID); frame.ErrCode != http2.ErrCodeNo {
					t.Error(frame)
				}
			case *http2.DataFrame:
				answered[frame.StreamID] = answered[frame.StreamID] || frame.StreamEnded()
			case *http2.HeadersFrame:
				answered[frame.StreamID] = answered[frame.StreamID] || frame.StreamEnded()
			case *http2.SettingsFrame:
				if !frame.IsAck() {
					_ = framer.WriteSettingsAck()
				}
			}
		}
		if err := writeRequest(t, framer, 1, "/a", nil); err != nil {
			t.Fatal(err)
		}
		for !answered[1] {
			next()
		}

		if err := r.Reload(context.Background(), config); err != nil {
			t.Fatal(err)
		}
		for len(last) == 0 {
			next()
		}
		if err := writeRequest(t, framer, 3, "/a", nil); err != nil { // which the client has sent before it gets the GOAWAY
			t.Fatal(err)
		}
		for !answered[3] {
			next()
		}
		if !request().Close {
			t.Error("the connection doesn't end")
		}
		if rest, err := io.ReadAll(reader); err != nil || len(rest) > 0 {
			t.Errorf("%q, %v", rest, err)
		}
		for len(last) == 1 {
			next()
		}
		if last[0] != 1<<31-1 || last[1] != 3 {
			t.Errorf("GOAWAY with %d", last)
		}
	})
}
