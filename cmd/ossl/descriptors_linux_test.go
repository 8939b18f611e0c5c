package main

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ossl-go/ossl/cmd/ossl/internal/localca"
)

// TestDescriptorsRunOut: a server that has no descriptor left for a while keeps its certificate,
// denies no file that is there, and lets clients wait. When it has descriptors again, it serves
// those clients, and takes the certificate that was renewed in that time.
func TestDescriptorsRunOut(t *testing.T) {
	s := newService(t)
	s.start("serve", "--cert", "localhost.pem", "--key", "localhost-key.pem", "--listen", "127.0.0.1:0", "public")
	first := s.visitor()
	before, err := first.serial()
	if err != nil {
		t.Fatal(err)
	}
	descriptors := func() int {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.pid))
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	had := descriptors()
	for range 20 { // without those that are open for a moment, such as the files that it looks at
		time.Sleep(10 * time.Millisecond)
		had = min(had, descriptors())
	}
	accepted := s.visitor()
	for late := time.Now().Add(serverPatience); descriptors() <= had && time.Now().Before(late); {
		time.Sleep(time.Millisecond)
	}
	var limit unix.Rlimit
	none := func() { // those that are open stay
		t.Helper()
		if err := unix.Prlimit(s.pid, unix.RLIMIT_NOFILE, nil, &limit); err != nil {
			t.Fatal(err)
		}
		lowered := unix.Rlimit{Cur: 0, Max: limit.Max}
		if err := unix.Prlimit(s.pid, unix.RLIMIT_NOFILE, &lowered, nil); err != nil {
			t.Fatal(err)
		}
	}
	s.renew()
	none()
	waiting := s.visitor()
	time.Sleep(time.Second) // the files are looked at once in this time
	if serial, err := accepted.serial(); err != nil || serial != before {
		t.Errorf("without descriptors: certificate %s, not %s: %v", serial, before, err)
	}
	s.await("certificate not replaced")
	if status, err := accepted.get("/"); err != nil || status == http.StatusNotFound {
		t.Errorf("without descriptors: %d, %v", status, err)
	}
	if err := unix.Prlimit(s.pid, unix.RLIMIT_NOFILE, &limit, nil); err != nil {
		t.Fatal(err)
	}
	if status, err := waiting.get("/"); err != nil || status != http.StatusOK {
		t.Errorf("the client that waited: %d, %v", status, err)
	}
	var serial string
	for late := time.Now().Add(serverPatience); (serial == "" || serial == before) && time.Now().Before(late); {
		time.Sleep(100 * time.Millisecond) // the rate of an address is limited
		v := s.visitor()
		if serial, err = v.serial(); err != nil {
			t.Fatal(err)
		}
		_ = v.conn.Close()
	}
	if serial == before {
		t.Error("the renewed certificate is never used")
	}
	for _, v := range []visitor{first, accepted, waiting} { // the end waits for connections without a request
		_ = v.conn.Close()
	}
	s.stop("too many open files")
}

// renew replaces the certificate and its key.
func (s *service) renew() {
	s.t.Helper()
	authority, err := localca.Open(s.path("ca"), "")
	if err != nil {
		s.t.Fatal(err)
	}
	s.write("renewed/keep", "")
	if _, err := authority.Issue(localca.Request{Names: []string{"localhost"}, Lifetime: time.Hour}, s.path("renewed")); err != nil {
		s.t.Fatal(err)
	}
	old := time.Now().Add(-time.Minute) // files that were written just now are read again in any case
	for _, name := range []string{"localhost-key.pem", "localhost.pem"} {
		if err := os.Chtimes(filepath.Join(s.path("renewed"), name), old, old); err != nil {
			s.t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(s.path("renewed"), name), s.path(name)); err != nil {
			s.t.Fatal(err)
		}
	}
}

// A visitor is a client with one connection, whose handshake its first call runs.
type visitor struct{ conn *tls.Conn }

func (s *service) visitor() visitor {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(serverPatience))
	s.t.Cleanup(func() { _ = conn.Close() })
	return visitor{tls.Client(conn, &tls.Config{RootCAs: s.roots, ServerName: "localhost"})}
}

// serial returns the serial number of the server's certificate.
func (v visitor) serial() (string, error) {
	if err := v.conn.Handshake(); err != nil {
		return "", err
	}
	return v.conn.ConnectionState().PeerCertificates[0].SerialNumber.String(), nil
}

// get makes a request, and returns its status.
func (v visitor) get(path string) (int, error) {
	if _, err := fmt.Fprintf(v.conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path); err != nil {
		return 0, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(v.conn), nil)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}
