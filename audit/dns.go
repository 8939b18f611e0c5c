package audit

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	typeCAA  = dnsmessage.Type(257)
	udpSize  = 1232               // bytes that a resolver may answer by UDP
	dnsWait  = time.Second        // for one answer
	dnsAll   = 4 * time.Second    // for all answers
	dnsText  = 500                // bytes of a record that are kept
	dnsCount = 20                 // records that are kept
	dnsFile  = "/etc/resolv.conf" // resolv.conf(5)
)

// errNoResolver is the error if the system's resolvers aren't known.
var errNoResolver = errors.New("the system's resolvers aren't known: there is no " + dnsFile)

// probeDNS asks the system's resolvers for the name's HTTPS and CAA records. The net package has no
// function for them.
func probeDNS(ctx context.Context, r *run) error {
	f := &r.facts.DNS
	name := strings.TrimSuffix(r.options.ServerName, ".")
	_, isIP := r.target.ip()
	reason := ""
	switch {
	case r.options.NoDNS:
		reason = "it wasn't asked for"
	case isIP || r.serverName() == "":
		reason = "the target is an address"
	case !strings.Contains(name, ".") || strings.HasSuffix(name, ".localhost") || strings.HasSuffix(name, ".invalid"):
		reason = "the name is not in the public DNS"
	}
	if reason != "" {
		f.Outcome = Outcome{NotTested, reason}
		f.ECH.Outcome = f.Outcome
		return nil
	}
	wait, cancel := context.WithTimeout(ctx, dnsAll)
	defer cancel()
	err := r.records(wait, f, name)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f.Outcome = Outcome{State: Tested}
	if errors.Is(err, errNoResolver) {
		f.Outcome = Outcome{NotTested, err.Error()}
	} else if err != nil {
		f.Outcome = Outcome{Failed, err.Error()}
	}
	f.ECH.Outcome = f.Outcome
	if r.target.Protocol != "https" {
		f.ECH.Outcome = Outcome{NotTested, "the target is not HTTPS"}
	}
	return nil
}

func (r *run) records(ctx context.Context, f *DNSFacts, name string) error {
	if r.target.Protocol == "https" {
		owner := name
		if r.target.Port != 443 { // RFC 9460, section 9.1
			owner = fmt.Sprintf("_%d._https.%s", r.target.Port, name)
		}
		answers, err := r.lookUp(ctx, owner, dnsmessage.TypeHTTPS)
		if err != nil {
			return fmt.Errorf("HTTPS records: %w", err)
		}
		for _, a := range answers {
			if record, ok := a.Body.(*dnsmessage.HTTPSResource); ok && len(f.HTTPS) < dnsCount {
				_, ech := record.GetParam(dnsmessage.SVCParamECH)
				f.ECH.On = f.ECH.On || ech
				f.HTTPS = append(f.HTTPS, cut(presentHTTPS(record)))
			}
		}
	}
	// The records of the closest parent count, if a name has none: RFC 8659, section 3.
	for parent := name; parent != "" && f.CAA == nil; _, parent, _ = strings.Cut(parent, ".") {
		answers, err := r.lookUp(ctx, parent, typeCAA)
		if err != nil {
			return fmt.Errorf("CAA records: %w", err)
		}
		for _, a := range answers {
			if record, ok := a.Body.(*dnsmessage.UnknownResource); ok && record.Type == typeCAA && len(f.CAA) < dnsCount {
				f.CAA = append(f.CAA, cut(presentCAA(record.Data)))
			}
		}
	}
	return nil
}

func cut(s string) string { return s[:min(len(s), dnsText)] }

// lookUp asks each of the resolvers, until one answers. A name that doesn't exist has no records.
func (r *run) lookUp(ctx context.Context, name string, typ dnsmessage.Type) ([]dnsmessage.Resource, error) {
	servers, err := resolvers()
	if err != nil {
		return nil, err
	}
	for _, server := range servers {
		var answers []dnsmessage.Resource
		if answers, err = r.query(ctx, server, name, typ); err == nil {
			return answers, nil
		}
	}
	return nil, err
}

// resolvers returns the addresses of the system's resolvers.
func resolvers() (servers []string, err error) {
	text, err := os.ReadFile(dnsFile)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoResolver, err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "nameserver" && len(servers) < 3 {
			servers = append(servers, net.JoinHostPort(fields[1], "53"))
		}
	}
	if servers == nil {
		return nil, errNoResolver
	}
	return servers, nil
}

// query asks one resolver, by UDP, and by TCP if the answer is cut off.
func (r *run) query(ctx context.Context, server, name string, typ dnsmessage.Type) ([]dnsmessage.Resource, error) {
	question, err := newQuestion(name, typ)
	if err != nil {
		return nil, err
	}
	for _, network := range []string{"udp", "tcp"} {
		message, err := r.ask(ctx, network, server, question)
		if err != nil {
			return nil, err
		}
		answers, truncated, err := parseAnswer(message, question)
		if err != nil || !truncated {
			return answers, err
		}
	}
	return nil, errors.New("the resolver's answer by TCP is cut off")
}

