//go:build cgo || ossl_nocgo

package interop

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// A capture is a file of packets, as tcpdump(8) writes it: pcap-savefile(5).
type capture struct {
	mu      sync.Mutex
	packets bytes.Buffer
}

// A stream is a TCP connection in a capture.
type stream struct {
	to   *capture
	port uint16    // of the client
	next [2]uint32 // guarded by to.mu; the sequence numbers of client and server
}

// tapped is a connection whose writes are captured.
type tapped struct {
	net.Conn
	*stream
	side int // 0 for the client
}

func (c tapped) Write(b []byte) (int, error) {
	c.add(c.side, b)
	return c.Conn.Write(b)
}

// add captures data that a side sends, in packets of IPv4 without checksums.
func (c *stream) add(side int, data []byte) {
	const maxData, ipHeader, tcpHeader = 1400, 20, 20
	c.to.mu.Lock()
	defer c.to.mu.Unlock()
	for len(data) > 0 {
		part := data[:min(len(data), maxData)]
		data = data[len(part):]
		ports := [2]uint16{c.port, 443}
		ip := []byte{0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1}
		binary.BigEndian.PutUint16(ip[2:], uint16(ipHeader+tcpHeader+len(part)))
		tcp := make([]byte, tcpHeader)
		binary.BigEndian.PutUint16(tcp, ports[side])
		binary.BigEndian.PutUint16(tcp[2:], ports[1-side])
		binary.BigEndian.PutUint32(tcp[4:], c.next[side])
		binary.BigEndian.PutUint32(tcp[8:], c.next[1-side])
		tcp[12], tcp[13] = tcpHeader/4<<4, 0x18 // PSH and ACK
		tcp[14], tcp[15] = 0xff, 0xff
		c.next[side] += uint32(len(part))
		n := uint32(ipHeader + tcpHeader + len(part))
		for _, number := range []uint32{0, 0, n, n} { // the time, the length here and on the wire
			_ = binary.Write(&c.to.packets, binary.LittleEndian, number)
		}
		c.to.packets.Write(ip)
		c.to.packets.Write(tcp)
		c.to.packets.Write(part)
	}
}

// file writes the capture.
func (c *capture) file(t *testing.T) string {
	const magic, version, maxLength, rawIP = 0xa1b2c3d4, 4<<16 | 2, 1 << 16, 101
	var b bytes.Buffer
	for _, number := range []uint32{magic, version, 0, 0, maxLength, rawIP} {
		_ = binary.Write(&b, binary.LittleEndian, number)
	}
	b.Write(c.packets.Bytes())
	name := filepath.Join(t.TempDir(), "capture.pcap")
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestInteropKeyLog decrypts a capture with Wireshark's tshark and the keys that OSSL_KEYLOG asks
// for: both directions of a full connection and of a resumed one.
func TestInteropKeyLog(t *testing.T) {
	tshark := tlstest.Tool(t, "tshark")
	for _, version := range tlstest.Versions {
		t.Run(tlstest.VersionName(version), func(t *testing.T) {
			keys := filepath.Join(t.TempDir(), "keys")
			t.Setenv("OSSL_KEYLOG", keys)
			cc, sc := tlstest.Resuming(version)
			client, server := ossltest.NewPlainContext(t, cc), ossltest.NewPlainContext(t, sc)
			var c capture
			for i, resumed := range []bool{false, true} {
				if got := exchange(t, client, server, &stream{to: &c, port: uint16(40000 + i)}); got != resumed {
					t.Fatalf("resumed: %v", got)
				}
			}
			decrypted := func(options ...string) (connections int) {
				args := append(options, "-r", c.file(t), "-d", "tcp.port==443,tls", "-q", "-z", "follow,tls,ascii,0", "-z",
					"follow,tls,ascii,1")
				out, err := tlstest.Child(t, tshark, args...).Output()
				if err != nil {
					t.Fatalf("tshark: %v\n%s", err, out)
				}
				questions, answers := strings.Count(string(out), question), strings.Count(string(out), answer)
				if questions != answers {
					t.Errorf("tshark sees %d questions and %d answers", questions, answers)
				}
				return questions
			}
			if n := decrypted("-o", "tls.keylog_file:"+keys); n != 2 {
				t.Errorf("tshark decrypts %d of 2 connections", n)
			}
			if n := decrypted(); n != 0 {
				t.Errorf("tshark decrypts %d connections without the keys", n)
			}
		})
	}
}

const question, answer = "who reads this?", "whoever has the keys"

// exchange sends a question and an answer over a connection that is captured, and reports whether
// it has resumed a session.
func exchange(t *testing.T, client, server *ossl.Context, to *stream) (resumed bool) {
	rawClient, rawServer := tlstest.Loopback()
	c, s := client.Client(tapped{rawClient, to, 0}, ""), server.Server(tapped{rawServer, to, 1})
	done := make(chan error, 1)
	go func() {
		defer s.Close()
		_, err := io.ReadFull(s, make([]byte, len(question)))
		if err == nil {
			_, err = io.WriteString(s, answer)
		}
		done <- err
	}()
	defer c.Close()
	if _, err := io.WriteString(c, question); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); err != nil || string(got) != answer {
		t.Fatalf("read %q: %v", got, err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return c.ConnectionState().DidResume
}
