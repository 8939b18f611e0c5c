package libp2ptls

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/sec"
)

// TestRust connects to rust-libp2p's TLS transport, in both directions, and so does go-libp2p's for
// comparison. ci/libp2p-rust builds the program, testdata/rust-libp2p, and runs this.
func TestRust(t *testing.T) {
	program := os.Getenv("RUST_LIBP2P")
	if program == "" {
		t.Skip("a peer on rust-libp2p is not installed (RUST_LIBP2P): ci/libp2p-rust builds it, with cargo")
	}
	for _, f := range []flavour{opensslFlavour, stdFlavour} {
		for _, key := range []string{"ed25519", "ecdsa", "secp256k1"} {
			t.Run(f.name+"/"+key+"/to rust", func(t *testing.T) { toRust(t, program, key, f) })
			t.Run(f.name+"/"+key+"/from rust", func(t *testing.T) { fromRust(t, program, key, f) })
		}
	}
}

func toRust(t *testing.T, program, key string, f flavour) {
	cmd := exec.Command(program, "server", key)
	stdin, err := cmd.StdinPipe() // the program exits when it is closed
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		stdin.Close()
		cmd.Wait()
	}()
	lines := make(chan string, 16)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(stdout); in.Scan(); {
			lines <- in.Text()
		}
	}()
	var addr, id, protocol string
	if fields := strings.Fields(await(t, lines)); len(fields) == 3 {
		addr, id, protocol = fields[0], fields[1], fields[2]
	}
	rust, err := peer.Decode(id)
	if err != nil || protocol != ID {
		t.Fatalf("rust-libp2p is %q with protocol %q", id, protocol)
	}
	client := f.transport(t, clientPeer(), muxersOf("/yamux/1.0.0"))
	dial := func(want peer.ID) (sec.SecureConn, error) {
		raw, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { raw.Close() })
		return client.SecureOutbound(t.Context(), raw, want)
	}

	conn, err := dial(rust)
	if err != nil {
		t.Fatal(err)
	}
	if conn.RemotePeer() != rust || conn.ConnState().StreamMultiplexer != "" {
		t.Errorf("%s, %+v", conn.RemotePeer(), conn.ConnState())
	}
	sent := make([]byte, 1<<20)
	rand.Read(sent)
	done := make(chan error, 1)
	go func() {
		_, err := conn.Write(sent)
		done <- err
	}()
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("what came back is another: %v", err)
	}
	if err := await(t, done); err != nil {
		t.Error(err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if line := await(t, lines); line != clientPeer().id.String() {
		t.Errorf("rust-libp2p says %q of a connection with %s", line, clientPeer().id)
	}

	_, err = dial(thirdPeer().id)
	var mismatch sec.ErrPeerIDMismatch
	if !errors.As(err, &mismatch) || mismatch.Actual != rust {
		t.Errorf("%v", err)
	}
	if line := await(t, lines); !strings.HasPrefix(line, "refused: ") || !strings.Contains(line, "AlertReceived(BadCertificate)") {
		t.Errorf("rust-libp2p says %q of a refusal", line)
	}
}

func fromRust(t *testing.T, program, key string, f flavour) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	server := f.transport(t, serverPeer(), muxersOf("/yamux/1.0.0"))
	for _, want := range []peer.ID{"", thirdPeer().id} {
		served := make(chan result, 1)
		go func() {
			raw, err := listener.Accept()
			if err != nil {
				served <- result{err: err}
				return
			}
			conn, err := server.SecureInbound(t.Context(), raw, want)
			if err == nil {
				_, err = io.Copy(conn, conn)
				conn.Close()
			}
			served <- result{conn, err}
		}()
		out, err := exec.Command(program, "client", key, listener.Addr().String(), serverPeer().id.String()).CombinedOutput()
		r := await(t, served)
		if want != "" {
			var mismatch sec.ErrPeerIDMismatch
			if !errors.As(r.err, &mismatch) || err == nil || !strings.Contains(string(out), "BadCertificate") {
				t.Errorf("refused by %v; rust-libp2p: %v, %s", r.err, err, out)
			}
			continue
		}
		if err != nil || r.err != nil {
			t.Fatalf("rust-libp2p: %v, %s; here: %v", err, out, r.err)
		}
		if got := strings.TrimSpace(string(out)); got != r.conn.RemotePeer().String() {
			t.Errorf("rust-libp2p is %s and was taken for %s", got, r.conn.RemotePeer())
		}
	}
}
