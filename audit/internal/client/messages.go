package client

import (
	"bytes"
	"compress/zlib"
	"io"
	"slices"

	"github.com/ossl-go/ossl/audit/internal/hello"
	"github.com/ossl-go/ossl/audit/internal/wire"
)

// Extensions that this package reads or writes itself.
const (
	extStatus         = 5
	extALPN           = 16
	extSCT            = 18
	extCompress       = 27
	extEarlyData      = 42
	pskDHE       byte = 1
)

// parseCertificates parses the body of a TLS 1.3 Certificate.
func (s *State) parseCertificates(body []byte) error {
	r := wire.Reader{Rest: body}
	context, list := r.Vector(1), r.List(3)
	if !r.Done() || len(context) != 0 {
		return protocolError("the server's Certificate is malformed")
	}
	for len(list.Rest) > 0 {
		certificate := list.Vector(3)
		extensions, err := hello.ReadExtensions(&list)
		if err != nil {
			return protocolError("the server's Certificate has %v", err)
		}
		for _, e := range extensions {
			x := wire.Reader{Rest: e.Data}
			if e.Type == extStatus && x.Uint8() == 1 && len(s.Certificates) == 0 {
				if s.Staple = x.Vector(3); !x.Done() {
					return protocolError("the server's OCSP response is malformed")
				}
			}
			if e.Type == extSCT && len(s.Certificates) == 0 {
				s.SCTs = e.Data
			}
		}
		s.Certificates = append(s.Certificates, certificate)
	}
	return nil
}

// parseCompressed parses the body of CompressedCertificate (RFC 8879).
func (s *State) parseCompressed(body []byte, offered []uint16) error {
	r := wire.Reader{Rest: body}
	algorithm, size, data := r.Uint16(), r.Number(3), r.Vector(3)
	if !r.Done() || !slices.Contains(offered, algorithm) {
		return protocolError("the server's CompressedCertificate is malformed, or wasn't offered")
	}
	if s.Compressed = algorithm; algorithm != 1 {
		return nil // the certificates stay unknown, and so does the signature
	}
	if size > maxQuiet {
		return protocolError("the server's certificates have %d bytes", size)
	}
	z, err := zlib.NewReader(bytes.NewReader(data))
	if err != nil {
		return protocolError("the server's compressed certificates: %v", err)
	}
	plain, err := io.ReadAll(io.LimitReader(z, int64(size)+1))
	if err != nil || len(plain) != size {
		return protocolError("the server's certificates have another size than it says: %v", err)
	}
	return s.parseCertificates(plain)
}
