//go:build cgo || ossl_nocgo

package interop

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

const javaUpload = `
import java.io.*;
import java.nio.file.*;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import javax.net.ssl.*;

public class Upload {
	public static void main(String[] args) throws Exception {
		KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
		store.load(null, null);
		try (InputStream in = new FileInputStream(args[1])) {
			store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(in));
		}
		TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
		trust.init(store);
		SSLContext context = SSLContext.getInstance("TLS");
		context.init(null, trust.getTrustManagers(), null);
		for (int i = 2; i < args.length; i++) {
			try (SSLSocket s = (SSLSocket) context.getSocketFactory().createSocket("127.0.0.1", Integer.parseInt(args[0]))) {
				s.setEnabledProtocols(new String[] {"TLSv1.3"});
				s.getOutputStream().write(Files.readAllBytes(Path.of(args[i])));
			}
		}
	}
}
`

// Python's close sends no close_notify, and reads nothing.
const pythonUpload = `
import socket, ssl, sys
ctx = ssl.create_default_context(cafile=sys.argv[2])
for name in sys.argv[3:]:
    s = ctx.wrap_socket(socket.create_connection(("127.0.0.1", int(sys.argv[1]))), server_hostname="server.test")
    assert s.version() == "TLSv1.3"
    s.sendall(open(name, "rb").read())
    s.close()
`

// An uploader is a program that sends files to a server, and closes its connections.
type uploader struct {
	tool  string
	args  func(port string, files []string) (args []string, stdin string)
	files [][]string // of each run
	read  func(s net.Conn) ([]byte, error)
}

// uploaders returns the programs with the files to send.
func uploaders(t *testing.T, f tlstest.Files) []uploader {
	java := filepath.Join(t.TempDir(), "Upload.java")
	if err := os.WriteFile(java, []byte(javaUpload), 0o600); err != nil {
		t.Fatal(err)
	}
	files := uploads(t)
	each := [][]string{files[:1], files[1:2], files[2:]}
	all := func(s net.Conn) ([]byte, error) { return io.ReadAll(s) }
	return []uploader{
		{"openssl", func(port string, files []string) ([]string, string) {
			return []string{"s_client", "-quiet", "-no_ign_eof", "-connect", "127.0.0.1:" + port, "-servername", tlstest.ServerName,
				"-CAfile", f.CA, "-verify_return_error", "-tls1_3"}, files[0]
		}, each, all},
		{"curl", func(port string, files []string) ([]string, string) {
			return []string{"-sS", "--noproxy", "*", "--cacert", f.CA, "--resolve", tlstest.ServerName + ":" + port + ":127.0.0.1",
				"--tlsv1.3", "-H", "Expect:", "-T", files[0], "https://" + tlstest.ServerName + ":" + port + "/"}, ""
		}, each, readPut},
		{"java", func(port string, files []string) ([]string, string) {
			return append([]string{java, port, f.CA}, files...), ""
		}, [][]string{files}, all},
		{"python3", func(port string, files []string) ([]string, string) {
			return append([]string{"-c", pythonUpload, port, f.CA}, files...), ""
		}, [][]string{files}, func(s net.Conn) ([]byte, error) {
			got, err := io.ReadAll(s)
			if err == io.ErrUnexpectedEOF {
				err = nil
			}
			return got, err
		}},
	}
}

// uploads makes files of several sizes. They contain no letters, which are commands to s_client.
func uploads(t *testing.T) (files []string) {
	sizes := []int{1, 100_000, 1_000_000}
	digits := bytes.Repeat([]byte("0123456789"), sizes[len(sizes)-1]/10)
	for _, size := range sizes {
		file := filepath.Join(t.TempDir(), fmt.Sprint(size))
		if err := os.WriteFile(file, digits[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// readPut reads the body of an HTTP request, and answers it.
func readPut(s net.Conn) ([]byte, error) {
	r, err := http.ReadRequest(bufio.NewReader(s))
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		_, err = io.WriteString(s, "HTTP/1.1 204 No Content\r\n\r\n")
	}
	return body, err
}

// TestInteropUploads runs programs that write and close, and a server that reads when they have
// exited, or after a while, since some programs don't exit before the server reads.
func TestInteropUploads(t *testing.T) {
	t.Parallel() // the programs take a while to start
	for _, client := range uploaders(t, tlstest.WriteFiles(t)) {
		t.Run(client.tool, func(t *testing.T) {
			path := tlstest.Tool(t, client.tool)
			for _, mutual := range []bool{false, true} { // a client that is asked for a certificate gets its tickets later
				t.Run(fmt.Sprintf("asked=%v", mutual), func(t *testing.T) {
					config := tlstest.ServerConfig(tlstest.Only(tls.VersionTLS13), func(c *tls.Config) { c.SessionTicketsDisabled = false })
					if mutual {
						tlstest.AskClient(tls.VerifyClientCertIfGiven)(config)
					}
					l, err := ossl.Listen("tcp", "127.0.0.1:0", config)
					if err != nil {
						t.Fatal(err)
					}
					defer l.Close()
					for _, files := range client.files {
						client.upload(t, path, l, files)
					}
				})
			}
		})
	}
}

// upload runs the program at path, which sends files to l.
func (u *uploader) upload(t *testing.T, path string, l net.Listener, files []string) {
	_, port, _ := net.SplitHostPort(l.Addr().String())
	args, stdin := u.args(port, files)
	cmd := tlstest.Child(t, path, args...)
	if stdin != "" {
		in, err := os.Open(stdin)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		cmd.Stdin = in
	}
	ended, got := make(chan struct{}), make(chan error, 1)
	go func() {
		for _, file := range files {
			want, err := os.ReadFile(file)
			if err == nil {
				err = receiveUpload(l, ended, u.read, want)
			}
			if err != nil {
				l.Close() // no further upload is accepted
				got <- err
				return
			}
		}
		got <- nil
	}()
	out, err := cmd.CombinedOutput()
	close(ended)
	if err != nil {
		l.Close()
		t.Errorf("%s: %v\n%s", cmd, err, out)
	}
	if err := <-got; err != nil {
		t.Errorf("our server: %v\n%s", err, out)
	}
}

// receiveUpload accepts a connection and reads the upload, after the client has exited or a delay
// has passed.
func receiveUpload(l net.Listener, ended <-chan struct{}, read func(net.Conn) ([]byte, error), want []byte) error {
	conn, err := l.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(tlstest.Patience))
	if err := conn.(*ossl.Conn).Handshake(); err != nil {
		return err
	}
	select {
	case <-ended:
	case <-time.After(100 * time.Millisecond):
	}
	got, err := read(conn)
	if err == nil && !bytes.Equal(got, want) {
		err = fmt.Errorf("other data came")
	}
	if err != nil {
		return fmt.Errorf("after %d of %d bytes: %w", len(got), len(want), err)
	}
	return nil
}
