package audit

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/ossl-go/ossl/audit/internal/client"
	"github.com/ossl-go/ossl/audit/internal/hello"
)

//go:embed clients.json
var clientsJSON []byte

// A clientHello is a client's ClientHello as it is in clients.json. Values are IANA's names, or
// numbers in hexadecimal, GREASE (RFC 8701) among them. The random number, the session ID, the
// server's name and the key shares are made for each connection.
type clientHello struct {
	Name   string `json:"name"`
	Source string `json:"source"` // where the ClientHello is from
	// Common reports whether a public server should serve the client. Others are old, or small
	// devices. The file has the common ones first.
	Common bool `json:"common,omitempty"`

	RecordVersion       string            `json:"record_version"`
	Version             string            `json:"version"`
	SessionID           int               `json:"session_id,omitempty"` // bytes
	Suites              []string          `json:"suites"`
	Extensions          []string          `json:"extensions,omitempty"` // in their order
	Groups              []string          `json:"groups,omitempty"`
	Points              string            `json:"points,omitempty"` // in hexadecimal
	Signatures          []string          `json:"signatures,omitempty"`
	ALPN                []string          `json:"alpn,omitempty"`
	Versions            []string          `json:"versions,omitempty"`
	Shares              []string          `json:"shares,omitempty"` // groups
	PSKModes            string            `json:"psk_modes,omitempty"`
	CompressCertificate []string          `json:"compress_certificate,omitempty"`
	Pad                 int               `json:"pad,omitempty"`  // the message's length with the padding extension
	Data                map[string]string `json:"data,omitempty"` // of other extensions, in hexadecimal
}

// clientHellos are the clients of clients.json.
var clientHellos = sync.OnceValues(func() (all []clientHello, err error) {
	d := json.NewDecoder(strings.NewReader(string(clientsJSON)))
	d.DisallowUnknownFields()
	return all, d.Decode(&all)
})

// hello returns the ClientHello for a server's name.
func (c *clientHello) hello(serverName string) (*hello.ClientHello, error) {
	var problems []error
	list := func(names []string, find func(string) (uint16, bool)) (values []uint16) {
		for _, name := range names {
			v, ok := find(name)
			if !ok {
				problems = append(problems, fmt.Errorf("%s: unknown name %q", c.Name, name))
			}
			values = append(values, v)
		}
		return values
	}
	data := func(s string) []byte {
		b, err := hex.DecodeString(s)
		problems = append(problems, err)
		return b
	}
	version := func(name string) (uint16, bool) {
		if v, ok := hello.Version(name); ok {
			return v, true
		}
		return hello.Suite(name) // a number
	}
	versions := list([]string{c.RecordVersion, c.Version}, version)
	h := &hello.ClientHello{RecordVersion: versions[0], Version: versions[1], Suites: list(c.Suites, hello.Suite),
		Random: make([]byte, 32), SessionID: make([]byte, c.SessionID), Order: list(c.Extensions, hello.ExtensionType)}
	rand.Read(h.Random)
	rand.Read(h.SessionID)
	for i, typ := range h.Order {
		switch name := c.Extensions[i]; name {
		case "server_name":
			h.ServerName = serverName
		case "supported_groups":
			h.Groups = list(c.Groups, hello.Group)
		case "ec_point_formats":
			h.Points = data(c.Points)
		case "signature_algorithms":
			h.Signatures = list(c.Signatures, hello.Scheme)
		case "application_layer_protocol_negotiation":
			h.ALPN = c.ALPN
		case "supported_versions":
			h.Versions = list(c.Versions, version)
		case "psk_key_exchange_modes":
			h.PSKModes = data(c.PSKModes)
		case "compress_certificate":
			h.CompressCertificate = list(c.CompressCertificate, compression)
		case "session_ticket":
			h.Ticket = []byte{}
		case "padding":
			h.Pad = c.Pad
		case "extended_master_secret":
			h.ExtendedMaster = true
		case "encrypt_then_mac":
			h.EncryptThenMAC = true
		case "renegotiation_info":
			h.Renegotiation = true
		case "key_share":
			h.KeyShares = []hello.KeyShare{}
			for _, g := range list(c.Shares, hello.Group) {
				share, err := keyShare(g)
				problems = append(problems, err)
				h.KeyShares = append(h.KeyShares, share)
			}
		default:
			if d, ok := c.Data[name]; ok {
				h.Extra = append(h.Extra, hello.Extension{Type: typ, Data: data(d)})
			} else if name == "status_request" {
				h.StatusRequest = true
			} else if !hello.IsGREASE(typ) {
				problems = append(problems, fmt.Errorf("%s: no data for %s", c.Name, name))
			}
		}
	}
	return h, errors.Join(problems...)
}

