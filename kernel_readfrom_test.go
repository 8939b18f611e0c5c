//go:build (cgo || ossl_nocgo) && linux

package ossl_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// kernelSuites has a suite for each version.
var kernelSuites = map[uint16]uint16{
	tls.VersionTLS12: tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.VersionTLS13: tls.TLS_AES_128_GCM_SHA256,
}

// eachKernelVersion runs a test with a server for each version that the kernel seals.
func eachKernelVersion(t *testing.T, test func(t *testing.T, own *ossl.Conn, peer *tls.Conn)) {
	seals := needKernelTLS(t)
	for version, suite := range kernelSuites {
		if seals(version) {
			t.Run(tls.VersionName(version), func(t *testing.T) {
				own, peer := kernelConn(t, false, version, suite)
				// A file that the peer doesn't read soon waits.
				if err := errors.Join(own.NetConn().(*net.TCPConn).SetWriteBuffer(256<<10),
					peer.NetConn().(*net.TCPConn).SetReadBuffer(64<<10)); err != nil {
					t.Fatal(err)
				}
				peer.SetReadDeadline(time.Now().Add(20 * time.Second))
				test(t, own, peer)
				if !own.KernelTLS() {
					t.Error("the kernel doesn't seal")
				}
			})
		}
	}
}

// fileOf returns a file with the given content, which may be nil, and size.
func fileOf(t *testing.T, content []byte, size int64) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if _, err := f.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	return seek(f, 0, io.SeekStart)
}

// blocked returns f's offset once it has moved and doesn't move any more, because the peer doesn't
// read.
func blocked(t *testing.T, f *os.File) int64 {
	t.Helper()
	deadline := time.Now().Add(tlstest.Patience)
	for last, same := int64(0), 0; ; time.Sleep(10 * time.Millisecond) {
		at, err := f.Seek(0, io.SeekCurrent)
		if err != nil || time.Now().After(deadline) {
			t.Fatal("no end of sending:", at, err)
		}
		if same++; at != last || at == 0 {
			last, same = at, 0
		}
		if same == 30 {
			return at
		}
	}
}

// TestKernelTLSReadFromLarge copies parts of a sparse file, beyond the numbers of 32 bits.
func TestKernelTLSReadFromLarge(t *testing.T) {
	eachKernelVersion(t, func(t *testing.T, own *ossl.Conn, peer *tls.Conn) {
		const at = 5<<30 - 100_000
		f := fileOf(t, nil, 6<<30)
		text := tlstest.Pattern(200_000)
		if _, err := f.WriteAt(text, at); err != nil {
			t.Fatal(err)
		}
		want := make([]byte, 1_000_000)
		copy(want[500_000:], text)
		for _, limit := range []int64{1_000_000, 1 << 40} {
			if limit > 6<<30 { // up to the end of the file
				if err := f.Truncate(at + 500_000); err != nil {
					t.Fatal(err)
				}
			}
			seek(f, at-500_000, io.SeekStart)
			limited := &io.LimitedReader{R: f, N: limit}
			done := make(chan struct{})
			go func() {
				defer close(done)
				if n, err := io.Copy(own, limited); n != 1_000_000 || err != nil || limited.N != limit-n {
					t.Errorf("%d, %v; %d are left", n, err, limited.N)
				}
			}()
			got := make([]byte, len(want))
			if _, err := io.ReadFull(peer, got); err != nil || !bytes.Equal(got, want) {
				t.Errorf("not the part of the file: %v", err)
			}
			<-done
			if end, _ := f.Seek(0, io.SeekCurrent); end != at+500_000 {
				t.Errorf("the file is at %d", end)
			}
		}
	})
}

// TestKernelTLSReadFromTruncated truncates a file while the kernel sends it: to the bytes that the
// kernel has taken, and behind them. The peer gets all that ReadFrom returns, at once, and the
// connection goes on.
func TestKernelTLSReadFromTruncated(t *testing.T) {
	for _, behind := range []int64{0, 1234} {
		t.Run(fmt.Sprint(behind), func(t *testing.T) {
			eachKernelVersion(t, func(t *testing.T, own *ossl.Conn, peer *tls.Conn) {
				content := tlstest.Pattern(8 << 20)
				f := fileOf(t, content, int64(len(content)))
				limited := &io.LimitedReader{R: f, N: int64(len(content))}
				done := make(chan error, 1)
				var n int64
				go func() {
					var err error
					n, err = io.Copy(own, limited)
					done <- err
				}()
				size := blocked(t, f) + behind
				if err := f.Truncate(size); err != nil {
					t.Fatal(err)
				}
				got := make([]byte, size)
				if n, err := io.ReadFull(peer, got); err != nil {
					t.Fatalf("the peer got %d bytes of %d: %v", n, size, err)
				}
				if !bytes.Equal(got, content[:size]) {
					t.Error("other bytes than the file's")
				}
				if err := <-done; n != size || err != nil || limited.N != int64(len(content))-size {
					t.Errorf("ReadFrom: %d, %v; %d are left", n, err, limited.N)
				}
				if _, err := own.Write([]byte("more")); err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadFull(peer, got[:4]); err != nil || string(got[:4]) != "more" {
					t.Errorf("%q, %v", got[:4], err)
				}
			})
		})
	}
}

