package grpctls

import (
	"crypto/x509"
	"net/url"
)

// Limits of the SPIFFE ID standard, section 2, in bytes.
const (
	maxSPIFFEID     = 2048
	maxSPIFFEDomain = 255
)

// spiffeID returns the SPIFFE ID in the peer's certificate, or nil if it doesn't have exactly one
// that is valid. gRPC's own function is internal; a test compares the two.
func spiffeID(peer []*x509.Certificate) *url.URL {
	if len(peer) == 0 {
		return nil
	}
	for _, uri := range peer[0].URIs {
		if uri == nil || uri.Scheme != "spiffe" || uri.Opaque != "" || uri.User != nil && uri.User.Username() != "" {
			continue
		}
		problem := ""
		switch {
		case len(uri.String()) > maxSPIFFEID:
			problem = "longer than 2048 bytes"
		case uri.Host == "" || uri.Path == "":
			problem = "without a trust domain or a path"
		case len(uri.Host) > maxSPIFFEDomain:
			problem = "with a trust domain longer than 255 bytes"
		case len(peer[0].URIs) > 1: // X.509-SVID, section 2
			problem = "not the only URI of its certificate"
		default:
			return uri
		}
		logger.Warning("ignoring a SPIFFE ID: it is ", problem)
		return nil
	}
	return nil
}