func newQuestion(name string, typ dnsmessage.Type) (*dnsmessage.Message, error) {
	owner, err := dnsmessage.NewName(name + ".")
	if err != nil {
		return nil, err
	}
	var header dnsmessage.ResourceHeader
	if err := header.SetEDNS0(udpSize, dnsmessage.RCodeSuccess, false); err != nil {
		return nil, err
	}
	return &dnsmessage.Message{
		Header:      dnsmessage.Header{ID: uint16(rand.Uint32()), RecursionDesired: true},
		Questions:   []dnsmessage.Question{{Name: owner, Type: typ, Class: dnsmessage.ClassINET}},
		Additionals: []dnsmessage.Resource{{Header: header, Body: &dnsmessage.OPTResource{}}},
	}, nil
}

// ask sends a question, and returns the first message that may be its answer.
func (r *run) ask(ctx context.Context, network, server string, question *dnsmessage.Message) ([]byte, error) {
	packet, err := question.Pack()
	if err != nil {
		return nil, err
	}
	dial := new(net.Dialer).DialContext
	if r.options.Resolver != nil && r.options.Resolver.Dial != nil {
		dial = r.options.Resolver.Dial
	}
	ctx, cancel := context.WithTimeout(ctx, dnsWait)
	defer cancel()
	conn, err := dial(ctx, network, server)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Now()) })()
	if network == "tcp" {
		packet = append(binary.BigEndian.AppendUint16(nil, uint16(len(packet))), packet...)
	}
	if _, err := conn.Write(packet); err != nil {
		return nil, err
	}
	if network == "tcp" {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return nil, err
		}
		message := make([]byte, binary.BigEndian.Uint16(size[:]))
		_, err := io.ReadFull(conn, message)
		return message, err
	}
	buffer := make([]byte, 65535)
	for { // others' packets are skipped, until the deadline
		n, err := conn.Read(buffer)
		if err != nil {
			return nil, err
		}
		if n >= 2 && binary.BigEndian.Uint16(buffer) == question.ID {
			return buffer[:n], nil
		}
	}
}

// parseAnswer returns the records of an answer, and whether it is cut off.
func parseAnswer(message []byte, question *dnsmessage.Message) (answers []dnsmessage.Resource, truncated bool, err error) {
	var p dnsmessage.Parser
	header, err := p.Start(message)
	if err != nil {
		return nil, false, err
	}
	asked, err := p.AllQuestions()
	if err != nil {
		return nil, false, err
	}
	want := question.Questions[0]
	if !header.Response || header.ID != question.ID || len(asked) != 1 || asked[0].Type != want.Type ||
		!strings.EqualFold(asked[0].Name.String(), want.Name.String()) {
		return nil, false, errors.New("the resolver answered another question")
	}
	switch {
	case header.Truncated:
		return nil, true, nil
	case header.RCode == dnsmessage.RCodeNameError:
		return nil, false, nil
	case header.RCode != dnsmessage.RCodeSuccess:
		return nil, false, fmt.Errorf("the resolver answered %s", strings.TrimPrefix(header.RCode.String(), "RCode"))
	}
	answers, err = p.AllAnswers()
	return answers, false, err
}

// presentHTTPS returns a record in a short presentation format: RFC 9460, section 2.1.
func presentHTTPS(record *dnsmessage.HTTPSResource) string {
	names := map[dnsmessage.SVCParamKey]string{0: "mandatory", 1: "alpn", 2: "no-default-alpn", 3: "port", 4: "ipv4hint", 5: "ech",
		6: "ipv6hint", 7: "dohpath", 8: "ohttp", 9: "tls-supported-groups"}
	text := fmt.Sprintf("%d %s", record.Priority, record.Target)
	for _, p := range record.Params {
		name := names[p.Key]
		if name == "" {
			name = fmt.Sprintf("key%d", p.Key)
		}
		text += " " + name
		switch {
		case p.Key == dnsmessage.SVCParamALPN:
			text += "=" + presentALPN(p.Value)
		case p.Key == dnsmessage.SVCParamECH:
			text += fmt.Sprintf("=(%d bytes)", len(p.Value))
		case len(p.Value) > 0:
			text += fmt.Sprintf("=%x", p.Value)
		}
	}
	return text
}

func presentALPN(list []byte) string {
	var protocols []string
	for len(list) > 0 {
		n := int(list[0])
		if n > len(list)-1 {
			return "(malformed)"
		}
		protocols = append(protocols, strings.Trim(fmt.Sprintf("%q", list[1:1+n]), `"`))
		list = list[1+n:]
	}
	return strings.Join(protocols, ",")
}

// presentCAA returns a record in presentation format: RFC 8659, section 4.1.
func presentCAA(data []byte) string {
	const header = 2 // flags, and the tag's length
	if len(data) < header || int(data[1]) > len(data)-header {
		return "(malformed)"
	}
	length := int(data[1])
	tag, value := data[header:header+length], data[header+length:]
	return fmt.Sprintf("%d %s %q", data[0], strings.Trim(fmt.Sprintf("%q", tag), `"`), value)
}
