package redisstore_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/session"
	"github.com/ossl-go/ossl/session/redisstore"
)

// certificateEnv names the environment variable with the servers' certificate and key, in PEM.
const certificateEnv = "OSSL_TEST_CERTIFICATE"

// serve starts a TLS echo server in a member's process, and returns its address or an error text.
func serve(how string, store *redisstore.Store, ring *session.Ring) string {
	text := []byte(os.Getenv(certificateEnv))
	cert, err := tls.X509KeyPair(text, text)
	if err != nil {
		return err.Error()
	}
	config := &tls.Config{Certificates: []tls.Certificate{cert}}
	option := ossl.WithTicketKeys(ring)
	if how == "ids" {
		config.SessionTicketsDisabled = true
		option = ossl.WithSessionCache(store)
	}
	ctx, err := ossl.NewContext(config, option)
	if err != nil {
		return err.Error()
	}
	l, err := ctx.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err.Error()
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return l.Addr().String()
}

// certificate returns a certificate for fleet.test, signed by its own key, with the key in PEM, and
// a pool that trusts it.
func certificate(t *testing.T) (text string, roots *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "fleet.test"},
		DNSNames:     []string{"fleet.test"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AddCert(leaf)
	text = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})) +
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
	return text, roots
}

type client interface {
	net.Conn
	ConnectionState() tls.ConnectionState
}

// call makes one connection with an echo and reports whether it resumed a session.
func call(t *testing.T, addr string, dial func(net.Conn) client) bool {
	t.Helper()
	raw, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	conn := dial(raw)
	defer conn.Close()
	if _, err := conn.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	return conn.ConnectionState().DidResume
}

// TestFleetResumes: a session made with one server process resumes on the others, by ticket and by
// ID. With the store gone every connection works, with a full handshake if the session is in the
// store.
func TestFleetResumes(t *testing.T) {
	if _, err := ossl.Library(); err != nil {
		t.Skip(err)
	}
	for _, how := range []string{"tickets", "ids"} {
		t.Run(how, func(t *testing.T) { testFleetResumes(t, how) })
	}
}

func testFleetResumes(t *testing.T, how string) {
	text, roots := certificate(t)
	t.Setenv(certificateEnv, text)
	server, members := startFleet(t, 3)
	addrs := make([]string, len(members))
	for i, m := range members {
		addrs[i] = m.ask("serve %s", how)
	}
	if how == "tickets" {
		eventually(t, "all members to seal with one key", func() bool {
			first := members[0].ask("seals")
			return first != "none" && first == members[1].ask("seals") && first == members[2].ask("seals")
		})
	}
	visit := func(i int, dial func(net.Conn) client) bool {
		resumed := call(t, addrs[i%len(addrs)], dial)
		members[i%len(members)].ask("flush")
		return resumed
	}
	clients := fleetClients(how, roots)
	for name, dial := range clients {
		if visit(0, dial) {
			t.Fatalf("%s: the first connection resumed a session", name)
		}
		for i := 1; i <= 6; i++ {
			if !visit(i, dial) {
				t.Errorf("%s: connection %d, with another member than the one before, did not resume", name, i)
			}
		}
	}

	server.signal(syscall.SIGSTOP)
	for name, dial := range clients {
		if resumed := call(t, addrs[1], dial); resumed != (how == "tickets") {
			t.Errorf("%s, with a store that hangs: resumed %v", name, resumed)
		}
	}
	server.signal(syscall.SIGCONT)
	server.kill()
	for name, dial := range clients {
		if resumed := call(t, addrs[2], dial); resumed != (how == "tickets") {
			t.Errorf("%s, without a store: resumed %v", name, resumed)
		}
	}
	server.start()
	for name, dial := range clients {
		eventually(t, name+": sessions to be resumed again", func() bool { return visit(0, dial) && visit(1, dial) && visit(2, dial) })
	}
}

// fleetClients returns a client for each version and implementation that can resume.
func fleetClients(how string, roots *x509.CertPool) map[string]func(net.Conn) client {
	clients := make(map[string]func(net.Conn) client)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		config := func() *tls.Config {
			return &tls.Config{
				RootCAs: roots, ServerName: "fleet.test", MaxVersion: version,
				ClientSessionCache: tls.NewLRUClientSessionCache(0),
			}
		}
		own, std := config(), config()
		clients[tls.VersionName(version)+", ossl"] = func(raw net.Conn) client { return ossl.Client(raw, own) }
		if how == "ids" && version == tls.VersionTLS12 {
			continue // crypto/tls's clients support tickets only
		}
		clients[tls.VersionName(version)+", crypto/tls"] = func(raw net.Conn) client { return tls.Client(raw, std) }
	}
	return clients
}
