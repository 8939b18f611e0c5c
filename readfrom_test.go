//go:build cgo || ossl_nocgo

package ossl_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/iotest"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

var _ io.ReaderFrom = (*ossl.Conn)(nil)

// envTestKernel names an environment variable with the kind of kernel TLS that tests need: "plain",
// or "rekeys" if it takes new keys. ci/kernel-tls sets it in its virtual machines; otherwise tests
// that need such a kernel may skip.
const envTestKernel = "OSSL_TEST_KERNEL"

// copyServers are the implementations of a server that files are copied to: crypto/tls first.
func copyServers(t *testing.T) (names []string, servers map[string]func(net.Conn) tlstest.Conn) {
	servers = map[string]func(net.Conn) tlstest.Conn{
		"crypto/tls": func(conn net.Conn) tlstest.Conn { return tlstest.Std.Server(conn, tlstest.ServerConfig()) },
	}
	names = []string{"crypto/tls"}
	if os.Getenv(envTestKernel) == "" { // the machines of ci/kernel-tls are slow
		servers["ossl"] = func(conn net.Conn) tlstest.Conn { return ossltest.UnderTest.Server(conn, tlstest.ServerConfig()) }
		names = append(names, "ossl")
	}
	if !ossltest.InFIPS { // which refuses kernel TLS
		ctx := ossltest.NewContext(t, tlstest.ServerConfig(), ossl.WithKernelTLS())
		servers["kernel TLS"] = func(conn net.Conn) tlstest.Conn { return ctx.Server(conn) }
		names = append(names, "kernel TLS")
	}
	return names, servers
}

// An upperFile has a Read of its own, which must be called although the type has all methods of an
// *os.File.
type upperFile struct{ *os.File }

func (f upperFile) Read(b []byte) (int, error) {
	n, err := f.File.Read(b)
	return copy(b, bytes.ToUpper(b[:n])), err
}

// seek returns f with an offset.
func seek(f *os.File, offset int64, whence int) *os.File {
	_, _ = f.Seek(offset, whence)
	return f
}

// copySources are the sources of copies. Most of them begin with a file.
var copySources = map[string]func(f *os.File) io.Reader{
	"file":                       func(f *os.File) io.Reader { return f },
	"file at 5000":               func(f *os.File) io.Reader { return seek(f, 5000, io.SeekStart) },
	"file at its end":            func(f *os.File) io.Reader { return seek(f, 0, io.SeekEnd) },
	"file past its end":          func(f *os.File) io.Reader { return seek(f, 1<<40, io.SeekStart) },
	"closed file":                func(f *os.File) io.Reader { f.Close(); return f },
	"first bytes":                func(f *os.File) io.Reader { return io.LimitReader(f, 70_001) },
	"one byte":                   func(f *os.File) io.Reader { return io.LimitReader(f, 1) },
	"no bytes":                   func(f *os.File) io.Reader { return io.LimitReader(f, 0) },
	"less than no bytes":         func(f *os.File) io.Reader { return io.LimitReader(f, -1) },
	"more than there is":         func(f *os.File) io.Reader { return io.LimitReader(f, 1<<40) },
	"middle":                     func(f *os.File) io.Reader { return io.LimitReader(seek(f, 33_333, io.SeekStart), 300_000) },
	"limited twice":              func(f *os.File) io.Reader { return io.LimitReader(io.LimitReader(f, 90_000), 50_000) },
	"section":                    func(f *os.File) io.Reader { return io.NewSectionReader(f, 1000, 200_000) },
	"limited, with its own Read": func(f *os.File) io.Reader { return io.LimitReader(upperFile{f}, 100_000) },
	"a Reader and nothing else":  func(f *os.File) io.Reader { return struct{ io.Reader }{upperFile{f}} },
	"single bytes":               func(f *os.File) io.Reader { return iotest.OneByteReader(io.LimitReader(f, 100)) },
	"data with EOF":              func(f *os.File) io.Reader { return iotest.DataErrReader(f) },
	"an error after the file":    func(f *os.File) io.Reader { return io.MultiReader(f, iotest.ErrReader(errNoRoom)) },
	"an error at once":           func(f *os.File) io.Reader { return iotest.ErrReader(errNoRoom) },
	"limited buffer": func(*os.File) io.Reader {
		return io.LimitReader(bytes.NewBuffer(tlstest.Pattern(80_000)), 70_000)
	},
}

