package ossl

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"

	"github.com/ossl-go/ossl/internal/libssl"
)

// The error of a handshake that fails in libssl has crypto/tls's text for the same failure,
// completed by the offers or the choice of the peer. The texts are made only when a handshake has
// failed. They contain the peer's bytes as numbers or quoted strings only, and a limited number of
// them.

const (
	maxListed     = 64 // suites, groups and so on of a peer that a text lists
	maxProtocolAt = 32 // bytes of a protocol's name
)

// describe gives e the text that crypto/tls has for the failure, if it has one. queue is OpenSSL's
// error queue.
func (h *handshake) describe(ssl *libssl.Conn, e *LibraryError, queue *libssl.Error, alert int) {
	hellos := ssl.Hellos()
	if h.c.isClient {
		e.text = clientText(queue, hellos, alert)
		return
	}
	if hello, ok := libssl.ParseClientHello(hellos.Client); ok {
		e.text = h.serverText(ssl, queue, &hello, alert)
	}
}

// clientText returns the text for a failure of a client.
func clientText(queue *libssl.Error, hellos libssl.Hellos, alert int) string {
	switch failure := queue.Failure(); {
	case failure == libssl.FailureVersion && hellos.Version != 0:
		return fmt.Sprintf("tls: server selected unsupported protocol version %x", hellos.Version)
	case failure == libssl.FailureSuite && hellos.Version != 0:
		return fmt.Sprintf("tls: server chose an unconfigured cipher suite: %04x", hellos.Suite)
	case failure == libssl.FailureCompression:
		return "tls: server selected unsupported compression format"
	case failure == libssl.FailureNoSecureRenegotiation:
		return "tls: server doesn't support secure renegotiation (RFC 5746), which OpenSSL 3.0 and later require of it"
	case failure == libssl.FailureFallback: // RFC 8446, section 4.1.3
		return "tls: downgrade attempt detected, possibly due to a MitM attack or a broken middlebox"
	case failure == libssl.FailureRenegotiation:
		return "tls: initial handshake had non-empty renegotiation extension"
	case failure == libssl.FailureBadSignature:
		return "tls: invalid signature by the server certificate"
	case alert == alertBadCertificate && queue.EncodingRefused():
		return "tls: failed to parse certificate from server: OpenSSL: " + queue.Reason()
	}
	return ""
}

// serverText returns the text for a failure of a server.
func (h *handshake) serverText(ssl *libssl.Conn, queue *libssl.Error, hello *libssl.ClientHello, alert int) string {
	switch failure := queue.Failure(); {
	case failure == libssl.FailureVersion:
		return "tls: client offered only unsupported versions: " + listed(offeredVersions(hello))
	case failure == libssl.FailureSuite:
		return h.suiteText(ssl, hello)
	case failure == libssl.FailureGroup && alert == alertHandshakeFailure:
		return "tls: no key exchanges supported by both client and server; client offered: " + listed(hello.Groups)
	case failure == libssl.FailureSignature && hello.SignatureSchemes == nil:
		return "tls: missing signature_algorithms from TLS 1.2 peer"
	case failure == libssl.FailureSignature:
		return signatureText(hello)
	case failure == libssl.FailureProtocol:
		return "tls: client requested unsupported application protocols (" + listedNames(hello.Protocols, hello.MoreProtocols) + ")"
	case failure == libssl.FailureCompression:
		return "tls: client does not support uncompressed connections"
	case failure == libssl.FailureFallback:
		return "tls: client using inappropriate protocol fallback"
	case failure == libssl.FailureRenegotiation:
		return "tls: initial handshake had non-empty renegotiation extension"
	case failure == libssl.FailureBadSignature:
		return "tls: invalid signature by the client certificate"
	case h.negotiated && queue.EncodingRefused():
		return "tls: failed to parse client certificate: OpenSSL: " + queue.Reason()
	}
	return ""
}

func signatureText(hello *libssl.ClientHello) string {
	return errNoSignature.Error() + "; client offered: " + listed(hello.SignatureSchemes)
}

// suiteText returns the text for a server that has found no suite. In TLS 1.2 libssl leaves out the
// suites for which it has no group, no signature algorithm or no certificate. So if there is a
// shared suite, one of those is the cause.
func (h *handshake) suiteText(ssl *libssl.Conn, hello *libssl.ClientHello) string {
	text := "tls: no cipher suite supported by both client and server; client offered: " + listed(hello.CipherSuites)
	ctx := h.c.context()
	shared := slices.ContainsFunc(hello.CipherSuites, func(id uint16) bool { return slices.Contains(ctx.suites, id) })
	version := ssl.Version()
	cert := h.certificate
	if cert == nil && len(ctx.config.Certificates) > 0 {
		cert = &ctx.config.Certificates[0]
	}
	if !shared || version >= tls.VersionTLS13 || cert == nil {
		return text
	}
	info := tls.ClientHelloInfo{CipherSuites: hello.CipherSuites, SupportedVersions: []uint16{version}}
	for _, group := range hello.Groups {
		info.SupportedCurves = append(info.SupportedCurves, tls.CurveID(group))
	}
	for _, scheme := range hello.SignatureSchemes {
		info.SignatureSchemes = append(info.SignatureSchemes, tls.SignatureScheme(scheme))
	}
	groups := ", groups: " + listed(hello.Groups)
	switch err := info.SupportsCertificate(cert); {
	case err == nil:
		return text + groups
	case err.Error() == errNoSignature.Error():
		return signatureText(hello)
	case strings.Contains(err.Error(), "suites"):
		return text + " (" + err.Error() + ")"
	default:
		return text + groups + " (" + err.Error() + ")"
	}
}

// offeredVersions returns the versions that crypto/tls takes from a ClientHello.
func offeredVersions(hello *libssl.ClientHello) []uint16 {
	if hello.Versions != nil {
		return hello.Versions
	}
	var versions []uint16
	for v := min(hello.Version, tls.VersionTLS12); v >= tls.VersionTLS10; v-- {
		versions = append(versions, v)
	}
	return versions
}

// listed formats a list as crypto/tls does, without those behind the first maxListed.
func listed(list []uint16) string {
	if left := len(list) - maxListed; left > 0 {
		return fmt.Sprintf("%x and %d more", list[:maxListed], left)
	}
	return fmt.Sprintf("%x", list)
}

// listedNames is listed for protocols, of which left ones are not in names.
func listedNames(names []string, left int) string {
	more := ""
	if left > 0 {
		more = fmt.Sprintf(" and %d more", left)
	}
	quoted := make([]string, len(names))
	for i, name := range names {
		if len(name) > maxProtocolAt {
			quoted[i] = fmt.Sprintf("%q...", name[:maxProtocolAt])
		} else {
			quoted[i] = fmt.Sprintf("%q", name)
		}
	}
	return "[" + strings.Join(quoted, " ") + "]" + more
}
