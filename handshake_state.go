package ossl

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/stdtls"
)

// checkALPN refuses a server's choice that was not offered, as crypto/tls does; not every libssl does.
func (c *Conn) checkALPN() error {
	if !c.isClient || c.state.NegotiatedProtocol == "" {
		return nil
	}
	for _, p := range c.context().config.NextProtos {
		if p == c.state.NegotiatedProtocol {
			return nil
		}
	}
	return fmt.Errorf("tls: server selected unadvertised ALPN protocol %q", c.state.NegotiatedProtocol)
}

// fillState fills the connection's state from what libssl knows.
func (c *Conn) fillState(f libssl.Facts) {
	s := &c.state
	s.Version = f.Version
	s.CipherSuite = f.CipherSuite
	s.CurveID = tls.CurveID(f.Group)
	s.DidResume = f.Resumed
	s.NegotiatedProtocol = f.ALPN
	//lint:ignore SA1019 deprecated, and set by crypto/tls
	s.NegotiatedProtocolIsMutual = true // for VerifyConnection
	if !c.isClient {
		s.ServerName = f.ServerName
	}
	ocsp, scts := f.OCSPResponse, f.SCTs
	if c.hs.resumed {
		ocsp, scts = c.hs.offered.ocsp, c.hs.offered.scts
		if s.CurveID == 0 {
			s.CurveID = tls.CurveID(c.hs.offered.group)
		}
	}
	s.OCSPResponse = ocsp
	s.SignedCertificateTimestamps, _ = parseSCTs(scts)
	stdtls.SetHelloRetry(s, f.HelloRetry)
	if !f.Resumed {
		local := c.hs.local
		if !c.isClient && !c.context().hellos {
			local = c.context().config.Certificates[0].Certificate
		}
		stdtls.SetLocalCertificate(s, local)
	}
	if f.Version < tls.VersionTLS13 && (!f.Resumed || f.ExtendedMasterSecret) {
		// The first Finished: the client's in a full handshake, the server's in a resumed one (RFC 5929, section 3.1).
		if c.isClient != f.Resumed {
			s.TLSUnique = f.LocalFinished
		} else {
			s.TLSUnique = f.PeerFinished
		}
	}
}

// keyLogMu keeps the lines of connections that share a writer apart, as crypto/tls does.
var keyLogMu sync.Mutex

func (c *Conn) writeKeyLog(lines string) error {
	keyLogMu.Lock()
	defer keyLogMu.Unlock()
	_, err := io.WriteString(c.context().config.KeyLogWriter, lines)
	return err
}

// hostnameInSNI returns the name to send for host: none for IP addresses, and no trailing dot (RFC 6066, section 3).
func hostnameInSNI(name string) string {
	host := name
	if len(host) > 0 && host[0] == '[' && host[len(host)-1] == ']' {
		host = host[1 : len(host)-1]
	}
	for i := len(host) - 1; i > 0; i-- {
		if host[i] == '%' {
			host = host[:i]
			break
		}
	}
	if net.ParseIP(host) != nil {
		return ""
	}
	for len(name) > 0 && name[len(name)-1] == '.' {
		name = name[:len(name)-1]
	}
	return name
}
