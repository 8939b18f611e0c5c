package dbtls

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
)

// DialNATS connects to a NATS server that sends its INFO before TLS. Servers with handshake_first
// need [Dialer.DialTLS]. For nats.go, make it a [DialFunc], which reports that TLS is there
// already.
//
// The client reads that INFO after the handshake, except for the servers that it lists: INFO is not
// authenticated, so anybody could have added servers to it. The list of later INFOs, which the
// server sends when its cluster changes, is the client's.
func (d *Dialer) DialNATS(ctx context.Context, network, addr string) (net.Conn, error) {
	return d.dial(ctx, network, addr, "NATS", func(_ context.Context, p *prelude) (net.Conn, error) {
		info, err := p.natsInfo()
		if err != nil {
			return nil, err
		}
		return newReplayConn(p.conn, info), nil
	})
}

func (p *prelude) natsInfo() ([]byte, error) {
	p.step = "INFO"
	line, err := p.line()
	if err != nil {
		return nil, err
	}
	return parseInfo(line)
}

// parseInfo returns the INFO for the client, with the end of its line.
func parseInfo(line []byte) ([]byte, error) {
	operation, args, _ := bytes.Cut(line, []byte(" "))
	if !bytes.EqualFold(operation, []byte("INFO")) {
		return nil, fmt.Errorf("the server sent %s, not INFO", quote(line))
	}
	var offer struct {
		Required  bool `json:"tls_required"`
		Available bool `json:"tls_available"`
	}
	var all map[string]json.RawMessage
	for _, into := range []any{&offer, &all} {
		if err := json.Unmarshal(args, into); err != nil {
			return nil, fmt.Errorf("the server's INFO is malformed: %w", err)
		}
	}
	if !offer.Required && !offer.Available {
		return nil, ErrNoTLS
	}
	for key := range all { // clients that use encoding/json take names in any case
		if strings.EqualFold(key, "connect_urls") || strings.EqualFold(key, "ws_connect_urls") {
			delete(all, key)
		}
	}
	info, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	return append(append([]byte("INFO "), info...), "\r\n"...), nil
}
