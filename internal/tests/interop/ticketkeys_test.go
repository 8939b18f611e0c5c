//go:build cgo || ossl_nocgo

package interop

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/freeport"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/session"
)

// A keyFormat is the files of ticket keys of another server, and a configuration with them.
type keyFormat struct {
	program string
	size    int
	// write writes random keys, and returns the files' names.
	write func(t *testing.T, dir string, size int) (files []string)
	// config writes a configuration that listens on the port, and returns the program's arguments.
	config func(t *testing.T, port int, files []string) []string
}

func randomKey(t *testing.T, size int) []byte {
	t.Helper()
	b := make([]byte, size)
	rand.Read(b)
	return b
}

func writeFile(t *testing.T, name string, text []byte) string {
	t.Helper()
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func nginxKeys(t *testing.T, dir string, size int) (files []string) {
	for i := range 2 {
		files = append(files, writeFile(t, filepath.Join(dir, fmt.Sprint("key", i)), randomKey(t, size)))
	}
	return files
}

func nginxConfig(t *testing.T, port int, files []string) []string {
	f, dir := tlstest.WriteFiles(t), t.TempDir()
	var b strings.Builder
	fmt.Fprintf(&b, "daemon off;\nmaster_process off;\npid %s/pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n", dir)
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&b, "%s_temp_path %s/%s;\n", kind, dir, kind)
	}
	fmt.Fprintf(&b, "server {\nlisten 127.0.0.1:%d ssl;\nssl_protocols TLSv1.2 TLSv1.3;\n", port)
	fmt.Fprintf(&b, "ssl_certificate %s;\nssl_certificate_key %s;\n", f.ServerCert, f.ServerKey)
	for _, key := range files {
		fmt.Fprintf(&b, "ssl_session_ticket_key %s;\n", key)
	}
	b.WriteString("return 200 ok;\n}\n}\n")
	return []string{"-e", "stderr", "-p", dir, "-c", writeFile(t, filepath.Join(dir, "conf"), []byte(b.String()))}
}

func haproxyKeys(t *testing.T, dir string, size int) (files []string) {
	var b bytes.Buffer
	for range 4 {
		b.WriteString(base64.StdEncoding.EncodeToString(randomKey(t, size)) + "\n")
	}
	return []string{writeFile(t, filepath.Join(dir, "keys"), b.Bytes())}
}

func haproxyConfig(t *testing.T, port int, files []string) []string {
	f, dir := tlstest.WriteFiles(t), t.TempDir()
	var both []byte
	for _, name := range []string{f.ServerCert, f.ServerKey} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		both = append(both, b...)
	}
	config := fmt.Sprintf("defaults\n  mode http\n  timeout client 10s\n  timeout connect 10s\n  timeout server 10s\n"+
		"frontend f\n  bind 127.0.0.1:%d ssl crt %s tls-ticket-keys %s\n  http-request return status 200\n",
		port, writeFile(t, filepath.Join(dir, "pem"), both), files[0])
	return []string{"-db", "-f", writeFile(t, filepath.Join(dir, "conf"), []byte(config))}
}

// serveOther starts another server, and returns its address.
func (k keyFormat) serveOther(t *testing.T, path string, files []string) (addr string) {
	t.Helper()
	port, err := freeport.Take()
	if err != nil {
		t.Fatal(err)
	}
	addr = fmt.Sprintf("127.0.0.1:%d", port)
	cmd := tlstest.Child(t, path, k.config(t, port, files)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-ended
	})
	for {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
			return addr
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("%s: %v\n%s", k.program, err, out.String())
		case <-time.After(10 * time.Millisecond): // it doesn't tell when it listens
		}
	}
}

// serveOurs starts a server of ossl with the same keys, and returns its address.
func serveOurs(t *testing.T, ring *session.Ring) (addr string) {
	t.Helper()
	_, config := tlstest.Resuming(0)
	config.NextProtos = nil
	server := ossltest.Server(t, config, ossl.WithTicketKeys(ring))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s := server(conn)
			if _, err := http.ReadRequest(bufio.NewReader(s)); err == nil {
				io.WriteString(s, "HTTP/1.0 200 OK\r\n\r\nok")
			}
			s.Close()
		}
	}()
	return l.Addr().String()
}

// sealedBy returns the number of the key that has sealed the client's ticket, or -1: RFC 5077, section 4.
func sealedBy(t *testing.T, s *tls.ClientSessionState, keys []session.TicketKey) int {
	t.Helper()
	ticket, _, err := s.ResumptionState()
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range keys {
		if !bytes.HasPrefix(ticket, k.Name[:]) || len(ticket) < 64 {
			continue
		}
		mac := hmac.New(sha256.New, k.MAC)
		mac.Write(ticket[:len(ticket)-32])
		if hmac.Equal(mac.Sum(nil), ticket[len(ticket)-32:]) {
			return i
		}
	}
	return -1
}

// TestInteropTicketKeys gives two servers of nginx or HAProxy and two of ossl the same ticket keys. Their
// tickets are sealed with the same key. A client resumes with the other server of the same program, and
// makes a full handshake with another program's, which can't fail because of the ticket.
func TestInteropTicketKeys(t *testing.T) {
	for _, k := range []keyFormat{
		{"nginx", 48, nginxKeys, nginxConfig}, {"nginx", 80, nginxKeys, nginxConfig},
		{"haproxy", 48, haproxyKeys, haproxyConfig}, {"haproxy", 80, haproxyKeys, haproxyConfig},
	} {
		t.Run(fmt.Sprintf("%s/%d", k.program, k.size), func(t *testing.T) {
			path := tlstest.Tool(t, k.program)
			files := k.write(t, t.TempDir(), k.size)
			keys, err := session.ReadTicketKeyFiles(files...)
			if err != nil {
				t.Fatal(err)
			}
			ring, err := session.NewRing(keys...)
			if err != nil {
				t.Fatal(err)
			}
			others := []string{k.serveOther(t, path, files), k.serveOther(t, path, files)}
			ours := []string{serveOurs(t, ring), serveOurs(t, ring)}
			for _, version := range tlstest.Versions {
				for _, test := range []struct {
					name          string
					first, second string
					resumed       bool
				}{
					{"among others", others[0], others[1], true},
					{"among ours", ours[0], ours[1], true},
					{"from theirs to ours", others[0], ours[0], false},
					{"from ours to theirs", ours[0], others[0], false},
				} {
					t.Run(test.name+"/"+tlstest.VersionName(version), func(t *testing.T) {
						slot := new(tlstest.OneSlot)
						config := tlstest.ClientConfig(tlstest.Only(version))
						config.NextProtos, config.ClientSessionCache = nil, slot
						visit := func(addr string, resumed bool) {
							t.Helper()
							conn, err := tls.Dial("tcp", addr, config)
							if err != nil {
								t.Fatal(err)
							}
							defer conn.Close()
							conn.SetDeadline(time.Now().Add(tlstest.Patience))
							io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n")
							if b, err := io.ReadAll(conn); !bytes.Contains(b, []byte(" 200 ")) {
								t.Fatalf("%q, %v", b, err)
							}
							if got := conn.ConnectionState().DidResume; got != resumed {
								t.Errorf("resumed: %t", got)
							}
						}
						visit(test.first, false)
						if slot.State == nil {
							t.Fatal("no ticket")
						}
						if n := sealedBy(t, slot.State, keys); n != 0 {
							t.Errorf("the ticket is of key %d", n)
						}
						visit(test.second, test.resumed)
					})
				}
			}
		})
	}
}
