//go:build cgo || ossl_nocgo

package interop

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

func opensslVersionFlag(version uint16) string {
	if version == tls.VersionTLS13 {
		return "-tls1_3"
	}
	return "-tls1_2"
}

func TestInteropOpenSSLClient(t *testing.T) {
	path, f := tlstest.Tool(t, "openssl"), tlstest.WriteFiles(t)
	interopCases(t, func(t *testing.T, version uint16, mutual bool) {
		port, done := echoServer(t, version, mutual)
		args := []string{"s_client", "-quiet", "-connect", "127.0.0.1:" + port, "-servername", tlstest.ServerName, "-CAfile", f.CA,
			"-verify_return_error", "-verify_hostname", tlstest.ServerName, "-alpn", interopALPN, opensslVersionFlag(version)}
		if mutual {
			args = append(args, "-cert", f.ClientCert, "-key", f.ClientKey)
		}
		runClient(t, done, tlstest.Child(t, path, args...), true)
	})
}

func TestInteropOpenSSLServer(t *testing.T) {
	path, f := tlstest.Tool(t, "openssl"), tlstest.WriteFiles(t)
	interopCases(t, func(t *testing.T, version uint16, mutual bool) {
		args := []string{"s_server", "-accept", "127.0.0.1:0", "-cert", f.ServerCert, "-key", f.ServerKey, "-rev",
			"-alpn", interopALPN, opensslVersionFlag(version)}
		if mutual {
			args = append(args, "-Verify", "1", "-verify_return_error", "-CAfile", f.CA)
		}
		dialEcho(t, tlstest.ServeTool(t, tlstest.Child(t, path, args...), "ACCEPT "), version, mutual, reversed)
	})
}

// TestInteropKeyUpdate makes openssl s_client update the keys, with and without a request to update
// ours.
func TestInteropKeyUpdate(t *testing.T) {
	path, f := tlstest.Tool(t, "openssl"), tlstest.WriteFiles(t)
	config := tlstest.ServerConfig(tlstest.Only(tls.VersionTLS13))
	l, err := ossl.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	served := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			conn.SetDeadline(time.Now().Add(tlstest.Patience))
			_, err = io.Copy(conn, conn)
			conn.Close()
		}
		served <- err
	}()
	cmd := tlstest.Child(t, path, "s_client", "-connect", l.Addr().String(), "-servername", tlstest.ServerName, "-CAfile", f.CA,
		"-brief")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	seen := ""
	await := func(what string) {
		t.Helper()
		buf := make([]byte, 4096)
		for !strings.Contains(seen, what) {
			n, err := out.Read(buf)
			seen += string(buf[:n])
			if err != nil {
				t.Fatalf("%q never came: %q, %v", what, seen, err)
			}
		}
	}
	// s_client recognizes a command only at the beginning of a read, so each command waits for the
	// echo of the last.
	io.WriteString(in, "line 0\n")
	await("line 0")
	for i, command := range []string{"K\n", "k\n", "K\n"} {
		io.WriteString(in, command)
		for strings.Count(seen, "KEYUPDATE") <= i {
			seen += " "
			before := strings.Count(seen, "KEYUPDATE")
			buf := make([]byte, 4096)
			n, err := out.Read(buf)
			seen += string(buf[:n])
			if err != nil {
				t.Fatalf("KeyUpdate %d: %q, %v (%d before)", i, seen, err, before)
			}
		}
		line := fmt.Sprintf("line %d", i+1)
		io.WriteString(in, line+"\n")
		await(line)
	}
	io.WriteString(in, "Q\n")
	cmd.Wait()
	if err := <-served; err != nil {
		t.Errorf("our server: %v", err)
	}
}

// curl speaks HTTP, so net/http serves it over our listener.
func TestInteropCurl(t *testing.T) {
	path, f := tlstest.Tool(t, "curl"), tlstest.WriteFiles(t)
	interopCases(t, func(t *testing.T, version uint16, mutual bool) {
		config := tlstest.ServerConfig(tlstest.Only(version), tlstest.Protocols("http/1.1"))
		if mutual {
			tlstest.AskClient(tls.RequireAndVerifyClientCert)(config)
		}
		l, err := ossl.Listen("tcp", "127.0.0.1:0", config)
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body) // all of it before the answer begins: HTTP/1.1 wants that
			w.Write(body)
		})}
		go server.Serve(l)
		defer server.Close()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		number := map[uint16]string{tls.VersionTLS12: "1.2", tls.VersionTLS13: "1.3"}[version]
		args := []string{"-sS", "--noproxy", "*", "--cacert", f.CA, "--resolve", tlstest.ServerName + ":" + port + ":127.0.0.1",
			"--tlsv" + number, "--tls-max", number, "--data-binary", "@" + f.Text, "https://" + tlstest.ServerName + ":" + port + "/"}
		if mutual {
			args = append(args, "--cert", f.ClientCert, "--key", f.ClientKey)
		}
		out, err := tlstest.Child(t, path, args...).CombinedOutput()
		if err != nil || string(out) != tlstest.FileText {
			t.Errorf("%v, %q", err, out)
		}
		// Without the certificate, or the right name, it must not work.
		bad := append([]string{}, args...)
		if mutual {
			bad = bad[:len(bad)-4]
		} else {
			bad[len(bad)-1] = "https://127.0.0.1:" + port + "/"
		}
		if out, err := tlstest.Child(t, path, bad...).CombinedOutput(); err == nil || bytes.Contains(out, []byte("quick brown")) {
			t.Errorf("curl %v: %v, %q", bad, err, out)
		}
	})
}