// TestReadFrom copies sources to connections. Each copy must have the same results, leave the same
// of the source, and bring the same bytes as a copy to crypto/tls.
func TestReadFrom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, bytes.Repeat([]byte("text of a file "), 40_000), 0o600); err != nil {
		t.Fatal(err)
	}
	names, servers := copyServers(t)
	for mode, flag := range map[string]int{"": os.O_RDONLY, ", to append": os.O_RDWR | os.O_APPEND, ", to write": os.O_WRONLY} {
		for name, of := range copySources {
			if mode != "" && name != "file" && name != "middle" {
				continue
			}
			t.Run(name+mode, func(t *testing.T) {
				want := ""
				for i, impl := range names {
					f, err := os.OpenFile(path, flag, 0)
					if err != nil {
						t.Fatal(err)
					}
					got := copied(t, servers[impl], f, of(f))
					f.Close()
					if i == 0 {
						want = got
					} else if got != want {
						t.Errorf("%s:\n%s\ncrypto/tls:\n%s", impl, got, want)
					}
				}
			})
		}
	}
}

// copied describes a copy: its results, what is left of the source, and the bytes that came.
func copied(t *testing.T, server func(net.Conn) tlstest.Conn, f *os.File, src io.Reader) string {
	t.Helper()
	a, b := tlstest.Loopback()
	c, peer := server(b), tls.Client(a, tlstest.ClientConfig())
	defer peer.Close()
	digest := sha256.New()
	received := make(chan string, 1)
	go func() {
		n, err := io.Copy(digest, peer)
		received <- fmt.Sprint(n, " bytes came, ", tlstest.Class(err))
	}()
	n, err := io.Copy(c, src)
	result := fmt.Sprint(n, " bytes copied, error ", tlstest.Class(err), errors.Is(err, errNoRoom), errors.Is(err, os.ErrClosed))
	if at, err := f.Seek(0, io.SeekCurrent); err == nil {
		result += fmt.Sprint(", the file is at ", at)
	}
	if limited, ok := src.(*io.LimitedReader); ok {
		result += fmt.Sprint(", ", limited.N, " are left")
	}
	result += fmt.Sprint(", handshake done: ", c.ConnectionState().HandshakeComplete)
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("more")); err != nil {
		t.Error("a Write afterwards:", err)
	}
	c.Close()
	return fmt.Sprintf("%s, %s, %x", result, <-received, digest.Sum(nil))
}

// TestReadFromSlowly checks that data leaves as it comes, and that a connection isn't locked while
// ReadFrom waits for more.
func TestReadFromSlowly(t *testing.T) {
	names, servers := copyServers(t)
	for _, impl := range names {
		t.Run(impl, func(t *testing.T) {
			a, b := tlstest.Loopback()
			c, peer := servers[impl](b), tls.Client(a, tlstest.ClientConfig())
			defer peer.Close()
			in, out, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			done := make(chan error, 1)
			go func() {
				n, err := io.Copy(c, in)
				if n != 30 {
					err = errors.Join(fmt.Errorf("%d bytes", n), err)
				}
				done <- err
			}()
			peer.SetReadDeadline(time.Now().Add(tlstest.Patience))
			got := make([]byte, 10)
			expect := func(want string) {
				t.Helper()
				if _, err := io.ReadFull(peer, got); err != nil || string(got) != want {
					t.Fatalf("%q, %v; want %q", got, err, want)
				}
			}
			for i := range 3 {
				text := fmt.Sprintf("piped %04d", i)
				if _, err := out.WriteString(text); err != nil {
					t.Fatal(err)
				}
				expect(text)
				text = fmt.Sprintf("wrote %04d", i)
				if _, err := c.Write([]byte(text)); err != nil { // while the pipe is empty
					t.Fatal(err)
				}
				expect(text)
			}
			if err := c.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if n, err := peer.Read(got); n != 0 || err != io.EOF {
				t.Errorf("after CloseWrite: %d, %v", n, err)
			}
			out.Close()
			if err := <-done; err != nil {
				t.Error(err)
			}
			c.Close()
		})
	}
}

