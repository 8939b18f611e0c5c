package terminator_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestLeave: at a reload no request is lost that a client sends at that moment. The next response of
// HTTP/1.1 says that the connection ends; HTTP/2 says so first without a last stream, and answers what
// comes until then.
func TestLeave(t *testing.T) {
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

// TestIdleFrames: a client that sends very many frames that do no work is told to calm down, and one that
// uses its connection as it should is not.
func TestIdleFrames(t *testing.T) {
	many := 40_000
	if testing.Short() {
		many = 20_000
	}
	for _, c := range []struct {
		name   string
		honest bool
		send   func(f *http2.Framer, i int) error
	}{
		{"SETTINGS", false, func(f *http2.Framer, _ int) error { return f.WriteSettings() }},
		{"acknowledgements", false, func(f *http2.Framer, _ int) error {
			return f.WriteRawFrame(http2.FramePing, http2.FlagPingAck, 0, make([]byte, 8))
		}},
		{"PING", false, func(f *http2.Framer, i int) error { return f.WritePing(false, [8]byte{byte(i)}) }},
		{"PRIORITY", false, func(f *http2.Framer, i int) error { return f.WritePriority(uint32(2*i+3), http2.PriorityParam{}) }},
		{"WINDOW_UPDATE", false, func(f *http2.Framer, _ int) error { return f.WriteWindowUpdate(0, 1) }},
		{"unknown frames", false, func(f *http2.Framer, _ int) error { return f.WriteRawFrame(0xfa, 0, 0, nil) }},
		{"empty DATA", false, func(f *http2.Framer, _ int) error { return f.WriteData(1, false, nil) }},
		{"resets", false, func(f *http2.Framer, i int) error {
			if err := beginRequest(f, http.MethodGet, uint32(2*i+3)); err != nil {
				return err
			}
			return f.WriteRSTStream(uint32(2*i+3), http2.ErrCodeCancel)
		}},
		{"resets of the server", false, func(f *http2.Framer, i int) error { // a window update of 0 is an error of the stream
			if err := beginRequest(f, http.MethodGet, uint32(2*i+3)); err != nil {
				return err
			}
			return f.WriteRawFrame(http2.FrameWindowUpdate, 0, uint32(2*i+3), make([]byte, 4))
		}},
		{"DATA of a byte each", true, func(f *http2.Framer, i int) error {
			if i%2 == 0 {
				return f.WriteData(1, false, []byte("x"))
			}
			return f.WriteWindowUpdate(0, 1)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			backend := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
			}))
			t.Cleanup(backend.Close)
			w := newWorld(t)
			config := w.config("ossl", terminator.Site{Backend: terminator.Backend{To: backend.URL}})
			r := w.start(config)
			framer := r.framer(t)
			if err := framer.WriteSettings(); err != nil {
				t.Fatal(err)
			}
			if err := beginRequest(framer, http.MethodPost, 1); err != nil {
				t.Fatal(err)
			}
			calmed := make(chan bool, 1)
			go func() {
				for {
					frame, err := framer.ReadFrame()
					if err != nil {
						calmed <- false
						return
					}
					if away, ok := frame.(*http2.GoAwayFrame); ok {
						calmed <- away.ErrCode == http2.ErrCodeEnhanceYourCalm
						return
					}
				}
			}()
			sent := 0
			for ; sent < many; sent++ {
				if c.send(framer, sent) != nil {
					break
				}
			}
			if c.honest {
				if sent < many {
					t.Errorf("the connection ended after %d", sent)
				}
				select {
				case <-calmed:
					t.Error("the server has ended the connection")
				default:
				}
				return
			}
			<-calmed // by GOAWAY, unless a reset has destroyed it or net/http has been faster
			if sent == many && !strings.Contains(r.log.String(), "http2-frames") {
				t.Errorf("%d were sent", sent)
			}
		})
	}
}

// beginRequest writes the header of a request with a body.
func beginRequest(f *http2.Framer, method string, stream uint32) error {
	return f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block(method, "/"), EndHeaders: true})
}
