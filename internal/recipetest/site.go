package recipetest

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/ossl-go/ossl/internal/freeport"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// A Site is the place of a server: a loopback address, and a certificate for it.
type Site struct {
	Addr     string       // the address that the client connects to
	Listener net.Listener // of Addr, without TLS
	Config   *tls.Config  // for a server in Go
	Files    Files        // for a program

	tap *tap
}

// Files are paths of certificates and keys in PEM.
type Files struct{ Dir, CA, Cert, Key string }

func newSite(t *testing.T) *Site {
	t.Helper()
	s := &Site{tap: &tap{}}
	s.Listener = &tappedListener{Listener: Listen(t), tap: s.tap}
	s.Addr = s.Listener.Addr().String()
	cert := newCertificate("127.0.0.1", "localhost")
	s.Config = &tls.Config{
		Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: tlstest.CA().Pool(),
	}
	s.Files = writeFiles(t, cert)
	return s
}

// ClientConfig returns a configuration that the server accepts, for clients besides the recipe's.
func (s *Site) ClientConfig() *tls.Config {
	config := clientConfig(tls.VersionTLS13)
	config.Certificates = []tls.Certificate{newCertificate("client")}
	return config
}

// Another returns a listener whose connections count like the connections to the Site's own
// listener.
func (s *Site) Another(t *testing.T) net.Listener {
	t.Helper()
	return &tappedListener{Listener: Listen(t), tap: s.tap}
}

// Forward passes the connections of l on to the address of a program, until the test has finished.
func Forward(t *testing.T, l net.Listener, addr string) {
	t.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	hold := func(c net.Conn) {
		mu.Lock()
		defer mu.Unlock()
		open[c] = true
	}
	all.Go(func() {
		for {
			front, err := l.Accept()
			if err != nil {
				return
			}
			back, err := net.Dial("tcp", addr)
			if err != nil {
				front.Close()
				continue
			}
			hold(front)
			hold(back)
			all.Go(func() { pass(back, front) })
			all.Go(func() { pass(front, back) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for c := range open {
			c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
}

func pass(to, from net.Conn) {
	io.Copy(to, from)
	to.(interface{ CloseWrite() error }).CloseWrite()
}

// Listen listens on a free port of the loopback interface, until the test has finished.
func Listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// FreePort returns a port of the loopback interface for a program that can't choose its own.
func FreePort(t *testing.T) string {
	t.Helper()
	port, err := freeport.Take()
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(port)
}

func newCertificate(names ...string) tls.Certificate {
	return tlstest.New(tlstest.Options{Names: names})
}

func clientConfig(version uint16) *tls.Config {
	return &tls.Config{RootCAs: tlstest.CA().Pool(), MinVersion: version, MaxVersion: version}
}

// writeFiles writes to a folder that servers may read under another user.
func writeFiles(t *testing.T, cert tls.Certificate) Files {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return Files{
		Dir:  dir,
		CA:   write("ca.pem", "CERTIFICATE", tlstest.CA().Cert.Raw),
		Cert: write("cert.pem", "CERTIFICATE", cert.Certificate[0]),
		Key:  write("key.pem", "PRIVATE KEY", key),
	}
}

// NoLog is for servers that would log the connections that they refuse.
var NoLog = log.New(io.Discard, "", 0)
