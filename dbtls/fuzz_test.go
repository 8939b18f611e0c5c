package dbtls_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/dbtls"
)

// A tape is a connection with all that the server sends.
type tape struct {
	left []byte
	net.Conn
}

func (t *tape) Read(b []byte) (int, error) {
	if len(t.left) == 0 {
		return 0, io.EOF
	}
	n := copy(b, t.left)
	t.left = t.left[n:]
	return n, nil
}

func (*tape) Write(b []byte) (int, error) { return len(b), nil }
func (*tape) LocalAddr() net.Addr         { return &net.TCPAddr{IP: net.IPv6loopback} }
func (*tape) SetDeadline(time.Time) error { return nil }

// fuzzUpgrade feeds a dialogue with a server's bytes. It must consume all that was read, read a
// bounded number, and fail with a short message.
func fuzzUpgrade(f *testing.F, protocol string, seeds ...string) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
		f.Add([]byte(seed + "more"))
		f.Add([]byte(seed[:len(seed)/2]))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		conn := &tape{left: bytes.Clone(data)}
		err := dbtls.RunUpgrade(protocol, conn)
		if read := len(data) - len(conn.left); read > dbtls.MaxPrelude {
			t.Errorf("read %d bytes", read)
		}
		switch {
		case err != nil && len(err.Error()) > 800:
			t.Errorf("an error of %d bytes", len(err.Error()))
		case err != nil && strings.ContainsAny(err.Error(), "\r\n\x1b") && !errors.Is(err, io.EOF):
			t.Errorf("control characters in an error: %q", err)
		}
	})
}

func FuzzPostgres(f *testing.F) { fuzzUpgrade(f, "PostgreSQL", "S", "N", "E\x00\x00\x00\x05x") }

func FuzzSMTP(f *testing.F) { fuzzUpgrade(f, "SMTP", smtpGreeting+smtpOffer+smtpGo, "421 busy\r\n") }

func FuzzLDAP(f *testing.F) {
	fuzzUpgrade(f, "LDAP", ldapResponse(1, 0, ""), ldapResponse(1, 2, "no"),
		"\x30\x84\x00\x00\x00\x0c\x02\x01\x01\x78\x07\x0a\x01\x00\x04\x00\x04\x00")
}

func FuzzLDAPMessage(f *testing.F) {
	f.Add([]byte(ldapResponse(1, 0, "")[2:]))
	f.Fuzz(func(t *testing.T, message []byte) {
		// A message that grants TLS has the number 1 and the code 0.
		if err := dbtls.ParseStartTLS(message); err == nil && !bytes.HasPrefix(message, []byte("\x02\x01\x01\x78")) &&
			!bytes.HasPrefix(message, []byte("\x02\x81\x01\x01\x78")) && message[1] < 0x80 {
			t.Errorf("%x grants TLS", message)
		}
	})
}

func FuzzMySQL(f *testing.F) {
	fuzzUpgrade(f, "MySQL", mysqlGreeting(0xffff), mysqlGreeting(0xf7ff), mysqlBlocked)
}

func FuzzMySQLGreeting(f *testing.F) {
	f.Add([]byte(mysqlGreeting(0xffff)[4:]))
	f.Fuzz(func(t *testing.T, greeting []byte) {
		if len(greeting) == 0 {
			return // no packet is empty
		}
		changed := bytes.Clone(greeting)
		if err := dbtls.HideTLS(changed); err != nil {
			return
		}
		// The offer is hidden, which is one bit, and a client that is told so finds none.
		different := 0
		for i := range changed {
			if changed[i] != greeting[i] {
				different++
			}
		}
		if err := dbtls.HideTLS(changed); different != 1 || !errors.Is(err, dbtls.ErrNoTLS) {
			t.Errorf("%d bytes changed, then %v", different, err)
		}
	})
}

// FuzzMySQLPackets: the parts in which packets arrive make no difference.
func FuzzMySQLPackets(f *testing.F) {
	f.Add([]byte("\x02\x00\x00\x03\x01\x04\x01\x00\x00\x05\x00\x00\x00\x00\x07"), 3, 5)
	f.Fuzz(func(t *testing.T, stream []byte, i, j int) {
		if i < 0 || j < i || j > len(stream) {
			return
		}
		whole, parts := bytes.Clone(stream), bytes.Clone(stream)
		one, three := dbtls.Renumber(whole), dbtls.Renumber(parts[:i], parts[i:j], parts[j:])
		if one != three || !bytes.Equal(whole, parts) {
			t.Errorf("%x became %x (%d) and %x (%d)", stream, whole, one, parts, three)
		}
	})
}

func FuzzNATS(f *testing.F) {
	fuzzUpgrade(f, "NATS", natsInfo, "-ERR 'no'\r\n", "INFO {}\r\n")
}

func FuzzNATSInfo(f *testing.F) {
	f.Add([]byte(strings.TrimSpace(natsInfo)))
	f.Fuzz(func(t *testing.T, line []byte) {
		info, err := dbtls.ParseInfo(line)
		if err != nil {
			return
		}
		// A client reads one line, and finds no other servers in it.
		var servers struct {
			URLs    []string `json:"connect_urls"`
			WebURLs []string `json:"ws_connect_urls"`
		}
		if err := json.Unmarshal(info[len("INFO "):], &servers); err != nil || servers.URLs != nil || servers.WebURLs != nil ||
			bytes.IndexByte(info, '\n') != len(info)-1 {
			t.Errorf("%q became %q: %v", line, info, err)
		}
		if _, err := dbtls.ParseInfo(info[:len(info)-2]); err != nil {
			t.Errorf("%q became %q: %v", line, info, err)
		}
	})
}
