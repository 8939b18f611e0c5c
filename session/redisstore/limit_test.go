package redisstore

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
)

// replyStreams are replies, and whether they are accepted.
var replyStreams = []struct {
	name, stream string
	ok           bool
}{
	{"status", "+OK\r\n", true},
	{"a line with a header's bytes in it", "-ERR *99999999999\r\n+OK\r\n", true},
	{"numbers", ":1\r\n,1.5\r\n(3492890328409238509324850943850943825024385\r\n#t\r\n_\r\n", true},
	{"string", "$5\r\nhello\r\n", true},
	{"a string with a header in it", "$21\r\n\r\n$99999999999999\r\nab\r\n+OK\r\n", true},
	{"no string", "$-1\r\n*-1\r\n", true},
	{"empty", "$0\r\n\r\n*0\r\n%0\r\n", true},
	{"the longest string", "$1048576\r\n" + strings.Repeat("x", 1<<20) + "\r\n+OK\r\n", true},
	{"list", "*3\r\n$1\r\na\r\n:1\r\n*2\r\n+a\r\n+b\r\n", true},
	{"map and push", "%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n:2\r\n>2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n", true},
	{"attributes", "|1\r\n+ttl\r\n:3600\r\n+OK\r\n", true},
	{"8 deep, and again", strings.Repeat(strings.Repeat("*1\r\n", 8)+"+x\r\n", 3), true},
	{"a string too long", "$1048577\r\n", false},
	{"a terabyte", "$1099511627776\r\n", false},
	{"beyond all numbers", "$99999999999999999999999999\r\n", false},
	{"beyond int64", "*9223372036854775808\r\n", false},
	{"too many elements", "*65537\r\n", false},
	{"too many pairs", "%65537\r\n", false},
	{"9 deep", strings.Repeat("*1\r\n", 9), false},
	{"deep attributes", strings.Repeat("|1\r\n", 9), false},
	{"deep in a second element", "*2\r\n+x\r\n" + strings.Repeat("*1\r\n", 8), false},
	{"a line without an end", "+" + strings.Repeat("x", 1<<16+1), false},
	{"a header without an end", "$" + strings.Repeat("0", 100), false},
	{"negative", "*-2\r\n", false},
	{"no number", "$x\r\n", false},
	{"no carriage return", "$3\nabc\r\n", false},
	{"another protocol", "HTTP/1.1 200 OK\r\n", false},
	{"streamed", "$?\r\n;4\r\nHell\r\n", false},
	{"nothing in a line", "\r\n", false},
}

func TestLimitReplies(t *testing.T) {
	for _, test := range replyStreams {
		t.Run(test.name, func(t *testing.T) {
			var whole, single replies
			if err := whole.follow([]byte(test.stream)); (err == nil) != test.ok {
				t.Errorf("at once: %v", err)
			}
			var err error
			for i := 0; i < len(test.stream) && err == nil; i++ {
				err = single.follow([]byte{test.stream[i]})
			}
			if (err == nil) != test.ok {
				t.Errorf("byte by byte: %v", err)
			}
		})
	}
}

// TestLimitRepliesConn: the connection's reader never gets the line that was rejected, and the
// rejection lasts.
func TestLimitRepliesConn(t *testing.T) {
	server, client := net.Pipe()
	defer server.Close()
	conn, err := LimitReplies(func(context.Context, string, string) (net.Conn, error) { return client, nil })(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go io.WriteString(server, "+OK\r\n$1099")
	buf := make([]byte, 100)
	n, err := io.ReadAtLeast(conn, buf, 10)
	if err != nil || string(buf[:n]) != "+OK\r\n$1099" {
		t.Fatalf("%q, %v", buf[:n], err)
	}
	go io.WriteString(server, "511627776\r\n")
	for range 2 {
		if n, err := conn.Read(buf); n != 0 || !errors.Is(err, ErrReply) {
			t.Fatalf("%q, %v", buf[:n], err)
		}
	}
	failed := errors.New("no network")
	dial := LimitReplies(func(context.Context, string, string) (net.Conn, error) { return nil, failed })
	if conn, err := dial(t.Context(), "", ""); conn != nil || !errors.Is(err, failed) {
		t.Fatal(conn, err)
	}
}

// FuzzReplies: the way a stream is split makes no difference, and no accepted header exceeds the
// limits.
func FuzzReplies(f *testing.F) {
	for _, test := range replyStreams {
		if len(test.stream) < 1000 {
			f.Add([]byte(test.stream), uint8(3))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, cut uint8) {
		var whole, parts replies
		want := whole.follow(b)
		var got error
		for rest := b; len(rest) > 0 && got == nil; {
			n := min(int(cut)%16+1, len(rest))
			got = parts.follow(rest[:n])
			rest = rest[n:]
		}
		if want != got {
			t.Fatalf("%q: %v at once, %v in parts of %d", b, want, got, cut%16+1)
		}
		if len(whole.open) > maxDepth || whole.skip > maxString+2 || len(whole.line) > 32 {
			t.Fatalf("%q: %+v", b, whole)
		}
	})
}
