//go:build cgo || ossl_nocgo

package psk

import (
	"bytes"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

const line = "hello\n"

var (
	identity = string(key256.Identity)
	hexKey   = hex.EncodeToString(key256.Key)
)

// serveLine makes a server that answers one connection's line. done gets its state.
func serveLine(t *testing.T, version uint16, opts ...ossl.Option) (port string, done chan error) {
	t.Helper()
	return serveLineOf(t, only(version), opts...)
}

func serveLineOf(t *testing.T, config *tls.Config, opts ...ossl.Option) (port string, done chan error) {
	t.Helper()
	l, err := ossltest.NewPlainContext(t, config, append(opts, knowing(key256, key384))...).Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	done = make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			defer conn.Close()
			err = answerLine(conn.(*ossl.Conn), config.MaxVersion)
		}
		done <- err
	}()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port, done
}

func answerLine(conn *ossl.Conn, version uint16) error {
	conn.SetDeadline(time.Now().Add(tlstest.Patience))
	buf := make([]byte, len(line))
	if _, err := io.ReadFull(conn, buf); err != nil {
		return err
	}
	if state := conn.ConnectionState(); state.Version != version || state.DidResume || state.PeerCertificates != nil ||
		!bytes.Equal(conn.PSKIdentity(), key256.Identity) {
		return fmt.Errorf("%q, %+v", conn.PSKIdentity(), state)
	}
	_, err := conn.Write(buf)
	return err
}

// runClient runs a client that gets a line and has to print it.
func runClient(t *testing.T, done <-chan error, cmd *exec.Cmd) {
	t.Helper()
	in, err := cmd.StdinPipe() // it stays open: some clients end at the end of their input
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(in, line)
	out, err := cmd.CombinedOutput()
	if serr := <-done; serr != nil {
		t.Errorf("our server: %v", serr)
	}
	if err != nil || !strings.Contains(string(out), line) {
		t.Errorf("%s: %v\n%s", cmd, err, out)
	}
}

// dialLine sends a line to a program's server, and expects the answer.
func dialLine(t *testing.T, addr string, version uint16, answer string, opts ...ossl.Option) tls.ConnectionState {
	t.Helper()
	var conn *ossl.Conn
	var err error
	client := ossltest.NewPlainContext(t, only(version), append(opts, offering(key256))...)
	for end := time.Now().Add(tlstest.Patience); ; time.Sleep(20 * time.Millisecond) { // not every program says when it listens
		if conn, err = client.Dial("tcp", addr); err == nil || time.Now().After(end) || !isRefused(err) {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(tlstest.Patience))
	if !bytes.Equal(conn.PSKIdentity(), key256.Identity) {
		t.Errorf("identity %q", conn.PSKIdentity())
	}
	buf := make([]byte, len(answer))
	if _, err := io.WriteString(conn, line); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, buf); err != nil || string(buf) != answer {
		t.Errorf("%q, %v", buf, err)
	}
	return conn.ConnectionState()
}

func isRefused(err error) bool { return strings.Contains(err.Error(), "connection refused") }

// The key exchanges: with (EC)DHE, and with the key alone.
var exchanges = map[string][]ossl.Option{"DHE": nil, "without": {ossl.WithInsecurePSKWithoutDHE()}}

func versionFlag(version uint16) string {
	if version == tls.VersionTLS13 {
		return "-tls1_3"
	}
	return "-tls1_2"
}

func forExchanges(t *testing.T, test func(t *testing.T, version uint16, without bool, opts []ossl.Option)) {
	for _, version := range tlstest.Versions {
		for name, opts := range exchanges {
			t.Run(tls.VersionName(version)+"/"+name, func(t *testing.T) { test(t, version, name == "without", opts) })
		}
	}
}

func opensslFlags(version uint16, without bool) []string {
	flags := []string{"-psk", hexKey, "-psk_identity", identity, versionFlag(version)}
	switch {
	case without && version == tls.VersionTLS12:
		flags = append(flags, "-cipher", "PSK-AES128-GCM-SHA256:PSK-AES128-CCM")
	case without: // and no group in common with the other side
		flags = append(flags, "-allow_no_dhe_kex", "-groups", "X448")
	case version == tls.VersionTLS12:
		flags = append(flags, "-cipher", "ECDHE-PSK-CHACHA20-POLY1305:ECDHE-PSK-AES128-CBC-SHA256")
	}
	return flags
}

func TestInteropOpenSSLClient(t *testing.T) {
	path := tlstest.Tool(t, "openssl")
	forExchanges(t, func(t *testing.T, version uint16, without bool, opts []ossl.Option) {
		port, done := serveLine(t, version, opts...)
		args := append([]string{"s_client", "-quiet", "-connect", "127.0.0.1:" + port}, opensslFlags(version, without)...)
		runClient(t, done, tlstest.Child(t, path, args...))
	})
}

