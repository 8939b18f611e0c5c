//go:build cgo

package ossl_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// sealsRefusals says whether TLS 1.3 clients protect the alert for a chain that Go refuses.
func sealsRefusals() bool { return libraryAtLeast("3.0") }

// shape describes an end's records as they look without its keys: by their types and, except for handshake messages, by their
// length or, in the clear, their bytes.
func shape(records []tlstest.Record) (s []string) {
	for _, r := range records {
		switch r.Type {
		case tlstest.TypeHandshake:
			s = append(s, "handshake")
		case tlstest.TypeApplicationData:
			s = append(s, fmt.Sprintf("%#x, %d bytes", r.Version, len(r.Payload)))
		default:
			s = append(s, fmt.Sprintf("%#x, type %d: %x", r.Version, r.Type, r.Payload))
		}
	}
	return s
}

// TestRefusalIsSealed has TLS 1.3 clients refuse a crypto/tls server in every way that is Go's, with and without a second hello.
// The server must get the reason. After its hello, the client must send the same records as crypto/tls's client and no others:
// libssl has made its whole flight by then.
func TestRefusalIsSealed(t *testing.T) {
	ran := 0
	for _, d := range denials() {
		if d.side != tlstest.ClientRole || strings.HasPrefix(d.name, "key that doesn't match") {
			continue
		}
		ran++
		t.Run(d.name, func(t *testing.T) {
			// A client with a certificate, so that there is something to keep back.
			edits := append(opts(only(tls.VersionTLS13), certificates(tlstest.ClientCert(tlstest.P256))), d.edits...)
			for i := range 4 {
				retry, mode := i&1 > 0, tls.NoClientCert
				if i&2 > 0 {
					mode = tls.RequireAnyClientCert
				}
				ours, theirs := groups(tls.CurveP256, tls.CurveP384), groups(tls.CurveP256)
				if retry { // the client sends a key for the first only
					theirs = groups(tls.CurveP384)
				}
				run := func(client tlstest.Impl) (*tlstest.Outcome, []tlstest.Record) {
					o := tlstest.Run(tlstest.Pairing{Client: client, Server: tlstest.Std}, tlstest.Case{
						Client: clientWith(append([]func(*tls.Config){ours}, edits...)...),
						Server: serverWith(only(tls.VersionTLS13), askClient(mode), theirs, d.peer),
						Talk:   tlstest.Echo,
					})
					if o.Hung || o.Client.Handshake == "ok" {
						t.Fatalf("%s: hung %t, %v", client.Name(), o.Hung, o.Client.HandshakeErr)
					}
					records, rest := tlstest.SplitRecords(o.Recording.Bytes(tlstest.ClientRole))
					if len(rest) > 0 {
						t.Errorf("%s: %d bytes of no record", client.Name(), len(rest))
					}
					return o, records
				}
				o, records := run(underTest)
				_, records0 := run(tlstest.Std)
				want := "local error: tls: bad record MAC"
				if sealsRefusals() {
					want = "remote error: tls: bad certificate"
				}
				got := o.Server.HandshakeErr
				if got == nil {
					got = o.Server.TalkErr
				}
				if got == nil || got.Error() != want {
					t.Errorf("second hello %t: the server got %v, want %s", retry, got, want)
				}
				shape0 := shape(records0)
				if hellos := 1 + i&1; len(shape0) != hellos+2 {
					t.Fatalf("second hello %t: crypto/tls sent %q", retry, shape0)
				}
				if !sealsRefusals() { // in the clear, as libssl does
					shape0 = slices.DeleteFunc(shape0, func(s string) bool { return !retry && s != "handshake" || s == "0x303, 19 bytes" })
					shape0 = append(shape0, "0x303, type 21: 022a")
				}
				if got := shape(records); !slices.Equal(got, shape0) {
					t.Errorf("second hello %t: the client sent %q, want %q", retry, got, shape0)
				}
			}
		})
	}
	if ran < 20 {
		t.Errorf("%d denials", ran)
	}
}

// TestRefusalDoesNotWait has a server keep back what comes after its certificate: the client is not to wait for it.
func TestRefusalDoesNotWait(t *testing.T) {
	a, b := tlstest.NewPipe()
	defer a.Close()
	defer b.Close()
	client := underTest.Client(a, tlstest.ClientConfig(only(tls.VersionTLS13), denyConn))
	server := tls.Server(&onlyRecords{Conn: b, n: 4}, tlstest.ServerConfig()) // ServerHello, CCS, EncryptedExtensions, Certificate
	go server.Handshake()
	if err := client.Handshake(); !errors.Is(err, tlstest.ErrDenied) {
		t.Fatalf("%v", err)
	}
	a.CloseWrite()
	if err := server.Handshake(); err == nil {
		t.Error("the server accepts")
	}
	if n, err := client.Read(make([]byte, 1)); n != 0 || err == nil || err == io.EOF {
		t.Errorf("%d, %v", n, err)
	}
}

// onlyRecords lets the first n records of what is written through.
type onlyRecords struct {
	net.Conn
	n int
}

func (c *onlyRecords) Write(b []byte) (int, error) {
	records, _ := tlstest.SplitRecords(b)
	pass := 0
	for _, r := range records {
		if c.n == 0 {
			break
		}
		c.n--
		pass += 5 + len(r.Payload)
	}
	if _, err := c.Conn.Write(b[:pass]); err != nil {
		return 0, err
	}
	return len(b), nil
}

