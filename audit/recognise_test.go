package audit

import "testing"

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