// TestReadFromClosed checks ReadFrom on a connection that was closed, or whose sending side was,
// before or while the source has no data.
func TestReadFromClosed(t *testing.T) {
	names, servers := copyServers(t)
	for name, end := range map[string]func(tlstest.Conn) error{
		"Close": tlstest.Conn.Close, "CloseWrite": tlstest.Conn.CloseWrite,
		"deadline": func(c tlstest.Conn) error { return c.SetWriteDeadline(time.Now().Add(-time.Second)) },
	} {
		for _, during := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", during: ", during), func(t *testing.T) {
				want := ""
				for i, impl := range names {
					a, b := tlstest.Loopback()
					c, peer := servers[impl](b), tls.Client(a, tlstest.ClientConfig())
					tlstest.Shake(t, peer, c)
					if !during {
						if err := end(c); err != nil {
							t.Fatal(err)
						}
					}
					in, out := io.Pipe()
					done := make(chan string, 1)
					go func() {
						n, err := io.Copy(c, in)
						done <- fmt.Sprint(n, tlstest.Class(err), errors.Is(err, net.ErrClosed), errors.Is(err, os.ErrDeadlineExceeded))
						in.Close()
					}()
					if during {
						if _, err := out.Write([]byte("first")); err != nil {
							t.Fatal(err)
						}
						if _, err := io.ReadFull(peer, make([]byte, 5)); err != nil {
							t.Fatal(err)
						}
						if err := end(c); err != nil {
							t.Fatal(err)
						}
					}
					out.Write([]byte("second"))
					out.Close()
					if got := <-done; i == 0 {
						want = got
					} else if got != want {
						t.Errorf("%s: %s; crypto/tls: %s", impl, got, want)
					}
					peer.Close()
					c.Close()
				}
			})
		}
	}
}

// TestReadFromBuffered checks a bufio.Writer, which calls ReadFrom.
func TestReadFromBuffered(t *testing.T) {
	client, server := ossltest.Connected(t, tlstest.Loopback, nil)
	text := tlstest.Pattern(100_000)
	go func() {
		w := bufio.NewWriter(client)
		w.WriteString("begin ")
		if n, err := io.Copy(w, io.LimitReader(bytes.NewReader(text), 1<<40)); n != int64(len(text)) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		w.WriteString(" end")
		w.Flush()
		client.Close()
	}()
	if got, err := io.ReadAll(server); err != nil || string(got) != "begin "+string(text)+" end" {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// A zeros is an endless source without a WriteTo.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// TestReadFromAllocatesNothing checks that copies to a connection reuse their buffers.
func TestReadFromAllocatesNothing(t *testing.T) {
	if ossltest.Race {
		t.Skip("the race detector and AddressSanitizer allocate")
	}
	client, server := ossltest.Connected(t, tlstest.Loopback, nil)
	go io.Copy(io.Discard, server)
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, make([]byte, 300_000), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	limited := &io.LimitedReader{R: zeros{}}
	of := map[string]func() (int64, error){
		"a little": func() (int64, error) { limited.N = 100; return io.Copy(client, limited) },
		"much":     func() (int64, error) { limited.N = 300_000; return io.Copy(client, limited) },
		"a file": func() (int64, error) {
			limited.R, limited.N = seek(f, 0, io.SeekStart), 300_000
			return io.Copy(client, limited)
		},
	}
	for _, name := range []string{"a little", "much", "a file"} {
		send := func() {
			if _, err := of[name](); err != nil {
				t.Fatal(err)
			}
		}
		send()
		runtime.GC() // a collection empties the buffer pools; let it be over
		if n := testing.AllocsPerRun(100, send); n >= 1 {
			t.Errorf("%s: %.1f allocations a copy", name, n)
		}
	}
}