func TestInteropOpenSSLServer(t *testing.T) {
	path := tlstest.Tool(t, "openssl")
	forExchanges(t, func(t *testing.T, version uint16, without bool, opts []ossl.Option) {
		args := append([]string{"s_server", "-accept", "127.0.0.1:0", "-nocert", "-rev"}, opensslFlags(version, without)...)
		addr := tlstest.ServeTool(t, tlstest.Child(t, path, args...), "ACCEPT ")
		state := dialLine(t, addr, version, "olleh\n", opts...)
		if (state.CurveID == 0) != without {
			t.Errorf("group %v", state.CurveID)
		}
	})
}

func gnutlsPriority(version uint16, without bool) string {
	priority := "NORMAL:-VERS-ALL:+VERS-TLS1.2:-KX-ALL:+ECDHE-PSK"
	if version == tls.VersionTLS13 {
		priority = "NORMAL:-VERS-ALL:+VERS-TLS1.3:-KX-ALL:+ECDHE-PSK"
	}
	if without {
		priority = strings.Replace(priority, "+ECDHE-PSK", "+PSK", 1)
	}
	return priority
}

func TestInteropGnuTLSClient(t *testing.T) {
	path := tlstest.Tool(t, "gnutls-cli")
	banner, err := tlstest.Child(t, path, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	forExchanges(t, func(t *testing.T, version uint16, without bool, opts []ossl.Option) {
		if version == tls.VersionTLS12 && !without && bytes.HasPrefix(banner, []byte("gnutls-cli 3.7.")) {
			return // it crashes when it has to print such a connection, with other servers too
		}
		port, done := serveLine(t, version, opts...)
		runClient(t, done, tlstest.Child(t, path, "--pskusername", identity, "--pskkey", hexKey,
			"--priority", gnutlsPriority(version, without), "--port", port, "127.0.0.1"))
	})
}

// forMbedTLS is about suites of small devices: TLS 1.2.
func forMbedTLS(t *testing.T, test func(t *testing.T, program, suite string, opts []ossl.Option)) {
	program := compile(t, "mbedtls", "mbedtls/ssl.h", "libmbedtls-dev", "-lmbedtls", "-lmbedcrypto")
	for _, suite := range []string{
		"TLS-ECDHE-PSK-WITH-CHACHA20-POLY1305-SHA256", "TLS-ECDHE-PSK-WITH-AES-128-CBC-SHA256",
		"TLS-ECDHE-PSK-WITH-AES-256-CBC-SHA384", "TLS-PSK-WITH-AES-128-GCM-SHA256", "TLS-PSK-WITH-AES-256-GCM-SHA384",
		"TLS-PSK-WITH-CHACHA20-POLY1305-SHA256", "TLS-PSK-WITH-AES-128-CCM", "TLS-PSK-WITH-AES-128-CCM-8",
		"TLS-PSK-WITH-AES-128-CBC-SHA256",
	} {
		t.Run(suite, func(t *testing.T) {
			var opts []ossl.Option
			if !strings.Contains(suite, "ECDHE") {
				opts = append(opts, ossl.WithInsecurePSKWithoutDHE())
			}
			if strings.HasSuffix(suite, "CCM-8") { // 64 bits, from OpenSSL 3.2 on
				opts = append(opts, ossl.WithSecurityLevel(0), ossl.WithoutHostPolicy())
			}
			test(t, program, suite, opts)
		})
	}
}

func TestInteropMbedTLSClient(t *testing.T) {
	forMbedTLS(t, func(t *testing.T, program, suite string, opts []ossl.Option) {
		port, done := serveLine(t, tls.VersionTLS12, opts...)
		runClient(t, done, tlstest.Child(t, program, "client", port, suite, identity, hexKey))
	})
}

func TestInteropMbedTLSServer(t *testing.T) {
	forMbedTLS(t, func(t *testing.T, program, suite string, opts []ossl.Option) {
		port := tlstest.ServeTool(t, tlstest.Child(t, program, "server", "0", suite, identity, hexKey), "PORT ")
		state := dialLine(t, "127.0.0.1:"+port, tls.VersionTLS12, line, opts...)
		if (state.CurveID != 0) != strings.Contains(suite, "ECDHE") {
			t.Errorf("group %v", state.CurveID)
		}
	})
}

func forWolfSSL(t *testing.T, test func(t *testing.T, program, name string, version uint16)) {
	program := compile(t, "wolfssl", "wolfssl/ssl.h", "libwolfssl-dev", "-lwolfssl")
	for version, name := range map[uint16]string{tls.VersionTLS12: "1.2", tls.VersionTLS13: "1.3"} {
		t.Run(name, func(t *testing.T) { test(t, program, name, version) })
	}
}

func TestInteropWolfSSLClient(t *testing.T) {
	forWolfSSL(t, func(t *testing.T, program, name string, version uint16) {
		config := only(version)
		config.CurvePreferences = []tls.CurveID{tls.CurveP256} // wolfSSL 5.5 offers X25519 and refuses it with ECDHE_PSK
		port, done := serveLineOf(t, config)
		runClient(t, done, tlstest.Child(t, program, "client", port, name, identity, hexKey))
	})
}

func TestInteropWolfSSLServer(t *testing.T) {
	forWolfSSL(t, func(t *testing.T, program, name string, version uint16) {
		port := tlstest.ServeTool(t, tlstest.Child(t, program, "server", "0", name, identity, hexKey), "PORT ")
		if state := dialLine(t, "127.0.0.1:"+port, version, line); state.CurveID == 0 {
			t.Error("no key exchange")
		}
	})
}

// compile makes the program of a file in testdata.
func compile(t *testing.T, name, header, pkg string, libraries ...string) string {
	t.Helper()
	cc := tlstest.Tool(t, "cc")
	if !slices.ContainsFunc([]string{"/usr/include", "/usr/local/include"}, func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, header))
		return err == nil
	}) {
		t.Skipf("%s is not installed", pkg)
	}
	program := filepath.Join(t.TempDir(), name)
	args := append([]string{"-o", program, "testdata/" + name + ".c"}, libraries...)
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// TestInteropMosquitto publishes with our client at a broker of mosquitto, and with mosquitto_pub through our server.
func TestInteropMosquitto(t *testing.T) {
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin")
	broker, publish := tlstest.Tool(t, "mosquitto"), tlstest.Tool(t, "mosquitto_pub")
	dir := t.TempDir()
	addr := freeAddr(t)
	_, port, _ := net.SplitHostPort(addr)
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	keys := write("keys", identity+":"+hexKey+"\n")
	user := os.Getenv("USER")
	if user == "" {
		user = "root"
	}
	conf := write("conf", fmt.Sprintf("listener %s 127.0.0.1\nuser %s\npsk_file %s\npsk_hint ossl\nuse_identity_as_username true\n"+
		"allow_anonymous false\n", port, user, keys))
	cmd := tlstest.Child(t, broker, "-v", "-c", conf)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })

	connect := []byte("\x10\x10\x00\x04MQTT\x04\x02\x00\x3c\x00\x04ossl") // MQTT 3.1.1, section 3.1
	client := ossltest.NewPlainContext(t, &tls.Config{}, offering(key256))
	deadline := time.Now().Add(tlstest.Patience)
	for {
		conn, err := client.Dial("tcp", addr)
		if err == nil {
			defer conn.Close()
			answer := make([]byte, 4)
			conn.SetDeadline(deadline)
			if _, err = conn.Write(connect); err == nil {
				_, err = io.ReadFull(conn, answer)
			}
			if err != nil || !bytes.Equal(answer, []byte{0x20, 2, 0, 0}) {
				t.Errorf("the broker's answer: %x, %v", answer, err)
			}
			break
		}
		if !isRefused(err) || time.Now().After(deadline) {
			t.Fatalf("%v\n%s", err, out.String())
		}
		time.Sleep(20 * time.Millisecond)
	}

	// Through our server, in front of the same broker.
	server := ossltest.NewPlainContext(t, &tls.Config{}, knowing(key256))
	l, err := server.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			got <- err
			return
		}
		defer conn.Close()
		got <- relay(conn.(*ossl.Conn), client, addr)
	}()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	pub := tlstest.Child(t, publish, "-h", "127.0.0.1", "-p", port, "--psk-identity", identity, "--psk", hexKey, "-t", "topic",
		"-m", "hello", "-q", "1", "-d")
	if out, err := pub.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("received PUBACK")) {
		t.Errorf("%v\n%s", err, out)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// relay copies between a client and the broker.
func relay(conn *ossl.Conn, client *ossl.Context, broker string) error {
	conn.SetDeadline(time.Now().Add(tlstest.Patience))
	if err := conn.Handshake(); err != nil {
		return err
	}
	if !bytes.Equal(conn.PSKIdentity(), key256.Identity) {
		return fmt.Errorf("identity %q", conn.PSKIdentity())
	}
	inner, err := client.Dial("tcp", broker)
	if err != nil {
		return err
	}
	defer inner.Close()
	go io.Copy(conn, inner)
	io.Copy(inner, conn)
	return nil
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
