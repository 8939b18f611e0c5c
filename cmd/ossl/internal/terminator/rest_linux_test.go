package terminator_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestRestOfAnswer: a backend that answers and closes costs the client nothing of the answer, though
// most of it is still on its way when the client sends more, and closes.
func TestRestOfAnswer(t *testing.T) {
	for _, records := range []string{"auto", "libssl"} {
		for _, ends := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/ends=%v", records, ends), func(t *testing.T) {
				t.Setenv("OSSL_RECORDS", records)
				w, l := newWorld(t), listen(t)
				r := w.start(w.config("ossl", tcp(l.Addr().String())))
				client := r.strictDial(t)
				backend := accept(t, l).(*net.TCPConn)
				if _, err := backend.Write(answerData()); err != nil {
					t.Fatal(err)
				}
				if err := backend.CloseWrite(); err != nil {
					t.Fatal(err)
				}
				// The client doesn't read yet: the answer is in buffers on its way.
				for late := time.Now().Add(patience); !endArrived(t, backend); <-time.After(time.Millisecond) {
					if time.Now().After(late) {
						t.Fatal("the answer doesn't fit into the buffers of sockets")
					}
				}
				_ = backend.Close()
				for range 3 { // the first one makes the backend's kernel send an RST
					write(t, client, "more")
				}
				if ends {
					if err := client.CloseWrite(); err != nil {
						t.Fatal(err)
					}
				}
				if got, err := io.ReadAll(client); err != nil || !bytes.Equal(got, answerData()) {
					t.Errorf("the client got %d of %d bytes, %v", len(got), answerSize, err)
				}
			})
		}
	}
}

// endArrived reports whether the other side's kernel has acknowledged the end of a connection's data.
func endArrived(t *testing.T, conn *net.TCPConn) bool {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	arrived := false
	if err := raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		arrived = err == nil && info.State == unix.BPF_TCP_FIN_WAIT2
	}); err != nil {
		t.Fatal(err)
	}
	return arrived
}
