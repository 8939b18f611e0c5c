//go:build (cgo || ossl_nocgo) && linux

package ossl_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

const tcpULP = 31 // linux/tcp.h

// kernelHas reports whether the kernel seals for TLS 1.2 and for TLS 1.3. It asks with a new
// socket.
var kernelHas = sync.OnceValues(func() (tls12, tls13 bool) {
	client, server := tlstest.Loopback()
	defer server.Close()
	defer client.Close()
	raw, err := client.(*net.TCPConn).SyscallConn()
	if err != nil {
		return false, false
	}
	raw.Control(func(fd uintptr) {
		tls12 = syscall.SetsockoptString(int(fd), syscall.IPPROTO_TCP, tcpULP, "tls") == nil
	})
	stat, err := os.ReadFile("/proc/net/tls_stat")
	return tls12, tls12 && err == nil && strings.Contains(string(stat), "TlsTxRekeyOk")
})

// needKernelTLS skips the test if the kernel doesn't seal. seals reports whether it seals for a
// version.
func needKernelTLS(t *testing.T) (seals func(version uint16) bool) {
	t.Helper()
	tls12, tls13 := kernelHas()
	if want := os.Getenv(envTestKernel); want != "" && (!tls12 || tls13 != (want == "rekeys")) {
		t.Fatalf("%s=%s, and the kernel has TLS: %v, rekeys: %v", envTestKernel, want, tls12, tls13)
	}
	switch {
	case ossltest.InFIPS:
		t.Skip("OSSL_TEST_FIPS: FIPS mode refuses kernel TLS")
	case ossltest.RecordsByLibssl():
		t.Skip("OSSL_RECORDS=libssl leaves the records with libssl")
	case !tls12:
		t.Skip("this kernel has no TLS; ci/kernel-tls runs it")
	}
	return func(version uint16) bool { return version != tls.VersionTLS13 || tls13 }
}

// kernelConn connects an ossl.Conn with kernel TLS to crypto/tls over TCP, with the handshakes
// done.
func kernelConn(t *testing.T, isClient bool, version, suite uint16) (own *ossl.Conn, peer *tls.Conn) {
	t.Helper()
	clients, servers := tlstest.ClientConfig(), tlstest.ServerConfig()
	opts := []ossl.Option{ossl.WithKernelTLS()}
	for _, config := range []*tls.Config{clients, servers} {
		config.MaxVersion = version
		if version == tls.VersionTLS12 {
			config.CipherSuites = []uint16{suite}
		}
	}
	if version == tls.VersionTLS13 {
		opts = append(opts, ossl.WithTLS13CipherSuites(suite))
	}
	a, b := tlstest.Loopback()
	if isClient {
		own, peer = ossltest.NewContext(t, clients, opts...).Client(a, ""), tls.Server(b, servers)
	} else {
		own, peer = ossltest.NewContext(t, servers, opts...).Server(b), tls.Client(a, clients)
	}
	t.Cleanup(func() { own.Close(); peer.Close() })
	if isClient {
		tlstest.Shake(t, own, peer)
	} else {
		tlstest.Shake(t, peer, own)
	}
	if got := own.ConnectionState().CipherSuite; got != suite {
		t.Fatalf("suite %#04x instead of %#04x", got, suite)
	}
	return own, peer
}

// eachKernelSuite runs a test as client and server with each version and suite.
func eachKernelSuite(t *testing.T, test func(t *testing.T, isClient bool, version, suite uint16)) {
	for version, suites := range map[uint16][]uint16{
		tls.VersionTLS12: {tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256},
		tls.VersionTLS13: {tls.TLS_AES_128_GCM_SHA256, tls.TLS_AES_256_GCM_SHA384, tls.TLS_CHACHA20_POLY1305_SHA256},
	} {
		for _, suite := range suites {
			for role, isClient := range map[string]bool{"client": true, "server": false} {
				t.Run(tls.VersionName(version)+" "+tls.CipherSuiteName(suite)+" "+role, func(t *testing.T) {
					test(t, isClient, version, suite)
				})
			}
		}
	}
}

