package redisstore_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
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

// certificateEnv has the servers' certificate and key, in PEM.
const certificateEnv = "OSSL_TEST_CERTIFICATE"

// serve starts a TLS server that echoes, in a member's process, and returns its address or what is wrong.
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

// certificate returns a certificate for fleet.test, signed by its own key, with the key in PEM, and a pool that trusts it.
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

// TestFleetResumes: a session made with one server process resumes on the others, by ticket and by ID; and with the store gone every
// connection goes on, with a full handshake where the session is in the store.
func TestFleetResumes(t *testing.T) {
	if _, err := ossl.Library(); err != nil {
		t.Skip(err)
	}
	for _, how := range []string{"tickets", "ids"} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			for _, from := range []string{"crypto/tls", "ossl"} {
				if how == "ids" && version == tls.VersionTLS12 && from == "crypto/tls" {
					continue // its clients know tickets only
				}
				t.Run(fmt.Sprintf("%s/%s/%s", how, tls.VersionName(version), from), func(t *testing.T) {
					testFleetResumes(t, how, version, from)
				})
			}
		}
	}
}

func testFleetResumes(t *testing.T, how string, version uint16, from string) {
	text, roots := certificate(t)
	t.Setenv(certificateEnv, text)
	server, members := startFleet(t, 3)
	addrs := make([]string, len(members))
	for i, m := range members {
		addrs[i] = m.ask("serve %s", how)
	}
	config := &tls.Config{
		RootCAs: roots, ServerName: "fleet.test", MaxVersion: version,
		ClientSessionCache: tls.NewLRUClientSessionCache(0),
	}
	dial := func(raw net.Conn) client { return tls.Client(raw, config) }
	if from == "ossl" {
		dial = func(raw net.Conn) client { return ossl.Client(raw, config) }
	}
	if how == "tickets" {
		eventually(t, "all members to seal with one key", func() bool {
			first := members[0].ask("seals")
			return first != "none" && first == members[1].ask("seals") && first == members[2].ask("seals")
		})
	}
	visit := func(i int) bool {
		resumed := call(t, addrs[i%len(addrs)], dial)
		members[i%len(members)].ask("flush")
		return resumed
	}
	if visit(0) {
		t.Fatal("the first connection resumed a session")
	}
	for i := 1; i <= 9; i++ {
		if !visit(i) {
			t.Errorf("connection %d, with another member than the one before, did not resume", i)
		}
	}

	// A store that hangs and one that is gone. The members have answered by the time that their timeouts say, or none would come back.
	server.signal(syscall.SIGSTOP)
	for i := range 2 {
		if resumed := call(t, addrs[i], dial); resumed != (how == "tickets") {
			t.Errorf("with a store that hangs: resumed %v", resumed)
		}
	}
	server.signal(syscall.SIGCONT)
	server.kill()
	for i := range 2 {
		if resumed := call(t, addrs[i], dial); resumed != (how == "tickets") {
			t.Errorf("without a store: resumed %v", resumed)
		}
	}
	server.start()
	eventually(t, "sessions to be resumed again", func() bool { return visit(0) && visit(1) && visit(2) })
}
