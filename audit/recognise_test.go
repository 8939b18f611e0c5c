package audit

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
)

func TestGreeter(t *testing.T) {
	for greeting, want := range map[string]string{
		"220 mail.example ESMTP Postfix\r\n": "smtp",
		"220-mail.example waits\r\n":         "smtp",
		"220 ProFTPD Server\r\n":             "tls",
		"* OK [CAPABILITY IMAP4rev1]\r\n":    "imap",
		"+OK POP3 ready\r\n":                 "pop3",
		"\x4a\x00\x00\x00\x0a8.0.36\x00":     "mysql",
		"SSH-2.0-OpenSSH_9.2\r\n":            "tls",
		"":                                   "tls",
	} {
		if got := greeter([]byte(greeting)); got != want {
			t.Errorf("%q: got %s, want %s", greeting, got, want)
		}
	}
	for answer, want := range map[string]bool{
		"HTTP/1.1 400 Bad Request\r\n": true, "<!DOCTYPE HTML>\n<html>": true, "<stream:stream": false, "220 hi": false,
	} {
		if plainHTTP([]byte(answer)) != want {
			t.Errorf("%q is not %t", answer, want)
		}
	}
}

// TestRecogniseFar: a connection that was made ahead for TLS isn't used for the protocol that the
// server's greeting shows.
func TestRecogniseFar(t *testing.T) {
	var early atomic.Int32
	r := testRun(serve(t, func(conn net.Conn, _ int) {
		io.WriteString(conn, "220 mail.example ESMTP\r\n")
		first := make([]byte, 4)
		if _, err := io.ReadFull(conn, first); err == nil && string(first) != "EHLO" {
			early.Add(1)
		}
	}))
	r.options.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if err := sleep(ctx, farTrip); err != nil {
			return nil, err
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	_ = probeProtocols(t.Context(), r) // TLS never begins
	r.dropSpare()
	if r.target.Protocol != "smtp" || early.Load() != 1 {
		t.Errorf("%s; %d hellos before EHLO", r.target.Protocol, early.Load())
	}
}
