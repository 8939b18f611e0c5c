package drivertest

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/ossl-go/ossl/dbtls"
)

// startNATS starts Debian's server, and startNewNATS a newer one in this process.
func startNATS(t *testing.T, mutual bool) *home {
	t.Helper()
	program := lookPath(t, "nats-server")
	h := newHome(t)
	config := h.write("nats.conf", fmt.Appendf(nil, "listen: %q\nauthorization { user: app, password: secret }\n"+
		"tls { cert_file: %q, key_file: %q, ca_file: %q, verify: %v }\n", h.addr(), h.cert, h.key, h.roots, mutual))
	h.start(syscall.SIGTERM, program, "-c", config)
	return h
}

func startNewNATS(t *testing.T, mutual, first bool) *home {
	t.Helper()
	h := &home{t: t, port: freePort(t)}
	config := &tls.Config{Certificates: []tls.Certificate{ids().server}, ClientCAs: ids().roots, MinVersion: tls.VersionTLS12}
	if mutual {
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: h.port, Username: "app", Password: "secret", NoSigs: true, NoLog: true,
		TLS: true, TLSVerify: mutual, TLSConfig: config, TLSTimeout: 10, TLSHandshakeFirst: first,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(20 * time.Second) {
		t.Fatal("the server doesn't start")
	}
	return h
}

func TestNATS(t *testing.T) {
	for _, s := range []struct {
		name  string
		start func(t *testing.T, mutual bool) *home
		dial  func(*dbtls.Dialer) dbtls.DialFunc
	}{
		{"Debian", startNATS, func(d *dbtls.Dialer) dbtls.DialFunc { return d.DialNATS }},
		{"new", func(t *testing.T, mutual bool) *home { return startNewNATS(t, mutual, false) },
			func(d *dbtls.Dialer) dbtls.DialFunc { return d.DialNATS }},
		{"handshake_first", func(t *testing.T, mutual bool) *home { return startNewNATS(t, mutual, true) },
			func(d *dbtls.Dialer) dbtls.DialFunc { return d.DialTLS }},
	} {
		for _, c := range connections {
			t.Run(s.name+"/"+c.name, func(t *testing.T) {
				h := s.start(t, c.mutual)
				recorder := newRecorder(t, c)
				for range 2 {
					testNATS(t, h, recorder.recorded(s.dial(recorder.Dialer)))
				}
				recorder.check(t, c, 2, true)
			})
		}
	}
}

// testNATS connects, by a URL of each scheme, and passes a message.
func testNATS(t *testing.T, h *home, dial dbtls.DialFunc) {
	t.Helper()
	conn, err := nats.Connect("tls://app:secret@"+h.addr(), nats.SetCustomDialer(dial), nats.NoReconnect())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	subscription, err := conn.SubscribeSync("subject")
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Publish("subject", []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if message, err := subscription.NextMsg(20 * time.Second); err != nil || string(message.Data) != "hello" {
		t.Errorf("%v, %v", message, err)
	}
	if !conn.TLSRequired() {
		t.Error("nats.go thinks that the server needs no TLS")
	}
	if _, err := conn.TLSConnectionState(); !errors.Is(err, nats.ErrConnectionNotTLS) {
		t.Errorf("TLSConnectionState: %v", err)
	}
}

// The scheme nats:// works too, and a server without TLS or with another certificate doesn't.
func TestNATSFaults(t *testing.T) {
	h := startNewNATS(t, false, false)
	recorder := newRecorder(t, connections[2])
	conn, err := nats.Connect("nats://app:secret@"+h.addr(), nats.SetCustomDialer(dbtls.DialFunc(recorder.DialNATS)))
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()

	stranger := newRecorder(t, connections[2], func(c *tls.Config) { c.RootCAs = x509.NewCertPool() })
	_, err = nats.Connect("tls://app:secret@"+h.addr(), nats.SetCustomDialer(dbtls.DialFunc(stranger.DialNATS)))
	if !errors.As(err, new(x509.UnknownAuthorityError)) {
		t.Error(err)
	}

	plain, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	plain.Start()
	defer plain.Shutdown()
	if !plain.ReadyForConnections(20 * time.Second) {
		t.Fatal("the server doesn't start")
	}
	_, err = nats.Connect("tls://app:secret@"+plain.Addr().String(), nats.SetCustomDialer(dbtls.DialFunc(recorder.DialNATS)))
	if !errors.Is(err, dbtls.ErrNoTLS) {
		t.Error(err)
	}
}