// TestRefusalLeavesNothing refuses with everything set that a handshake asks for or keeps.
func TestRefusalLeavesNothing(t *testing.T) {
	for _, offered := range []bool{false, true} {
		cc, sc := resuming(tls.VersionTLS13)
		sc.ClientAuth = tls.RequireAnyClientCert
		shown, deny := 0, !offered
		cc.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			shown++
			cert := tlstest.ClientCert(tlstest.P256)
			return &cert, nil
		}
		kept := new(oneSlot)
		cc.ClientSessionCache = kept
		cc.VerifyConnection = func(tls.ConnectionState) error {
			if deny {
				return tlstest.ErrDenied
			}
			return nil
		}
		client, server := newContext(t, cc), newContext(t, sc)
		if offered { // a session, which the server does not know
			visit(t, func(conn net.Conn) tlstest.Conn { return client.Client(conn, "") }, stdServer(sc.Clone()))
			if deny, shown = true, 0; kept.state == nil {
				t.Fatal("no session")
			}
		}
		a, b := tlstest.Buffered()
		c, s := client.Client(a, ""), server.Server(b)
		done := make(chan error, 1)
		go func() { done <- s.Handshake() }()
		for range 2 {
			if err := c.Handshake(); !errors.Is(err, tlstest.ErrDenied) {
				t.Errorf("offered %v: %v", offered, err)
			}
		}
		if n, err := c.Write([]byte("x")); n != 0 || err == nil {
			t.Errorf("wrote %d, %v", n, err)
		}
		if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil || err == io.EOF {
			t.Errorf("read %d, %v", n, err)
		}
		if _, err := c.ExportKeyingMaterial("label", nil, 32); err == nil {
			t.Error("exported")
		}
		if state := c.ConnectionState(); state.HandshakeComplete || state.DidResume {
			t.Errorf("complete: %v, resumed: %v", state.HandshakeComplete, state.DidResume)
		}
		if kept.state != nil || shown != 0 {
			t.Errorf("offered %v: a session is kept: %v; the certificate was asked for %d times", offered, kept.state != nil, shown)
		}
		c.Close()
		if err := <-done; err == nil {
			t.Error("the server's handshake is done")
		}
		s.Close()
	}
}

// TestResumedRefusalIsSealed has TLS 1.3 clients refuse a resumed connection, which libssl has agreed to by then. The server must
// be told as crypto/tls tells it, and besides the alert nothing may leave the client after its hello.
func TestResumedRefusalIsSealed(t *testing.T) {
	for _, retry := range []bool{false, true} {
		told, sent := map[string]string{}, map[string][]string{}
		for _, client := range []tlstest.Impl{tlstest.Std, underTest} {
			cc, sc := resuming(tls.VersionTLS13)
			if retry { // a second hello
				cc.CurvePreferences = []tls.CurveID{tls.CurveP256, tls.CurveP384}
				sc.CurvePreferences = []tls.CurveID{tls.CurveP384}
			}
			denied := 0
			cc.VerifyConnection = func(s tls.ConnectionState) error {
				if s.DidResume {
					denied++
					return tlstest.ErrDenied
				}
				return nil
			}
			visit(t, func(conn net.Conn) tlstest.Conn { return client.Client(conn, cc) }, stdServer(sc))
			o := tlstest.Run(tlstest.Pairing{Client: client, Server: tlstest.Std}, tlstest.Case{
				Client: func() *tls.Config { return cc }, Server: func() *tls.Config { return sc }, Shared: true,
			})
			if o.Hung || !errors.Is(o.Client.HandshakeErr, tlstest.ErrDenied) || denied != 1 {
				t.Fatalf("%s: hung %t, denied %d times, %v", client.Name(), o.Hung, denied, o.Client.HandshakeErr)
			}
			err := o.Server.HandshakeErr
			if err == nil {
				err = o.Server.TalkErr
			}
			if err == nil {
				t.Fatalf("%s: the server accepts", client.Name())
			}
			told[client.Name()] = err.Error()
			records, rest := tlstest.SplitRecords(o.Recording.Bytes(tlstest.ClientRole))
			if len(rest) > 0 {
				t.Errorf("%s: %d bytes of no record", client.Name(), len(rest))
			}
			sent[client.Name()] = shape(records)
		}
		hellos := 1
		if retry {
			hellos = 2
		}
		got, want := sent[underTest.Name()], sent[tlstest.Std.Name()]
		if !slices.Equal(got, want) || len(want) != hellos+2 {
			t.Errorf("second hello %t: the client sent %q, crypto/tls %q", retry, got, want)
		}
		if got, want := told[underTest.Name()], told[tlstest.Std.Name()]; got != want {
			t.Errorf("second hello %t: the server got %q, want %q", retry, got, want)
		}
	}
}

// TestRefusalKeyIsForgotten: Finished was sealed with the first nonce of the key that a refusal is sealed with. Once it may have
// been sent, there is no such key.
func TestRefusalKeyIsForgotten(t *testing.T) {
	cc, sc := resuming(tls.VersionTLS13)
	client, server := newContext(t, cc), stdServer(sc)
	visit(t, func(conn net.Conn) tlstest.Conn { return client.Client(conn, "") }, server)
	a, b := tlstest.Buffered()
	c, s := client.Client(a, ""), server(b)
	defer s.Close()
	defer c.Close()
	go s.Handshake()
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	if !c.ConnectionState().DidResume {
		t.Fatal("not resumed")
	}
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if alert := c.Refuse(42); !bytes.Equal(alert, []byte{21, 3, 3, 0, 2, 2, 42}) {
		t.Errorf("a refusal is sealed again: %x", alert)
	}
}