// TestKernelTLSHeldBack makes the kernel hold data back, as it may after it was asked for more of a
// file than there was, and then send it.
func TestKernelTLSHeldBack(t *testing.T) {
	eachKernelVersion(t, func(t *testing.T, own *ossl.Conn, peer *tls.Conn) {
		if _, err := own.Write([]byte("first ")); err != nil {
			t.Fatal(err)
		}
		raw, err := own.NetConn().(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		const more = 0x8000 // MSG_MORE
		if err := raw.Write(func(fd uintptr) bool {
			err = syscall.Sendto(int(fd), []byte("held"), more, nil)
			return true
		}); err != nil {
			t.Fatal(err)
		}
		if err != nil {
			t.Fatal("sendto(2):", err)
		}
		for range 2 { // the second time there is nothing to send
			if err := own.FlushKernel(); err != nil {
				t.Fatal(err)
			}
		}
		got := make([]byte, 10)
		if _, err := io.ReadFull(peer, got); err != nil || string(got) != "first held" {
			t.Errorf("%q, %v", got, err)
		}
		if _, err := own.Write([]byte("then more.")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(peer, got); err != nil || string(got) != "then more." {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// TestKernelTLSReadFromGrown makes a file longer while the kernel sends it.
func TestKernelTLSReadFromGrown(t *testing.T) {
	eachKernelVersion(t, func(t *testing.T, own *ossl.Conn, peer *tls.Conn) {
		f := fileOf(t, nil, 8<<20)
		done := make(chan error, 1)
		go func() {
			_, err := io.Copy(own, f)
			done <- errors.Join(err, own.CloseWrite())
		}()
		if at := blocked(t, f); at >= 8<<20 {
			t.Fatal("all of the file was sent, and nobody reads")
		}
		more := tlstest.Pattern(300_001)
		if _, err := f.WriteAt(more, 8<<20); err != nil {
			t.Fatal(err)
		}
		if n, err := io.CopyN(io.Discard, peer, 8<<20); err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
		if got, err := io.ReadAll(peer); err != nil || !bytes.Equal(got, more) {
			t.Errorf("%d bytes behind the first, %v", len(got), err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestKernelTLSReadFromPseudoFiles copies files whose size differs from the length of their
// content. The peer gets the content at once.
func TestKernelTLSReadFromPseudoFiles(t *testing.T) {
	eachKernelVersion(t, func(t *testing.T, own *ossl.Conn, peer *tls.Conn) {
		if _, err := own.Write([]byte("x")); err != nil { // from now on the kernel seals
			t.Fatal(err)
		}
		if _, err := io.ReadFull(peer, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"/sys/kernel/fscaps", "/proc/version"} {
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			f, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			n, err := io.Copy(own, f)
			f.Close()
			if err != nil || n != int64(len(want)) {
				t.Fatalf("%s: %d, %v", name, n, err)
			}
			got := make([]byte, n)
			if _, err := io.ReadFull(peer, got); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: %q, %v; want %q", name, got, err, want)
			}
		}
	})
}

// TestKernelTLSReadFromEnds interrupts copies of a file that the peer doesn't read. Each returns in
// time, reports how much was sent, and leaves the file there.
func TestKernelTLSReadFromEnds(t *testing.T) {
	for name, end := range map[string]struct {
		do   func(own *ossl.Conn, peer *tls.Conn)
		want error
	}{
		"write deadline":  {func(own *ossl.Conn, _ *tls.Conn) { own.SetWriteDeadline(time.Now()) }, os.ErrDeadlineExceeded},
		"Close":           {func(own *ossl.Conn, _ *tls.Conn) { own.Close() }, net.ErrClosed},
		"raw close":       {func(own *ossl.Conn, _ *tls.Conn) { own.NetConn().Close() }, net.ErrClosed},
		"the peer's end":  {func(_ *ossl.Conn, peer *tls.Conn) { peer.NetConn().Close() }, nil},
		"an alert's turn": {func(own *ossl.Conn, peer *tls.Conn) { badRecord(own, peer) }, tls.AlertError(20)},
	} {
		t.Run(name, func(t *testing.T) {
			eachKernelVersion(t, func(t *testing.T, own *ossl.Conn, peer *tls.Conn) {
				const size = 8 << 20
				f := fileOf(t, nil, size)
				limited := &io.LimitedReader{R: f, N: size}
				done := make(chan error, 1)
				var n int64
				go func() {
					var err error
					n, err = io.Copy(own, limited)
					done <- err
				}()
				blocked(t, f)
				end.do(own, peer)
				if name == "an alert's turn" { // after 256 KB
					go io.Copy(io.Discard, peer)
				}
				err := <-done
				if err == nil || end.want != nil && !errors.Is(err, end.want) {
					t.Errorf("error %v, want %v", err, end.want)
				}
				at, _ := f.Seek(0, io.SeekCurrent)
				if n == 0 || n >= size || at != n || limited.N != size-n {
					t.Errorf("ReadFrom returned %d, the file is at %d, %d are left", n, at, limited.N)
				}
				if _, again := own.Write([]byte("more")); again == nil {
					t.Error("a later Write succeeds")
				}
			})
		})
	}
}

// badRecord sends a record from the peer that own can't open, and own's Read queues the alert.
func badRecord(own *ossl.Conn, peer *tls.Conn) {
	_, _ = peer.NetConn().Write(append([]byte{23, 3, 3, 0, 40}, make([]byte, 40)...))
	_, _ = own.Read(make([]byte, 10))
}

// TestKernelTLSReadFromShared calls Write, and CloseWrite at the end, between the parts of a file.
// Each Write's data stays together.
func TestKernelTLSReadFromShared(t *testing.T) {
	eachKernelVersion(t, func(t *testing.T, own *ossl.Conn, peer *tls.Conn) {
		const size = 4 << 20
		f := fileOf(t, nil, size)
		message := bytes.Repeat([]byte("m"), 1000)
		var all sync.WaitGroup
		var fromFile, written int64
		all.Go(func() {
			n, err := io.Copy(own, f)
			if fromFile = n; err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			for range 200 {
				n, err := own.Write(message)
				if written += int64(n); err != nil {
					t.Error(err)
					return
				}
			}
		})
		go func() {
			all.Wait()
			own.CloseWrite()
		}()
		got, err := io.ReadAll(peer)
		if err != nil {
			t.Fatal(err)
		}
		all.Wait()
		if fromFile != size || written != 200_000 {
			t.Errorf("%d and %d bytes", fromFile, written)
		}
		zero := bytes.ReplaceAll(got, message, nil)
		if len(got)-len(zero) != 200_000 || len(zero) != size || bytes.IndexByte(zero, 'm') >= 0 {
			t.Errorf("%d bytes, %d of them the file's", len(got), len(zero))
		}
	})
}

// TestKernelTLSReadFromKeyUpdate changes keys in the middle of a file, because the peer asks for it
// and because a key is used up.
func TestKernelTLSReadFromKeyUpdate(t *testing.T) {
	if seals := needKernelTLS(t); !seals(tls.VersionTLS13) {
		t.Skip("this kernel takes no new keys; ci/kernel-tls runs it with one that does")
	}
	a, b := tlstest.Loopback()
	own := ossltest.NewContext(t, tlstest.ServerConfig(), ossl.WithKernelTLS()).Server(b)
	peer := ossltest.NewContext(t, tlstest.ClientConfig()).Client(a, "")
	defer peer.Close()
	defer own.Close()
	tlstest.Shake(t, peer, own)
	content := tlstest.Pattern(4 << 20)
	f := fileOf(t, content, int64(len(content)))
	go io.Copy(io.Discard, own) // answers
	done := make(chan error, 1)
	go func() {
		_, err := io.Copy(own, f)
		done <- err
	}()
	got := make([]byte, len(content))
	const part = 400_000
	for at := 0; at < len(got); at += part {
		if _, err := io.ReadFull(peer, got[at:min(at+part, len(got))]); err != nil {
			t.Fatal(err)
		}
		if err := peer.KeyUpdate(true); err != nil {
			t.Fatal(err)
		}
		if at%(2*part) == 0 {
			own.SpendKernelKey()
		}
	}
	if err := <-done; err != nil || !bytes.Equal(got, content) || !own.KernelTLS() {
		t.Errorf("%v; the same: %v", err, bytes.Equal(got, content))
	}
}

// TestKernelTLSReadFromClosedFile closes the file in the middle: the error is the file's, and the
// connection goes on.
func TestKernelTLSReadFromClosedFile(t *testing.T) {
	eachKernelVersion(t, func(t *testing.T, own *ossl.Conn, peer *tls.Conn) {
		f := fileOf(t, nil, 8<<20)
		var n int64
		done := make(chan error, 1)
		go func() {
			var err error
			n, err = io.Copy(own, f)
			if _, err := own.Write([]byte("more")); err != nil {
				t.Error(err)
			}
			own.CloseWrite()
			done <- err
		}()
		blocked(t, f)
		go f.Close() // which waits until sendfile(2) has returned
		got, err := io.Copy(io.Discard, peer)
		if err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, os.ErrClosed) {
			t.Errorf("error %v, want %v", err, os.ErrClosed)
		}
		if got != n+4 {
			t.Errorf("%d bytes of %d", got, n+4)
		}
	})
}
