//go:build cgo || ossl_nocgo

package observe

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// A tracer keeps the texts that are written to it.
type tracer struct {
	mu    sync.Mutex
	texts []string
}

func (w *tracer) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, string(b))
	return len(b), nil
}

// messages returns the arrow and the name of each message, and the result.
func (w *tracer) messages() (list []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	head := regexp.MustCompile(`^\[\d+ (?:client|server) [^ ]+ [^ ]+\] ((?:-> |<- )?[A-Za-z]+)`)
	for _, text := range w.texts {
		if m := head.FindStringSubmatch(text); m != nil {
			list = append(list, m[1])
		} else {
			list = append(list, text)
		}
	}
	return list
}

// comparable returns the messages, sorted, as the client sees them, without those that libssl
// reports on only one side: a ChangeCipherSpec that is received, and tickets after the handshake.
func comparable(list []string, server bool) (seen []string) {
	arrows := strings.NewReplacer("-> ", "<- ", "<- ", "-> ")
	for _, m := range list {
		if server {
			m = arrows.Replace(m)
		}
		if !strings.HasSuffix(m, "ChangeCipherSpec") && !strings.HasSuffix(m, "NewSessionTicket") {
			seen = append(seen, m)
		}
	}
	slices.Sort(seen)
	return seen
}

// TestTrace checks that client and server print the same messages, in full handshakes and resumed
// ones, and no keys.
func TestTrace(t *testing.T) {
	for _, version := range tlstest.Versions {
		t.Run(tlstest.VersionName(version), func(t *testing.T) {
			cc, sc := tlstest.Resuming(version)
			cc.Certificates = []tls.Certificate{tlstest.ClientCert(tlstest.P256)}
			sc.ClientAuth, sc.ClientCAs = tls.RequireAndVerifyClientCert, tlstest.CA().Pool()
			var keys bytes.Buffer
			var keysMu sync.Mutex
			cc.KeyLogWriter = lockedWriter{&keysMu, &keys}
			var clientTrace, serverTrace tracer
			client := ossltest.NewPlainContext(t, cc, ossl.WithTrace(&clientTrace))
			server := ossltest.NewPlainContext(t, sc, ossl.WithTrace(&serverTrace))
			for round := range 2 {
				clientTrace.texts, serverTrace.texts = nil, nil
				tlstest.Visit(t, ossltest.ClientOf(client), ossltest.ServerOf(server))
				c, s := clientTrace.messages(), serverTrace.messages()
				if !slices.Equal(comparable(c, false), comparable(s, true)) {
					t.Errorf("the client prints %q, and the server %q", c, s)
				}
				if c[0] != "-> ClientHello" || !slices.Contains(c, "<- ServerHello") || !slices.Contains(s, "done") ||
					slices.Contains(c, "<- Certificate") != (round == 0) ||
					slices.Contains(c, "<- NewSessionTicket") != (round == 0 || version == tls.VersionTLS13) {
					t.Errorf("round %d: %q", round, c)
				}
				all := strings.Join(clientTrace.texts, "") + strings.Join(serverTrace.texts, "")
				last := [...]string{`"client.test"`, "resumed by ticket"}[round]
				for _, want := range []string{`"server.test"`, "ECDSA", last} {
					if !strings.Contains(all, want) {
						t.Errorf("round %d: %q is missing in\n%s", round, want, all)
					}
				}
				for line := range strings.Lines(all) {
					if len(line) > 101 && !strings.HasPrefix(line, "[") {
						t.Errorf("a line of %d bytes: %q", len(line), line)
					}
				}
				if keys.Len() == 0 {
					t.Error("no keys were logged")
				}
				for _, word := range strings.Fields(keys.String()) {
					if len(word) >= 32 && strings.Contains(strings.ToLower(all), word) { // secrets and randoms; labels have other letters
						t.Errorf("the trace has %q", word)
					}
				}
			}
		})
	}
}

type lockedWriter struct {
	mu *sync.Mutex
	to *bytes.Buffer
}

func (w lockedWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(b)
}

// TestTraceFailure checks that a handshake that fails prints the alert that was sent, and not the
// flight that wasn't.
func TestTraceFailure(t *testing.T) {
	for _, version := range tlstest.Versions {
		t.Run(tlstest.VersionName(version), func(t *testing.T) {
			var clientTrace, serverTrace tracer
			client := ossltest.NewContext(t, tlstest.ClientConfig(tlstest.Only(version), untrusting), ossl.WithTrace(&clientTrace))
			server := ossltest.NewContext(t, tlstest.ServerConfig(), ossl.WithTrace(&serverTrace))
			f := failure{}
			f.run(t, ossltest.ClientOf(client), ossltest.ServerOf(server))
			c, s := clientTrace.messages(), serverTrace.messages()
			if n := len(c); n < 3 || c[n-1] != "failed" || c[n-2] != "-> Alert" || slices.Contains(c, "-> Finished") {
				t.Errorf("the client prints %q", c)
			}
			if n := len(s); n < 3 || s[n-1] != "failed" || s[n-2] != "<- Alert" {
				t.Errorf("the server prints %q", s)
			}
			all := strings.Join(clientTrace.texts, "")
			if !strings.Contains(all, "Alert: fatal, bad certificate (42)") || !strings.Contains(all, "failed: certificate_untrusted: ") {
				t.Errorf("the client prints\n%s", all)
			}
		})
	}
}

