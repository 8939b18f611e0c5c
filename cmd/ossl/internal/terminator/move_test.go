//go:build linux

package terminator_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// successor is the environment variable that makes the test program a process that replaces a server, and
// is broken in a way.
const successor = "TEST_SUCCESSOR"

// A frame has a kind, a number, and the length of what follows.
func readFrame(r io.Reader) (kind byte, id uint32, err error) {
	var header [9]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return 0, 0, err
	}
	_, err = io.CopyN(io.Discard, r, int64(binary.BigEndian.Uint32(header[5:])))
	return header[0], binary.BigEndian.Uint32(header[1:]), err
}

func frame(kind byte, id uint32, body string) []byte {
	b := binary.BigEndian.AppendUint32([]byte{kind}, id)
	b = binary.BigEndian.AppendUint32(b, uint32(len(body)))
	return append(b, body...)
}

func init() {
	beSuccessor = func() bool {
		how, ok := os.LookupEnv(successor)
		if ok {
			succeed(how)
		}
		return ok
	}
}

// succeed is such a process.
func succeed(how string) {
	var state struct{ Ready, Moves int }
	if err := json.Unmarshal([]byte(os.Getenv("OSSL_SERVE_HANDOVER")), &state); err != nil {
		panic(err)
	}
	moves := os.NewFile(uintptr(state.Moves), "moves")
	version := byte(2)
	if how == "old version" {
		version = 1
	}
	if _, err := os.NewFile(uintptr(state.Ready), "ready").Write([]byte{version}); err != nil {
		panic(err)
	}
	for how != "reads nothing" {
		kind, id, err := readFrame(moves)
		if err != nil || kind == 'e' {
			break
		}
		switch how {
		case "exits":
			return
		case "refuses":
			_, err = moves.Write(frame('r', id, "a reason"))
		case "refuses without a reason":
			_, err = moves.Write(frame('r', id, ""))
		case "garbage":
			_, err = moves.Write(frame('x', id, ""))
		case "another number":
			_, err = moves.Write(frame('h', id+1, ""))
		case "exits after its answer", "has it":
			_, err = moves.Write(frame('h', id, ""))
		}
		if err != nil || how == "exits after its answer" {
			return
		}
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test ends
}

// TestMoveFaults: if the process that replaces a server is broken, the connections go on in the former one,
// unless it has given them up.
func TestMoveFaults(t *testing.T) {
	for _, c := range []struct{ how, reason string }{
		{"old version", ""},
		{"reads nothing", "unanswered"},
		{"answers nothing", "unanswered"},
		{"exits", "unanswered"},
		{"refuses", `"a reason"`},
		{"refuses without a reason", "unanswered"},
		{"garbage", "unanswered"},
		{"another number", "unanswered"},
	} {
		t.Run(c.how, func(t *testing.T) {
			t.Parallel()
			w, l := newWorld(t), listen(t)
			config := w.config("ossl", tcp(l.Addr().String()))
			config.Admin = "127.0.0.1:0"
			r := w.start(config)
			client := r.mustDial(nil)
			backend := accept(t, l)
			exchange := func() {
				t.Helper()
				write(t, client, "to the backend")
				read(t, backend, len("to the backend"))
				write(t, backend, "to the client")
				read(t, client, len("to the client"))
			}
			exchange()
			r.replace(t, c.how)
			drained := make(chan int)
			go func() { drained <- r.Drain(context.Background()) }()
			switch c.how {
			case "old version":
			case "refuses":
				r.log.await(t, "level=DEBUG", "stays", "a reason")
			default:
				r.log.await(t, "takes no more connections")
			}
			exchange()
			exchange()
			if err := client.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if rest, err := io.ReadAll(backend); err != nil || len(rest) > 0 {
				t.Errorf("%q, %v", rest, err)
			}
			_ = backend.Close()
			if rest, err := io.ReadAll(client); err != nil || len(rest) > 0 {
				t.Errorf("%q, %v", rest, err)
			}
			if cut := <-drained; cut != 0 {
				t.Errorf("%d connections were cut off", cut)
			}
			if c.reason != "" {
				r.log.await(t, "connections stayed with this process", "reason="+c.reason, "number=1")
			}
			r.log.await(t, "msg=connection ", "received=42", "sent=39", `error=""`)
		})
	}
}

// replace starts a broken process, and waits until it serves. The process ends with the test, or before.
func (r *running) replace(t *testing.T, how string) (end func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), successor+"="+how)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stdin.Close() })
	cmd.Stderr = os.Stderr
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := r.HandOver(ctx, cmd); err != nil {
		t.Fatal(err)
	}
	return func() { _ = stdin.Close() }
}

// TestMoveGivenUp: a process that has a connection, and is told to go on with it, has it alone: if it ends
// then, the connection is closed.
func TestMoveGivenUp(t *testing.T) {
	for _, how := range []string{"exits after its answer", "has it"} {
		t.Run(how, func(t *testing.T) {
			w, l := newWorld(t), listen(t)
			r := w.start(w.config("ossl", tcp(l.Addr().String())))
			client := r.mustDial(nil)
			backend := accept(t, l)
			write(t, client, "x")
			read(t, backend, 1)
			write(t, backend, "x")
			read(t, client, 1)
			end := r.replace(t, how)
			if cut := r.Drain(context.Background()); cut != 0 {
				t.Errorf("%d connections were cut off", cut)
			}
			end() // the process that has it, if it hasn't ended
			for _, conn := range []net.Conn{client, backend} {
				if n, err := conn.Read(make([]byte, 1)); n > 0 || err == nil {
					t.Errorf("%d bytes, %v", n, err)
				}
			}
		})
	}
}