// compression returns the number of an algorithm of RFC 8879.
func compression(name string) (uint16, bool) {
	for v, n := range compressions {
		if n == name {
			return v, true
		}
	}
	return 0, false
}

// keyShare makes a key share. That of a GREASE group is a zero byte.
func keyShare(group uint16) (hello.KeyShare, error) {
	if hello.IsGREASE(group) {
		return hello.KeyShare{Group: group, Data: []byte{0}}, nil
	}
	return client.NewShare(group)
}

// gentle is the number of connections of an audit after which no more clients are simulated, unless
// all are asked for.
const gentle = 60

// probeClients sends the hellos of clients.json.
func probeClients(ctx context.Context, r *run) error {
	facts := &r.facts.Clients
	if r.options.NoClients {
		facts.Outcome = Outcome{NotTested, "clients weren't asked for"}
		return nil
	}
	hellos, err := clientHellos()
	if err != nil {
		facts.Outcome = Outcome{Failed, err.Error()}
		return nil
	}
	notAll := Outcome{NotTested, fmt.Sprintf("the audit had made %d connections, and all clients weren't asked for", gentle)}
	full := func() (full bool) {
		r.count(func(c *Cost) { full = c.Connections-c.Retried >= gentle && !r.options.All })
		return full
	}
	if full() {
		facts.Outcome = notAll
		return nil
	}
	facts.Outcome = Outcome{State: Tested}
	for i := range hellos {
		simulated := SimulatedClient{Name: hellos[i].Name, Common: hellos[i].Common, Source: hellos[i].Source}
		if full() {
			simulated.Outcome = notAll
		} else {
			r.simulate(ctx, &hellos[i], &simulated)
		}
		facts.Clients = append(facts.Clients, simulated)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// simulate sends a client's hello, and notes the answer.
func (r *run) simulate(ctx context.Context, c *clientHello, s *SimulatedClient) {
	h, err := c.hello(r.serverName())
	if err != nil {
		s.Outcome = Outcome{Failed, err.Error()}
		return
	}
	if r.target.Protocol != "https" && r.target.Protocol != "tls" {
		h.ALPN = nil // HTTP's, which PostgreSQL 17 refuses
	}
	packet, err := h.Marshal()
	if err != nil {
		s.Outcome = Outcome{Failed, err.Error()}
		return
	}
	if r.small && len(packet) > r.facts.Protocols.LargeHello.Small {
		reply, err := r.exchangeOnce(ctx, r.address, packet, hello.AtDone)
		s.answered(h, reply, err)
		if s.State == Failed && !finalError(err) && ctx.Err() == nil {
			s.Outcome, s.Refused = Outcome{State: Tested}, fmt.Sprintf("no answer to a hello of %d bytes", len(packet))
		}
		return
	}
	reply, err := r.exchangeRaw(ctx, r.address, packet, hello.AtDone)
	s.answered(h, reply, err)
}

// answered notes the answer to a client's hello.
func (s *SimulatedClient) answered(h *hello.ClientHello, reply *hello.Reply, err error) {
	if err == nil && reply.ServerHello != nil {
		err = checkOffered(h, reply)
	}
	switch {
	case errors.Is(err, errBudget):
		s.Outcome = Outcome{NotTested, err.Error()}
	case err != nil:
		s.Outcome = Outcome{Failed, err.Error()}
	case reply.Alert != nil:
		s.Outcome, s.Refused = Outcome{State: Tested}, reply.Alert.String()
	case reply.ServerHello == nil:
		s.Outcome = Outcome{Failed, "the answer is SSL 2"}
	default:
		a := reply.ServerHello
		s.Outcome, s.Retry = Outcome{State: Tested}, a.Retry
		s.Version, s.Suite = hello.VersionName(a.Version), hello.SuiteName(a.Suite)
		group := a.Group
		if reply.KeyExchange != nil {
			group = reply.KeyExchange.Group
		}
		if group != 0 {
			s.Group = hello.GroupName(group)
		}
	}
}