// TestKernelTLS writes texts of many sizes to crypto/tls, which answers each, and closes.
func TestKernelTLS(t *testing.T) {
	seals := needKernelTLS(t)
	eachKernelSuite(t, func(t *testing.T, isClient bool, version, suite uint16) {
		own, peer := kernelConn(t, isClient, version, suite)
		go func() {
			io.Copy(peer, peer)
			peer.Close()
		}()
		for _, n := range []int{1, 2, 1000, 16383, 16384, 16385, 100_000, 1 << 20} {
			text, got := tlstest.Pattern(n), make([]byte, n)
			go own.Write(text)
			if _, err := io.ReadFull(own, got); err != nil || !bytes.Equal(got, text) {
				t.Fatalf("%d bytes: %v", n, err)
			}
		}
		if own.SendsFiles() != seals(version) {
			t.Errorf("SendsFiles is %v", own.SendsFiles())
		}
		if own.KernelTLS() != seals(version) || slices.Contains(ossl.KernelTLS(), version) != seals(version) {
			t.Errorf("KernelTLS is %v, of %x", own.KernelTLS(), ossl.KernelTLS())
		}
		if err := own.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if n, err := own.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Errorf("after close_notify: %d, %v", n, err)
		}
		if _, err := own.Write([]byte("more")); err == nil {
			t.Error("wrote after close_notify")
		}
		if err := own.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestKernelTLSLater checks that if libssl has the records until the first ticket or data, the
// kernel takes them over then.
func TestKernelTLSLater(t *testing.T) {
	seals := needKernelTLS(t)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		clients := tlstest.ClientConfig()
		clients.MaxVersion, clients.ClientSessionCache = version, tls.NewLRUClientSessionCache(1)
		client := ossltest.NewContext(t, clients, ossl.WithKernelTLS())
		for visit := range 3 {
			a, b := tlstest.Loopback()
			own, peer := client.Client(a, ""), tls.Server(b, tlstest.ServerConfig())
			tlstest.Shake(t, own, peer)
			go func() {
				io.Copy(peer, peer)
				peer.Close()
			}()
			for _, n := range []int{10, 50_000, 100_000} {
				text, got := tlstest.Pattern(n), make([]byte, n)
				if _, err := own.Write(text); err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadFull(own, got); err != nil || !bytes.Equal(got, text) {
					t.Fatalf("%s, visit %d, %d bytes: %v", tls.VersionName(version), visit, n, err)
				}
			}
			if own.KernelTLS() != seals(version) {
				t.Errorf("%s, visit %d: KernelTLS is %v", tls.VersionName(version), visit, own.KernelTLS())
			}
			own.Close()
		}
	}
}

// TestKernelTLSFile sends parts of a file, which don't pass through the process if the kernel
// seals.
func TestKernelTLSFile(t *testing.T) {
	seals := needKernelTLS(t)
	content := tlstest.Pattern(3<<20 + 12345)
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	for version, suite := range map[uint16]uint16{
		tls.VersionTLS12: tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.VersionTLS13: tls.TLS_AES_128_GCM_SHA256,
	} {
		for _, part := range []struct {
			name     string
			from, to int
			all      bool
		}{
			{"all", 0, len(content), true},
			{"nothing", len(content), len(content), true},
			{"nothing of it", 0, 0, false},
			{"the rest", 4097, len(content), true},
			{"a part", 70_000, 2_000_001, false},
			{"beyond the end", len(content) - 10, len(content) + 10, false},
		} {
			t.Run(tls.VersionName(version)+" "+part.name, func(t *testing.T) {
				own, peer := kernelConn(t, false, version, suite)
				f, err := os.Open(path)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				if _, err := f.Seek(int64(part.from), io.SeekStart); err != nil {
					t.Fatal(err)
				}
				received := make(chan []byte)
				go func() {
					b, err := io.ReadAll(peer)
					if err != nil {
						t.Error(err)
					}
					received <- b
				}()
				if _, err := own.Write([]byte("before ")); err != nil {
					t.Fatal(err)
				}
				want := content[part.from:min(part.to, len(content))]
				n := int64(part.to - part.from)
				if part.all {
					n = -1
				}
				byKernel, err := own.SendByKernel(f, max(n, int64(len(want))))
				if err != nil || byKernel != 0 && !seals(version) || byKernel != int64(len(want)) && seals(version) {
					t.Fatalf("the kernel sent %d of %d bytes, %v", byKernel, len(want), err)
				}
				if n >= 0 {
					n -= byKernel
				}
				if rest, err := own.SendFile(f, n); byKernel+rest != int64(len(want)) || err != nil {
					t.Fatalf("%d and %d, %v; want %d", byKernel, rest, err, len(want))
				}
				if at, err := f.Seek(0, io.SeekCurrent); at != int64(part.from+len(want)) || err != nil {
					t.Errorf("the file is at %d, %v", at, err)
				}
				if _, err := own.Write([]byte(" behind")); err != nil {
					t.Fatal(err)
				}
				own.Close()
				got := <-received
				if string(got) != "before "+string(want)+" behind" {
					t.Errorf("%d bytes came, of %d", len(got), len(want)+14)
				}
				stats := own.Stats()
				if stats.BytesWritten != uint64(len(got)) || (stats.Records.Kernel == 1) != seals(version) {
					t.Errorf("%d bytes were counted, want %d; %+v", stats.BytesWritten, len(got), stats.Records)
				}
			})
		}
	}
}

// TestKernelTLSBadFile checks that the caller gets an error of the file, and that the connection
// goes on.
func TestKernelTLSBadFile(t *testing.T) {
	needKernelTLS(t)
	own, peer := kernelConn(t, false, tls.VersionTLS12, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256)
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var bad *fs.PathError
	if n, err := own.SendFile(f, -1); n != 0 || !errors.As(err, &bad) {
		t.Errorf("%d, %v; want the file's error", n, err)
	}
	if _, err := own.Write([]byte("data")); err != nil || !own.KernelTLS() {
		t.Error(err)
	}
	got := make([]byte, 4)
	if _, err := io.ReadFull(peer, got); err != nil || string(got) != "data" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestKernelTLSKeyUpdate changes the keys of both directions while data flows: because the peer
// asks for it, and because a key has sealed as much as it may.
func TestKernelTLSKeyUpdate(t *testing.T) {
	seals := needKernelTLS(t)
	if !seals(tls.VersionTLS13) {
		t.Skip("this kernel takes no new keys; ci/kernel-tls runs it with one that does")
	}
	for _, isClient := range []bool{true, false} {
		clients, servers := ossltest.NewContext(t, tlstest.ClientConfig(), ossl.WithKernelTLS()), ossltest.NewContext(t,
			tlstest.ServerConfig(),
			ossl.WithKernelTLS())
		a, b := tlstest.Loopback()
		own, peer := clients.Client(a, ""), servers.Server(b)
		t.Cleanup(func() { own.Close(); peer.Close() })
		tlstest.Shake(t, own, peer)
		if !isClient {
			own, peer = peer, own
		}
		const size, each = 4 << 20, 60_000
		text := tlstest.Pattern(size)
		var all sync.WaitGroup
		failed := func(err error) { // stops the calls that would wait for it
			t.Error(err)
			own.NetConn().Close()
			peer.NetConn().Close()
		}
		for _, c := range []*ossl.Conn{own, peer} {
			all.Go(func() {
				for sent := 0; sent < size; sent += each {
					if _, err := c.Write(text[sent:min(size, sent+each)]); err != nil {
						failed(err)
						return
					}
					// Answers hold no application data. All of them may come in a row, so their
					// number is below the limit.
					if c == peer && sent%(6*each) == 0 {
						if err := c.KeyUpdate(true); err != nil {
							failed(err)
							return
						}
					} else if c == own && sent%(20*each) == 0 {
						c.SpendKernelKey()
					}
				}
			})
			all.Go(func() {
				got := make([]byte, size)
				if n, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, text) {
					failed(fmt.Errorf("%d bytes, %v", n, err))
				}
			})
		}
		all.Wait()
		if !own.KernelTLS() || !peer.KernelTLS() {
			t.Error("the kernel doesn't seal")
		}
	}
}

// TestKernelTLSAlert checks that the kernel sends the alert if a record from the peer can't be
// opened.
func TestKernelTLSAlert(t *testing.T) {
	needKernelTLS(t)
	eachKernelSuite(t, func(t *testing.T, isClient bool, version, suite uint16) {
		own, peer := kernelConn(t, isClient, version, suite)
		if _, err := own.Write([]byte("data")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(peer, make([]byte, 4)); err != nil {
			t.Fatal(err)
		}
		garbage := append([]byte{23, 3, 3, 0, 40}, make([]byte, 40)...)
		if _, err := peer.NetConn().Write(garbage); err != nil {
			t.Fatal(err)
		}
		var alert tls.AlertError
		if _, err := own.Read(make([]byte, 10)); !errors.As(err, &alert) || alert != 20 {
			t.Errorf("own error: %v, want bad_record_mac", err)
		}
		var remote *net.OpError // around crypto/tls's own type of alert
		if _, err := peer.Read(make([]byte, 10)); !errors.As(err, &remote) || remote.Op != "remote error" ||
			remote.Err.Error() != tls.AlertError(20).Error() {
			t.Errorf("the peer's error: %v, want bad_record_mac", err)
		}
		if _, err := own.Write([]byte("more")); !errors.As(err, &alert) {
			t.Errorf("Write afterwards: %v", err)
		}
	})
}

// TestKernelTLSDeadline checks that a Write that the peer doesn't read returns in time, and that
// nothing follows it.
func TestKernelTLSDeadline(t *testing.T) {
	needKernelTLS(t)
	own, peer := kernelConn(t, false, tls.VersionTLS12, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256)
	own.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	n, err := own.Write(make([]byte, 64<<20))
	if !errors.Is(err, os.ErrDeadlineExceeded) || n == 64<<20 {
		t.Fatalf("%d, %v", n, err)
	}
	own.SetWriteDeadline(time.Time{})
	if _, again := own.Write([]byte("more")); again == nil || errors.Is(again, os.ErrDeadlineExceeded) != true {
		t.Errorf("afterwards: %v", again)
	}
	peer.Close()
}

// TestKernelTLSClose calls Close at the same time as Write and SendFile, and while a peer asks for
// new keys.
func TestKernelTLSClose(t *testing.T) {
	seals := needKernelTLS(t)
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, make([]byte, 200_000), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		clients, servers := tlstest.ClientConfig(), tlstest.ServerConfig()
		if !seals(tls.VersionTLS13) || i%4 == 3 {
			clients.MaxVersion = tls.VersionTLS12
		}
		a, b := tlstest.Loopback()
		client := ossltest.NewContext(t, clients, ossl.WithKernelTLS()).Client(a, "")
		server := ossltest.NewContext(t, servers, ossl.WithKernelTLS()).Server(b)
		tlstest.Shake(t, client, server)
		var all sync.WaitGroup
		for _, c := range []*ossl.Conn{client, server} {
			all.Go(func() {
				f, err := os.Open(path)
				if err != nil {
					t.Error(err)
					return
				}
				defer f.Close()
				for err == nil {
					if _, err = c.Write(make([]byte, 5000)); err == nil {
						f.Seek(0, io.SeekStart)
						_, err = c.SendFile(f, -1)
					}
					if err == nil && c.ConnectionState().Version == tls.VersionTLS13 {
						err = c.KeyUpdate(true)
					}
				}
			})
			all.Go(func() { io.Copy(io.Discard, c) })
		}
		time.Sleep(time.Duration(i) * time.Millisecond / 2)
		client.Close()
		if i%2 == 0 {
			server.Close()
		}
		all.Wait()
		server.Close()
		if !client.Freed() || !server.Freed() {
			t.Fatal("memory is left")
		}
	}
}

// TestKernelTLSMultipath checks that a client of Multipath TCP, whose sockets take no keys, doesn't
// affect later clients.
func TestKernelTLSMultipath(t *testing.T) {
	needKernelTLS(t)
	servers, clients := ossltest.NewContext(t, tlstest.ServerConfig(), ossl.WithKernelTLS()), tlstest.ClientConfig()
	clients.MaxVersion = tls.VersionTLS12
	var config net.ListenConfig
	config.SetMultipathTCP(true)
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for i, multipath := range []bool{false, true, false} {
		var dialer net.Dialer
		dialer.SetMultipathTCP(multipath)
		a, err := dialer.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		b, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		own, peer := servers.Server(b), tls.Client(a, clients)
		tlstest.Shake(t, peer, own)
		if _, err := own.Write([]byte("data")); err != nil {
			t.Error(err)
		}
		if _, err := io.ReadFull(peer, make([]byte, 4)); err != nil {
			t.Error(err)
		}
		is, err := b.(*net.TCPConn).MultipathTCP()
		if err != nil || own.KernelTLS() == is {
			t.Errorf("connection %d, multipath %v, %v: KernelTLS is %v", i, is, err, own.KernelTLS())
		}
		peer.Close()
		own.Close()
	}
}

// TestKernelTLSIsNot checks that connections that the kernel can't seal for work without it, and
// that options that contradict WithKernelTLS are refused.
func TestKernelTLSIsNot(t *testing.T) {
	if ossltest.InFIPS {
		t.Skip("OSSL_TEST_FIPS: FIPS mode refuses kernel TLS")
	}
	type wrapped struct{ net.Conn }
	for name, pair := range map[string]func() (net.Conn, net.Conn){
		"pipe": tlstest.Buffered,
		"wrapped": func() (net.Conn, net.Conn) {
			a, b := tlstest.Loopback()
			return wrapped{a}, wrapped{b}
		},
		"tcp": tlstest.Loopback,
	} {
		t.Run(name, func(t *testing.T) {
			a, b := pair()
			client := ossltest.NewContext(t, tlstest.ClientConfig(), ossl.WithKernelTLS()).Client(a, "")
			server := ossltest.NewContext(t, tlstest.ServerConfig(), ossl.WithKernelTLS()).Server(b)
			defer server.Close()
			defer client.Close()
			tlstest.Shake(t, client, server)
			text := tlstest.Pattern(200_000)
			sent := make(chan error, 1)
			go func() {
				_, err := server.Write(text)
				sent <- err
			}()
			got := make([]byte, len(text))
			if _, err := io.ReadFull(client, got); err != nil || !bytes.Equal(got, text) {
				t.Error(err)
			}
			if err := <-sent; err != nil {
				t.Error(err)
			}
			if got := server.SendsFiles(); got != (name == "tcp" && slices.Contains(ossl.KernelTLS(), tls.VersionTLS13)) {
				t.Errorf("SendsFiles is %v", got)
			}
			if _, tls13 := kernelHas(); server.KernelTLS() != (name == "tcp" && tls13 && !ossltest.RecordsByLibssl()) {
				t.Errorf("KernelTLS is %v", server.KernelTLS())
			}
		})
	}
	for _, opts := range [][]ossl.Option{
		{ossl.WithKernelTLS(), ossl.WithRecordPath(ossl.RecordsLibssl)},
		{ossl.WithRecordPath(ossl.RecordsLibssl), ossl.WithKernelTLS()},
	} {
		var e *ossl.ConfigError
		if _, err := ossl.NewContext(tlstest.ServerConfig(), opts...); !errors.As(err, &e) || e.Field != "WithKernelTLS" {
			t.Errorf("kernel TLS with libssl's records: %v", err)
		}
	}
}

// TestSendFile sends files of all kinds, on every record path.
func TestSendFile(t *testing.T) {
	client, server := ossltest.Connected(t, tlstest.Loopback, nil)
	text := tlstest.Pattern(300_000)
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, part := range []struct{ n, want int64 }{{100_000, 100_000}, {0, 0}, {-1, 200_000}, {5, 0}} {
			if n, err := client.SendFile(f, part.n); n != part.want || err != nil {
				t.Errorf("%d, %v; want %d", n, err, part.want)
			}
		}
		go func() {
			defer out.Close()
			_, _ = out.Write([]byte("from a pipe"))
		}()
		if n, err := client.SendFile(in, -1); n != 11 || err != nil {
			t.Errorf("a pipe: %d, %v", n, err)
		}
		f.Close()
		if n, err := client.SendFile(f, -1); n != 0 || !errors.Is(err, os.ErrClosed) {
			t.Errorf("a closed file: %d, %v", n, err)
		}
		client.CloseWrite()
		again, err := os.Open(path)
		if err != nil {
			t.Error(err)
			return
		}
		defer again.Close()
		if n, err := client.SendFile(again, -1); n != 0 || err == nil {
			t.Errorf("after close_notify: %d, %v", n, err)
		}
	}()
	if got, err := io.ReadAll(server); err != nil || string(got) != string(text)+"from a pipe" {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	<-ended
}

// TestKernelTLSUploads checks that with kernel TLS too no data is lost if a client writes and
// closes without reading, and that a server's tickets leave before the kernel seals.
func TestKernelTLSUploads(t *testing.T) {
	seals := needKernelTLS(t)
	for _, version := range tlstest.Versions {
		for _, resumed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/resumed=%v", tls.VersionName(version), resumed), func(t *testing.T) {
				cc, sc := tlstest.Resuming(version)
				if !resumed { // with a cache, a TLS 1.3 client that doesn't read leaves its records to libssl
					cc.ClientSessionCache = nil
				}
				client, server := ossltest.Client(t, cc, ossl.WithKernelTLS()), ossltest.Server(t, sc, ossl.WithKernelTLS())
				for _, size := range []int{1, 10_000, 100_000, 1_000_000} {
					if resumed {
						a, b := tlstest.Loopback()
						c, s := client(a), server(b)
						tlstest.EchoBack(t, c, s, tlstest.Pattern(1000))
						if got := s.(*ossl.Conn).KernelTLS(); got != seals(version) {
							t.Errorf("the kernel seals for the server: %v", got)
						}
						c.Close()
						s.Close()
					}
					if err := (tlstest.Upload{Size: size, After: 20 * time.Millisecond}).Run(client, server, resumed); err != nil {
						t.Errorf("%d bytes: %v", size, err)
					}
				}
			})
		}
	}
}