// TestMoveIdleStays: an idle HTTP/1.1 connection that can't move is served in the former process, whose next
// response announces that it will be closed. A request that has begun is answered there.
func TestMoveIdleStays(t *testing.T) {
	for _, how := range []string{"old version", "refuses", "exits", "garbage", "answers nothing"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := w.start(w.config("ossl", terminator.Site{Root: w.folder(map[string]string{"index.html": "x"})}))
			const begun, rest = "GET / HTTP/1.1\r\nHost: loc", "alhost\r\n\r\n"
			answer := func(reader *bufio.Reader) (closes bool) {
				t.Helper()
				resp, err := http.ReadResponse(reader, nil)
				if err != nil {
					t.Fatal(err)
				}
				if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "x" {
					t.Errorf("%q, %v", body, err)
				}
				return resp.Close
			}
			idle, half := r.mustDial(nil), r.mustDial(nil)
			fromIdle, fromHalf := bufio.NewReader(idle), bufio.NewReader(half)
			write(t, idle, begun+rest)
			write(t, half, begun+rest+begun)
			if answer(fromIdle) || answer(fromHalf) {
				t.Error("the connection closes before the server does")
			}
			r.replace(t, how)
			drained := make(chan int)
			go func() { drained <- r.Drain(context.Background()) }()
			switch how {
			case "old version":
			case "refuses":
				r.log.await(t, "stays with this process", "a reason")
			default:
				r.log.await(t, "stays with this process", "unanswered")
			}
			write(t, idle, begun+rest)
			if !answer(fromIdle) {
				t.Error("the connection doesn't close")
			}
			write(t, half, rest)
			answer(fromHalf)
			_ = half.Close()
			if cut := <-drained; cut != 0 {
				t.Errorf("%d connections were cut off", cut)
			}
		})
	}
}

// TestMoveIdleCloses: an HTTP/1.1 connection that could not move and stays idle is closed with the other idle
// ones, while the server still waits for requests: the first one of a connection, and one of which a half has come.
func TestMoveIdleCloses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := w.config("ossl", terminator.Site{Root: w.folder(map[string]string{"index.html": "x"})})
	config.Limits.Header = terminator.Time(time.Hour)
	r := w.start(config)
	idle, fresh, half := r.mustDial(nil), r.mustDial(nil), r.mustDial(nil)
	fromIdle, fromHalf := bufio.NewReader(idle), bufio.NewReader(half)
	const begun, rest = "GET / HTTP/1.1\r\nHost: loc", "alhost\r\n\r\n"
	answer := func(reader *bufio.Reader, closes bool) {
		t.Helper()
		resp, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "x" || resp.Close != closes {
			t.Errorf("%q, %v, the connection closes: %v", body, err, resp.Close)
		}
	}
	write(t, idle, begun+rest)
	answer(fromIdle, false)
	write(t, half, begun+rest+begun)
	answer(fromHalf, false)
	r.replace(t, "refuses")
	drained := make(chan int)
	go func() { drained <- r.Drain(context.Background()) }()
	r.log.await(t, "stays with this process", "client="+idle.LocalAddr().String(), "a reason")
	if _, err := fromIdle.ReadByte(); err != io.EOF {
		t.Error(err)
	}
	write(t, half, rest)
	answer(fromHalf, true)
	write(t, fresh, begun+rest)
	answer(bufio.NewReader(fresh), true)
	if cut := <-drained; cut != 0 {
		t.Errorf("%d connections were cut off", cut)
	}
}

// FuzzOffer: an offer is split into the parts that it was made of, and nothing else is.
func FuzzOffer(f *testing.F) {
	f.Add([]byte{})
	f.Add(terminator.AppendOffer(nil, []byte("{}"), nil, []byte("state")))
	f.Fuzz(func(t *testing.T, body []byte) {
		text, client, backend, err := terminator.SplitOffer(body)
		if err == nil && !bytes.Equal(terminator.AppendOffer(nil, text, client, backend), body) {
			t.Errorf("%q, %q, %q", text, client, backend)
		}
	})
}

// TestRest: the directions of a connection rest between a write and the next read, and go on.
func TestRest(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		w, l := newWorld(t), listen(t)
		r := w.start(w.config(engine, tcp(l.Addr().String())))
		client := r.mustDial(nil)
		backend := accept(t, l)
		enough := make(chan struct{}) // of rests
		go func() {
			defer close(enough)
			for n := 0; n < 10 && t.Context().Err() == nil; <-time.After(time.Millisecond) {
				n += r.RestAll()
			}
		}()
		data := bytes.Repeat([]byte("0123456789abcdef"), 1<<12)
		send := func(to net.Conn, sent chan<- int) {
			n := 0
			defer func() { sent <- n }()
			for {
				select {
				case <-enough:
					if err := to.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
						t.Error(err)
					}
					return
				default:
				}
				if _, err := to.Write(data); err != nil {
					t.Error(err)
					return
				}
				n++
			}
		}
		receive := func(from net.Conn, received chan<- int) {
			n := 0
			defer func() { received <- n }()
			for got := make([]byte, len(data)); ; n++ {
				if _, err := io.ReadFull(from, got); err == io.EOF {
					return
				} else if err != nil || !bytes.Equal(got, data) {
					t.Errorf("other data after %d bytes, %v", n*len(data), err)
					return
				}
			}
		}
		for _, way := range [][2]net.Conn{{client, backend}, {backend, client}} {
			sent, received := make(chan int, 1), make(chan int, 1)
			go send(way[0], sent)
			go receive(way[1], received)
			defer func() {
				if sent, received := <-sent, <-received; sent != received {
					t.Errorf("%d blocks have arrived of %d", received, sent)
				}
			}()
		}
	})
}
