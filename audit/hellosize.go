package audit

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/ossl-go/ossl/audit/internal/client"
	"github.com/ossl-go/ossl/audit/internal/hello"
)

// largeHello is the length of the audit's first ClientHello. It needs two TCP segments, as a
// browser's ClientHello does because of its post-quantum key share. Some servers, load balancers
// and firewalls expect a hello in one segment.
const largeHello = 1600

// smallHello is a ClientHello that all servers answer which have TLS 1.2 or 1.3. It has no key share.
func (p *protocols) smallHello() *hello.ClientHello {
	h := client.Default(p.run.options.ServerName, hello.TLS13, hello.TLS12)
	h.ServerName, h.SessionID, h.KeyShares = p.run.serverName(), make([]byte, 32), []hello.KeyShare{}
	return h
}

// size finds out whether the first hello was lost because of its length: the small hello is sent with
// padding and without.
func (p *protocols) size() {
	f := &p.run.facts.Protocols.LargeHello
	f.Bytes = largeHello
	switch {
	case p.large == nil && p.run.answered:
		f.State, f.Answered = Tested, true
		return
	case p.good == nil:
		f.Outcome = Outcome{Failed, "the server answered no hello"}
		return
	}
	h := p.smallHello()
	small, err := h.Marshal()
	var reply *hello.Reply
	if err == nil {
		reply, err = p.run.exchangeRaw(p.ctx, p.run.address, small, hello.AtServerHello)
	}
	if err == nil && reply.ServerHello == nil {
		err = errors.New("the server refused the small hello")
	}
	if err != nil {
		f.Outcome = failed(err)
		return
	}
	h.Pad = largeHello
	padded, err := h.Marshal()
	if err == nil {
		_, err = p.run.exchangeOnce(p.ctx, p.run.address, padded, hello.AtServerHello)
	}
	f.State = Tested
	switch {
	case err == nil, errors.As(err, new(*hello.SyntaxError)):
		f.Answered = true
	case finalError(err), p.ctx.Err() != nil:
		f.Outcome = failed(err)
	default:
		f.Small, p.run.small = len(small), true
	}
}

// clientHandshake13 makes a TLS 1.3 handshake on a connection, with small key shares if it must.
func (r *run) clientHandshake13(conn net.Conn, config *client.Config) (*client.Conn, error) {
	if r.small && config.Shares == nil {
		config = new(*config)
		config.Shares = []uint16{client.X25519}
	}
	return client.Handshake13(conn, config)
}

// anyServer is a configuration for connections on which nothing secret is sent, to servers of any
// quality: other probes judge their certificates and suites.
func (r *run) anyServer() *tls.Config {
	config := &tls.Config{ServerName: r.serverName(), InsecureSkipVerify: true, MinVersion: tls.VersionTLS10,
		NextProtos: []string{"http/1.1"}}
	for _, suite := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		config.CipherSuites = append(config.CipherSuites, suite.ID)
	}
	if r.small {
		config.CurvePreferences = []tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP384}
	}
	return config
}

func checkHelloLarge(j *judgement) ([]Finding, Outcome) {
	f := j.facts.Protocols.LargeHello
	if f.State != Tested || f.Answered {
		return nil, f.Outcome
	}
	return []Finding{{
		Severity: High,
		Evidence: fmt.Sprintf("A hello of %d bytes was answered; with padding, of %d bytes, it was not, nor was the first hello, "+
			"of the same size, at two tries. The audit went on with small hellos.", f.Small, f.Bytes),
		Remedy: "Update the server, or the load balancer or firewall in front of it: it has to read a ClientHello that arrives in " +
			"several segments of TCP.",
	}}, Outcome{State: Tested}
}
