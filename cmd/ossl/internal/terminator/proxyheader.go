package terminator

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/pires/go-proxyproto"
)

// maxProxyHeader bounds the bytes after the fixed part of a PROXY header of version 2: 36 for
// addresses of IPv6, and further fields.
const maxProxyHeader = 4096

var errProxyHeader = errors.New("the PROXY header is too long")

// readProxyHeader reads the PROXY header of a connection, and not a byte more, and returns the
// client's address that it names. Headers of a proxy's own connections (LOCAL, UNKNOWN) name none:
// the result is peer then.
func readProxyHeader(conn net.Conn, peer netip.AddrPort, timeout Time) (netip.AddrPort, error) {
	if err := conn.SetReadDeadline(timeout.in()); err != nil {
		return peer, err
	}
	client, err := parseProxyHeader(conn, peer)
	if err != nil {
		return peer, err
	}
	return client, conn.SetReadDeadline(time.Time{})
}

// parseProxyHeader reads a header from r.
func parseProxyHeader(r io.Reader, peer netip.AddrPort) (netip.AddrPort, error) {
	text, err := cutProxyHeader(r)
	if err != nil {
		return peer, err
	}
	header, err := proxyproto.Read(bufio.NewReader(bytes.NewReader(text)))
	if err != nil {
		return peer, err
	}
	if source, _, ok := header.TCPAddrs(); ok && !header.Command.IsLocal() {
		if client := addrPortOf(source); client.IsValid() {
			return client, nil
		}
	}
	return peer, nil
}

// cutProxyHeader reads the bytes of a header, and none after it: they stay in the socket, since a
// connection that has some in a buffer couldn't have its records sealed by the kernel.
func cutProxyHeader(r io.Reader) ([]byte, error) {
	const (
		signature = "\r\n\r\n\x00\r\nQUIT\n"   // of version 2
		shortest  = len("PROXY UNKNOWN\r\n")   // of version 1
		longest   = 107                        // of version 1, section 2.1 of the specification
		fixed     = len(signature) + 1 + 1 + 2 // version 2: version and command, family, length
	)
	text := make([]byte, shortest, 128)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, err
	}
	if bytes.HasPrefix(text, []byte(signature)) {
		text = text[:fixed]
		if _, err := io.ReadFull(r, text[shortest:]); err != nil {
			return nil, err
		}
		rest := int(binary.BigEndian.Uint16(text[fixed-2:]))
		if rest > maxProxyHeader {
			return nil, errProxyHeader
		}
		text = append(text, make([]byte, rest)...)
		_, err := io.ReadFull(r, text[fixed:])
		return text, err
	}
	for !bytes.HasSuffix(text, []byte("\n")) {
		if len(text) == longest {
			return nil, errProxyHeader
		}
		text = append(text, 0)
		if _, err := io.ReadFull(r, text[len(text)-1:]); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// writeProxyHeader writes a header with the client's address and the address that it has connected
// to.
func writeProxyHeader(w io.Writer, version string, client netip.AddrPort, local net.Addr) error {
	v := byte(1)
	if version == "v2" {
		v = 2
	}
	header := &proxyproto.Header{Version: v, Command: proxyproto.LOCAL}
	to := addrPortOf(local)
	if client.IsValid() && to.IsValid() {
		if client.Addr().Is4() != to.Addr().Is4() { // a header has addresses of one family
			client, to = mapped(client), mapped(to)
		}
		header = proxyproto.HeaderProxyFromAddrs(v, net.TCPAddrFromAddrPort(client), net.TCPAddrFromAddrPort(to))
	} else if v == 1 {
		header.Command = proxyproto.PROXY // version 1 has no command; the family UNKNOWN means the same
	}
	_, err := header.WriteTo(w)
	return err
}

// mapped returns an address in the form of IPv6.
func mapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom16(a.Addr().As16()), a.Port())
}