func gnutlsPriority(version uint16) string {
	if version == tls.VersionTLS13 {
		return "NORMAL:-VERS-ALL:+VERS-TLS1.3"
	}
	return "NORMAL:-VERS-ALL:+VERS-TLS1.2"
}

func TestInteropGnuTLSClient(t *testing.T) {
	path, f := tlstest.Tool(t, "gnutls-cli"), tlstest.WriteFiles(t)
	interopCases(t, func(t *testing.T, version uint16, mutual bool) {
		port, done := echoServer(t, version, mutual)
		args := []string{"--x509cafile", f.CA, "--sni-hostname", tlstest.ServerName, "--verify-hostname", tlstest.ServerName,
			"--alpn", interopALPN, "--priority", gnutlsPriority(version), "--port", port, "127.0.0.1"}
		if mutual {
			args = append([]string{"--x509certfile", f.ClientCert, "--x509keyfile", f.ClientKey}, args...)
		}
		runClient(t, done, tlstest.Child(t, path, args...), true)
	})
}

const pythonPrelude = `
import socket, ssl, sys
role, version, ca, cert, key, arg, size = sys.argv[1:]
ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT if role == "client" else ssl.PROTOCOL_TLS_SERVER)
v = ssl.TLSVersion.TLSv1_3 if version == "TLS1.3" else ssl.TLSVersion.TLSv1_2
ctx.minimum_version = ctx.maximum_version = v
ctx.load_verify_locations(ca)
ctx.set_alpn_protocols(["ossl-interop"])
if cert: ctx.load_cert_chain(cert, key)
`

const pythonClient = pythonPrelude + `
s = ctx.wrap_socket(socket.create_connection(("127.0.0.1", int(arg))), server_hostname="server.test")
assert s.selected_alpn_protocol() == "ossl-interop", s.selected_alpn_protocol()
s.sendall(sys.stdin.buffer.read(int(size)))
got = b""
while True:
    b = s.recv(65536)
    if not b: break
    got += b
sys.stdout.buffer.write(got)
`

const pythonServer = pythonPrelude + `
if arg == "mutual": ctx.verify_mode = ssl.CERT_REQUIRED
l = socket.create_server(("127.0.0.1", 0))
print("PORT %d" % l.getsockname()[1], flush=True)
s = ctx.wrap_socket(l.accept()[0], server_side=True)
assert s.selected_alpn_protocol() == "ossl-interop", s.selected_alpn_protocol()
while True:
    b = s.recv(65536)
    if not b: break
    s.sendall(b)
`

const nodePrelude = `
const tls = require('tls'), fs = require('fs')
const [role, version, ca, cert, key, arg, size] = process.argv.slice(1)
const v = version.replace('TLS', 'TLSv')
const options = {ca: fs.readFileSync(ca), minVersion: v, maxVersion: v, ALPNProtocols: ['ossl-interop']}
if (cert) { options.cert = fs.readFileSync(cert); options.key = fs.readFileSync(key) }
function check(s) { if (s.alpnProtocol !== 'ossl-interop' || s.getProtocol() !== v) {
  console.error(s.alpnProtocol, s.getProtocol()); process.exit(3)
} }
`

const nodeClient = nodePrelude + `
const s = tls.connect({...options, host: '127.0.0.1', port: +arg, servername: 'server.test'}, () => {
  if (!s.authorized) { console.error(s.authorizationError); process.exit(2) }
  check(s)
  let sent = 0
  process.stdin.on('data', d => { s.write(d); sent += d.length; if (sent >= +size) process.stdin.destroy() })
})
s.on('data', d => process.stdout.write(d))
s.on('error', e => { console.error(e); process.exit(4) })
`

const nodeServer = nodePrelude + `
const mutual = arg === 'mutual'
const l = tls.createServer({...options, requestCert: mutual, rejectUnauthorized: mutual}, s => { check(s); s.pipe(s) })
l.on('tlsClientError', e => console.error(e))
l.listen(0, '127.0.0.1', () => console.log('PORT ' + l.address().port))
`

func TestInteropScripts(t *testing.T) {
	t.Parallel() // the programs take a while to start
	f := tlstest.WriteFiles(t)
	for _, lang := range []struct{ name, path, flag, client, server string }{
		{"Python", "python3", "-c", pythonClient, pythonServer},
		{"Node", "node", "-e", nodeClient, nodeServer},
	} {
		t.Run(lang.name, func(t *testing.T) {
			path := tlstest.Tool(t, lang.path)
			run := func(t *testing.T, program string, args ...string) *exec.Cmd {
				return tlstest.Child(t, path, append([]string{lang.flag, program}, args...)...)
			}
			size := fmt.Sprint(len(tlstest.FileText))
			t.Run("client", func(t *testing.T) {
				interopCases(t, func(t *testing.T, version uint16, mutual bool) {
					port, done := echoServer(t, version, mutual)
					cert, key := "", ""
					if mutual {
						cert, key = f.ClientCert, f.ClientKey
					}
					runClient(t, done, run(t, lang.client, "client", tlstest.VersionName(version), f.CA, cert, key, port, size), true)
				})
			})
			t.Run("server", func(t *testing.T) {
				interopCases(t, func(t *testing.T, version uint16, mutual bool) {
					mode := "one-way"
					if mutual {
						mode = "mutual"
					}
					cmd := run(t, lang.server, "server", tlstest.VersionName(version), f.CA, f.ServerCert, f.ServerKey, mode, size)
					port := tlstest.ServeTool(t, cmd, "PORT ")
					dialEcho(t, "127.0.0.1:"+port, version, mutual, unchanged)
				})
			})
		})
	}
}
