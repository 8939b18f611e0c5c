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

// A verification is one connection's: which peer it is to be, and which it is. The Context that all connections share accepts any
// certificate, so each connection is made with one.
type verification struct {
	transport *Transport
	want      peer.ID        // empty for any
	peer      *certifiedPeer // set once it is verified
}

// A certifiedPeer is who signed for a certificate.
type certifiedPeer struct {
	id  peer.ID
	key ci.PubKey
}

// verify decides on the peer while its alert can still be sent: on a client that is before it shows its own certificate.
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

// verifyChain returns who signed for the one certificate of a chain: libp2p's rules, of which all but the self-signature are
// go-libp2p's to check.
func verifyChain(chain []*x509.Certificate) (*certifiedPeer, error) {
	if len(chain) != 1 {
		return nil, errors.New("expected one certificates in the chain")
	}
	cert := *chain[0]
	// PubKeyFromCertChain takes libp2p's extension off this list, in place; the connection's state has the certificate, too.
	cert.UnhandledCriticalExtensions = slices.Clone(cert.UnhandledCriticalExtensions)
	key, err := stdtls.PubKeyFromCertChain([]*x509.Certificate{&cert})
	if err != nil {
		return nil, err
	}
	// x509.Certificate.Verify trusts a root for being one; libp2p's specification wants the signature to be good.
	if err := cert.CheckSignature(cert.SignatureAlgorithm, cert.RawTBSCertificate, cert.Signature); err != nil {
		return nil, fmt.Errorf("certificate is not self-signed: %s", err)
	}
	id, err := peer.IDFromPublicKey(key)
	if err != nil {
		return nil, err
	}
	return &certifiedPeer{id: id, key: key}, nil
}

// panicLog is where panics leave their stack, as those of go-libp2p's transport do.
var panicLog io.Writer = os.Stderr

// panicError makes an error of a panic: what a peer sends must not end the process.
func panicError(when string, p any) error {
	err := fmt.Errorf("panic %sin TLS handshake: %v", when, p)
	fmt.Fprintf(panicLog, "%v\n%s\n", err, debug.Stack())
	return err
}
