package main

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
)

// TestTraceLateTickets: trace shows tickets that come late, or only with the server's close_notify,
// and doesn't wait for a server that has none.
func TestTraceLateTickets(t *testing.T) {
	made := httptest.NewTLSServer(nil) // for its certificate
	defer made.Close()
	for _, test := range []struct {
		name    string
		without bool // tickets
		serve   func(conn *ossl.Conn)
	}{
		{"late", false, func(conn *ossl.Conn) {
			time.Sleep(ticketTime + 200*time.Millisecond)
			_, _ = conn.Write([]byte("x")) // after the tickets
		}},
		{"silent", false, func(*ossl.Conn) {}},
		{"none", true, func(*ossl.Conn) {}},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := &tls.Config{Certificates: made.TLS.Certificates, SessionTicketsDisabled: test.without}
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			go func() {
				raw, err := listener.Accept()
				if err != nil {
					return
				}
				conn := ossl.Server(raw, config)
				defer conn.Close()
				if conn.Handshake() == nil {
					test.serve(conn)
					_, _ = io.Copy(io.Discard, conn)
				}
			}()
			var out, errs bytes.Buffer
			code := run(t.Context(), []string{"trace", "--insecure", "--timeout", "5m", listener.Addr().String()}, &out, &errs)
			if has := strings.Contains(out.String(), "] <- NewSessionTicket, "); code != 0 || has == test.without {
				t.Errorf("exit status %d, %s\n%s", code, &errs, &out)
			}
		})
	}
}

// TestTraceStartTLS: trace speaks the protocol of a server that begins in plain text.
func TestTraceStartTLS(t *testing.T) {
	made := httptest.NewTLSServer(nil) // for its certificate
	defer made.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		raw, err := listener.Accept()
		if err != nil {
			return
		}
		defer raw.Close()
		_, _ = io.WriteString(raw, "+OK ready\r\n")
		command := make([]byte, len("STLS\r\n"))
		if _, err := io.ReadFull(raw, command); err != nil || string(command) != "STLS\r\n" {
			return
		}
		_, _ = io.WriteString(raw, "+OK begin\r\n")
		conn := ossl.Server(raw, &tls.Config{Certificates: made.TLS.Certificates})
		if conn.Handshake() == nil {
			_, _ = io.Copy(io.Discard, conn)
		}
	}()
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"trace", "--insecure", "pop3://" + listener.Addr().String()}, &out, &errs); code != 0 ||
		!strings.Contains(out.String(), "] done: TLS 1.3") {
		t.Errorf("exit status %d, %s\n%s", code, &errs, &out)
	}
}
