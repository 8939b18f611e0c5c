//go:build cgo || ossl_nocgo

package differential

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestRefusalIsSealed makes TLS 1.3 clients refuse a crypto/tls server for each reason that Go code
// can find, with and without a second hello. The server must get the reason. After its hello, the
// client must send the same records as crypto/tls's client and no others: libssl has made its whole
// flight by then.
func TestRefusalIsSealed(t *testing.T) {
	ran := 0
	for _, d := range denials() {
		if d.side != tlstest.ClientRole || strings.HasPrefix(d.name, "key that doesn't match") {
			continue
		}
		ran++
		t.Run(d.name, func(t *testing.T) {
			// A client with a certificate, so that there is something to keep back.
			edits := append(opts(tlstest.Only(tls.VersionTLS13), tlstest.Certificates(tlstest.ClientCert(tlstest.P256))), d.edits...)
			for i := range 4 {
				retry, mode := i&1 > 0, tls.NoClientCert
				if i&2 > 0 {
					mode = tls.RequireAnyClientCert
				}
				ours, theirs := tlstest.Curves(tls.CurveP256, tls.CurveP384), tlstest.Curves(tls.CurveP256)
				if retry { // the client sends a key for the first only
					theirs = tlstest.Curves(tls.CurveP384)
				}
				run := func(client tlstest.Impl) (*tlstest.Outcome, []tlstest.Record) {
					o := tlstest.Run(tlstest.Pairing{Client: client, Server: tlstest.Std}, tlstest.Case{
						Client: tlstest.ClientWith(append([]func(*tls.Config){ours}, edits...)...),
						Server: tlstest.ServerWith(tlstest.Only(tls.VersionTLS13), tlstest.AskClient(mode), theirs, d.peer),
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
				o, records := run(ossltest.UnderTest)
				_, records0 := run(tlstest.Std)
				want := "local error: tls: bad record MAC"
				if ossltest.SealsRefusals() {
					want = "remote error: tls: bad certificate"
				}
				got := o.Server.HandshakeErr
				if got == nil {
					got = o.Server.TalkErr
				}
				if got == nil || got.Error() != want {
					t.Errorf("second hello %t: the server got %v, want %s", retry, got, want)
				}
				shape0 := tlstest.Shape(records0)
				if hellos := 1 + i&1; len(shape0) != hellos+2 {
					t.Fatalf("second hello %t: crypto/tls sent %q", retry, shape0)
				}
				if !ossltest.SealsRefusals() { // in the clear, as libssl does
					shape0 = slices.DeleteFunc(shape0, func(s string) bool { return !retry && s != "handshake" || s == "0x303, 19 bytes" })
					shape0 = append(shape0, "0x303, type 21: 022a")
				}
				if got := tlstest.Shape(records); !slices.Equal(got, shape0) {
					t.Errorf("second hello %t: the client sent %q, want %q", retry, got, shape0)
				}
			}
		})
	}
	if ran < 20 {
		t.Errorf("%d denials", ran)
	}
}

// TestRefusalDoesNotWait uses a server that keeps back the messages after its certificate: the
// client must not wait for them.
func TestRefusalDoesNotWait(t *testing.T) {
	a, b := tlstest.NewPipe()
	defer a.Close()
	defer b.Close()
	client := ossltest.UnderTest.Client(a, tlstest.ClientConfig(tlstest.Only(tls.VersionTLS13), tlstest.DenyConn))
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

// onlyRecords passes on the first n records that are written.
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

// TestRefusalLeavesNothing refuses handshakes with every callback and cache set.
func TestRefusalLeavesNothing(t *testing.T) {
	for _, offered := range []bool{false, true} {
		cc, sc := tlstest.Resuming(tls.VersionTLS13)
		sc.ClientAuth = tls.RequireAnyClientCert
		shown, deny := 0, !offered
		cc.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			shown++
			cert := tlstest.ClientCert(tlstest.P256)
			return &cert, nil
		}
		kept := new(tlstest.OneSlot)
		cc.ClientSessionCache = kept
		cc.VerifyConnection = func(tls.ConnectionState) error {
			if deny {
				return tlstest.ErrDenied
			}
			return nil
		}
		client, server := ossltest.NewContext(t, cc), ossltest.NewContext(t, sc)
		if offered { // a session, which the server does not know
			tlstest.Visit(t, func(conn net.Conn) tlstest.Conn { return client.Client(conn, "") }, tlstest.StdServer(sc.Clone()))
			if deny, shown = true, 0; kept.State == nil {
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
		want := 0
		if offered {
			want = 1 // before the session is offered, which is for one certificate
		}
		if kept.State != nil || shown != want {
			t.Errorf("offered %v: a session is kept: %v; the certificate was asked for %d times", offered, kept.State != nil, shown)
		}
		c.Close()
		if err := <-done; err == nil {
			t.Error("the server's handshake is done")
		}
		s.Close()
	}
}

// TestResumedRefusalIsSealed makes TLS 1.3 clients refuse a resumed connection, after libssl has
// accepted it. The server must get the same alert as from crypto/tls, and after its hello the
// client must send nothing else.
func TestResumedRefusalIsSealed(t *testing.T) {
	for _, retry := range []bool{false, true} {
		told, sent := map[string]string{}, map[string][]string{}
		for _, client := range []tlstest.Impl{tlstest.Std, ossltest.UnderTest} {
			cc, sc := tlstest.Resuming(tls.VersionTLS13)
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
			tlstest.Visit(t, func(conn net.Conn) tlstest.Conn { return client.Client(conn, cc) }, tlstest.StdServer(sc))
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
			sent[client.Name()] = tlstest.Shape(records)
		}
		hellos := 1
		if retry {
			hellos = 2
		}
		got, want := sent[ossltest.UnderTest.Name()], sent[tlstest.Std.Name()]
		if !slices.Equal(got, want) || len(want) != hellos+2 {
			t.Errorf("second hello %t: the client sent %q, crypto/tls %q", retry, got, want)
		}
		if got, want := told[ossltest.UnderTest.Name()], told[tlstest.Std.Name()]; got != want {
			t.Errorf("second hello %t: the server got %q, want %q", retry, got, want)
		}
	}
}