// TestTraceFile checks that OSSL_TRACE names a file that traces are appended to.
func TestTraceFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "trace")
	t.Setenv("OSSL_TRACE", name)
	var own tracer
	client := ossltest.NewContext(t, tlstest.ClientConfig(), ossl.WithTrace(&own))
	server := ossltest.NewContext(t, tlstest.ServerConfig())
	tlstest.Visit(t, ossltest.ClientOf(client), ossltest.ServerOf(server))
	text, err := os.ReadFile(name)
	if err != nil || !bytes.Contains(text, []byte("server ")) || bytes.Contains(text, []byte(" client ")) {
		t.Errorf("the file has %q (%v)", text, err)
	}
	if len(own.texts) == 0 {
		t.Error("the option's writer has nothing")
	}
	t.Setenv("OSSL_TRACE", t.TempDir()) // a folder
	var e *ossl.ConfigError
	if _, err := ossl.NewContext(tlstest.ClientConfig()); !errors.As(err, &e) || e.Field != "OSSL_TRACE" {
		t.Errorf("NewContext returns %v", err)
	}
	if _, err := ossl.NewContext(tlstest.ClientConfig(), ossl.WithTrace(nil)); !errors.As(err, &e) || e.Field != "WithTrace" {
		t.Errorf("NewContext returns %v", err)
	}
}

// TestTracePanics checks that a writer that panics at a ticket, which a Read prints, doesn't break
// the connection.
func TestTracePanics(t *testing.T) {
	cc, sc := tlstest.Resuming(tls.VersionTLS13)
	client := ossltest.NewPlainContext(t, cc, ossl.WithTrace(panicking("NewSessionTicket")))
	a, b := tlstest.Loopback()
	c, s := client.Client(a, ""), tls.Server(b, sc)
	defer c.Close()
	defer s.Close()
	tlstest.Shake(t, c, s) // crypto/tls sends its ticket at once
	got := make([]byte, 4)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_, _ = c.Read(got)
	}()
	if _, err := s.Write([]byte("text")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, got); err != nil || string(got) != "text" {
		t.Errorf("read %q, %v", got, err)
	}
}

// panicking is a writer that panics if a text has it in it.
type panicking string

func (p panicking) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(p)) {
		panic("in a writer")
	}
	return len(b), nil
}

// TestTraceOfChosen checks that a server prints a ClientHello once if GetConfigForClient chooses
// another configuration, for which libssl reads it again.
func TestTraceOfChosen(t *testing.T) {
	chosen, sc := tlstest.ServerConfig(), tlstest.ServerConfig()
	sc.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return chosen, nil }
	var trace tracer
	client, server := ossltest.NewContext(t, tlstest.ClientConfig()), ossltest.NewContext(t, sc, ossl.WithTrace(&trace))
	tlstest.Visit(t, ossltest.ClientOf(client), ossltest.ServerOf(server))
	list := trace.messages()
	hellos := slices.DeleteFunc(slices.Clone(list), func(m string) bool { return m != "<- ClientHello" })
	if len(hellos) != 1 || !slices.Contains(list, "done") {
		t.Errorf("printed %q", list)
	}
}

// A namedConn is a connection whose peer has chosen its own address, as a Unix socket can.
type namedConn struct{ net.Conn }

func (namedConn) RemoteAddr() net.Addr {
	return &net.UnixAddr{Name: "@a\n[1 server b 1s] done", Net: "unix"}
}

// TestTraceAddress checks that the name of a Unix socket can't forge a line.
func TestTraceAddress(t *testing.T) {
	var trace tracer
	_, sc := tlstest.Resuming(tls.VersionTLS13)
	server := ossltest.NewPlainContext(t, sc, ossl.WithTrace(&trace))
	client, conn := net.Pipe()
	_ = client.Close()
	_ = server.Server(namedConn{conn}).Handshake()
	if len(trace.texts) == 0 {
		t.Fatal("nothing was printed")
	}
	for line := range strings.Lines(strings.Join(trace.texts, "")) {
		if strings.HasPrefix(line, "[1 server b") {
			t.Errorf("%q", line)
		}
	}
}
