package libp2ptls

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"

	ci "github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/sec"
	stdtls "github.com/libp2p/go-libp2p/p2p/security/tls"
)

// A verification holds the expected peer of one connection, and the actual one. The Context that
// all connections share accepts any certificate, so each connection has its own verification.
type verification struct {
	transport *Transport
	want      peer.ID        // empty for any
	peer      *certifiedPeer // set once verified
}

// A certifiedPeer is the peer that signed for a certificate.
type certifiedPeer struct {
	id  peer.ID
	key ci.PubKey
}

// verify checks the peer while an alert can still be sent: on a client, before its own certificate.
func (v *verification) verify(state tls.ConnectionState) (err error) {
	defer func() {
		if p := recover(); p != nil {
			v.peer, err = nil, panicError("when processing peer certificate ", p)
		}
	}()
	p, err := v.transport.peers.certified(state.PeerCertificates)
	if err != nil {
		return err
	}
	if v.want != "" && v.want != p.id {
		return sec.ErrPeerIDMismatch{Expected: v.want, Actual: p.id}
	}
	v.peer = p
	return nil
}

// verifyChain returns the peer that signed for the one certificate of a chain. go-libp2p checks
// libp2p's rules, except for the self-signature.
func verifyChain(chain []*x509.Certificate) (*certifiedPeer, error) {
	if len(chain) != 1 {
		return nil, errors.New("expected one certificates in the chain")
	}
	cert := *chain[0]
	// PubKeyFromCertChain removes libp2p's extension from this list, in place; but the certificate
	// is in the connection's state too.
	cert.UnhandledCriticalExtensions = slices.Clone(cert.UnhandledCriticalExtensions)
	key, err := stdtls.PubKeyFromCertChain([]*x509.Certificate{&cert})
	if err != nil {
		return nil, err
	}
	// x509.Certificate.Verify doesn't check the signature of a root; libp2p's specification
	// requires it.
	if err := cert.CheckSignature(cert.SignatureAlgorithm, cert.RawTBSCertificate, cert.Signature); err != nil {
		return nil, fmt.Errorf("certificate is not self-signed: %s", err)
	}
	id, err := peer.IDFromPublicKey(key)
	if err != nil {
		return nil, err
	}
	return &certifiedPeer{id: id, key: key}, nil
}

// A panic writes its stack to panicLog, as in go-libp2p's transport.
var panicLog io.Writer = os.Stderr

// panicError turns a panic into an error: a peer's input must not end the process.
func panicError(when string, p any) error {
	err := fmt.Errorf("panic %sin TLS handshake: %v", when, p)
	fmt.Fprintf(panicLog, "%v\n%s\n", err, debug.Stack())
	return err
}
