package stdtls

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"sync"
	"time"
)

var errNoTemplate = errors.New("ossl: crypto/tls gave the client no session")

// SessionTemplate returns a SessionState that crypto/tls has made in a handshake in memory, between
// a client and a server that are not used again. Callers copy it, and must not change anything that
// it points to.
var SessionTemplate = sync.OnceValues(func() (*tls.SessionState, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1, 0)}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		return nil, err
	}
	a, b := pipe()
	defer a.Close()
	server := tls.Server(b, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	go func() {
		_ = server.Handshake()
		_ = b.Close()
	}()
	var made catcher
	client := tls.Client(a, &tls.Config{
		InsecureSkipVerify: true, // client and server are in this function
		MaxVersion:         tls.VersionTLS12,
		ClientSessionCache: &made,
	})
	if err := client.Handshake(); err != nil {
		return nil, err
	}
	if made.state == nil {
		return nil, errNoTemplate
	}
	_, state, err := made.state.ResumptionState()
	return state, err
})

// pipe returns the ends of a net.Pipe for crypto/tls.
func pipe() (a, b net.Conn) {
	a, b = net.Pipe()
	return plainPipe{a}, plainPipe{b}
}

// A catcher is a cache that keeps the last session that it was given.
type catcher struct{ state *tls.ClientSessionState }

func (c *catcher) Get(string) (*tls.ClientSessionState, bool)  { return nil, false }
func (c *catcher) Put(_ string, state *tls.ClientSessionState) { c.state = state }
