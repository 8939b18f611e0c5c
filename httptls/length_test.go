package httptls_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/httptls"
)

// TestCopyBeyondLength copies more than the Content-Length to a response. The client would take the
// rest for the next response. As over crypto/tls, net/http refuses the copy: it wouldn't if it used
// the connection's ReadFrom.
func TestCopyBeyondLength(t *testing.T) {
	const declared, given = 600, 5000
	s := httptls.NewTestServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "600")
		source := struct{ io.Reader }{strings.NewReader(strings.Repeat("x", given))} // without WriteTo
		if _, err := io.Copy(w, source); !errors.Is(err, http.ErrContentLength) {
			t.Errorf("the copy: %v", err)
		}
	}))
	s.StartTLS()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	conn, err := tls.Dial("tcp", s.Listener.Addr().String(), &tls.Config{RootCAs: roots, ServerName: "example.com"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	if _, body, _ := bytes.Cut(answer, []byte("\r\n\r\n")); len(body) > declared {
		t.Errorf("%d bytes after the header, %d declared", len(body), declared)
	}
}
