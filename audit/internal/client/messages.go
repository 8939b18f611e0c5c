package client

import (
	"bytes"
	"compress/zlib"
	"crypto/sha256"
	"io"
	"slices"

	"github.com/ossl-go/ossl/audit/internal/hello"
)

// parseExtensions reads a list of extensions. last says that nothing follows.
func parseExtensions(r *reader, last bool) ([]hello.Extension, error) {
	list := newReader(r.vector(2))
	if !r.ok || last && !r.end() {
		return nil, protocolError("a list of extensions is malformed")
	}
	var out []hello.Extension
	for len(list.b) > 0 {
		e := hello.Extension{Type: uint16(list.uint(2)), Data: list.vector(2)}
		if !list.ok || slices.ContainsFunc(out, func(o hello.Extension) bool { return o.Type == e.Type }) {
			return nil, protocolError("a list of extensions is malformed")
		}
		if out = append(out, e); len(out) > 64 {
			return nil, protocolError("the server sent more than 64 extensions")
		}
	}
	return out, nil
}

// helloRetryRandom is the random of a HelloRetryRequest (RFC 8446, section 4.1.3).
var helloRetryRandom = sha256.Sum256([]byte("HelloRetryRequest"))

// parseServerHello parses a ServerHello or HelloRetryRequest with its header.
func parseServerHello(message []byte) (*hello.ServerHello, error) {
	r := newReader(message[4:])
	h := &hello.ServerHello{LegacyVersion: uint16(r.uint(2)), Random: r.bytes(32), SessionID: r.vector(1),
		Suite: uint16(r.uint(2)), Compression: byte(r.uint(1)), PSK: -1}
	h.Version, h.Retry = h.LegacyVersion, bytes.Equal(h.Random, helloRetryRandom[:])
	if r.ok && len(r.b) > 0 {
		var err error
		if h.Extensions, err = parseExtensions(r, true); err != nil {
			return nil, err
		}
	}
	for _, e := range h.Extensions {
		x := newReader(e.Data)
		switch e.Type {
		case 43: // supported_versions
			h.Version = uint16(x.uint(2))
		case 51: // key_share
			h.Group = uint16(x.uint(2))
			if !h.Retry {
				h.KeyShare = x.vector(2)
			}
		case 44: // cookie
			if h.Cookie = x.vector(2); len(h.Cookie) == 0 {
				x.ok = false
			}
		case 41: // pre_shared_key
			h.PSK = x.uint(2)
		default:
			continue
		}
		if !x.end() {
			return nil, protocolError("extension %d of the ServerHello is malformed", e.Type)
		}
	}
	if !r.end() {
		return nil, protocolError("the ServerHello is malformed")
	}
	return h, nil
}

// parseCertificates parses the body of TLS 1.3's Certificate.
func (s *State) parseCertificates(body []byte) error {
	r := newReader(body)
	context, list := r.vector(1), newReader(r.vector(3))
	if !r.end() || len(context) != 0 {
		return protocolError("the server's Certificate is malformed")
	}
	for len(list.b) > 0 {
		certificate := list.vector(3)
		extensions, err := parseExtensions(list, false)
		if err != nil {
			return err
		}
		for _, e := range extensions {
			x := newReader(e.Data)
			if e.Type == extStatus && x.uint(1) == 1 && len(s.Certificates) == 0 {
				if s.Staple = x.vector(3); !x.end() {
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
	r := newReader(body)
	algorithm, size, data := uint16(r.uint(2)), r.uint(3), r.vector(3)
	if !r.end() || !slices.Contains(offered, algorithm) {
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
