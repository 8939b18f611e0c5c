package audit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	"github.com/ossl-go/ossl/audit/internal/client"
	"github.com/ossl-go/ossl/audit/internal/hello"
)

const (
	fallbackSCSV          = 0x5600
	alertFallback   uint8 = 86
	alertNoProtocol uint8 = 120

	extExtendedMaster = 23
	extEncryptThenMAC = 22
	extRenegotiation  = 0xff01
)

// cbcSuites are the suites with which a server can encrypt before it authenticates.
var cbcSuites = []uint16{0xc009, 0xc013, 0xc00a, 0xc014, 0xc023, 0xc027, 0xc024, 0xc028, 0x002f, 0x0035, 0x003c, 0x003d,
	0x0033, 0x0039, 0x0067, 0x006b}

// probeOptions looks at extensions and settings.
func probeOptions(ctx context.Context, r *run) error {
	o := &r.facts.Options
	version := r.latestOld()
	if version != 0 {
		r.probeHello12(ctx, version)
		r.probeEncryptThenMAC(ctx, version)
		r.probeRenegotiation(ctx)
	} else {
		for _, s := range []*Switch{&o.ExtendedMaster, &o.EncryptThenMAC, &o.SecureRenegotiation, &o.Compression,
			&o.ClientRenegotiation} {
			s.Outcome = Outcome{NotTested, "the server has no version before TLS 1.3"}
		}
	}
	r.probeFallback(ctx)
	r.probeALPN(ctx, version)
	r.probeCompression13(ctx)
	return ctx.Err()
}

// latestOld returns the latest version before TLS 1.3 that the server offers or may offer, or 0.
func (r *run) latestOld() uint16 {
	for version := hello.TLS12; version >= hello.SSL3; version-- {
		if known, offered := r.offers(hello.VersionName(version)); offered || !known {
			return version
		}
	}
	return 0
}

// offers reports whether the server offers a version, if that is known.
func (r *run) offers(version string) (known, offered bool) {
	v, ok := r.facts.Protocols.Versions[version]
	return ok && v.State == Tested, v.Offered
}

// outcome12 returns the outcome of a ClientHello without TLS 1.3, and whether a ServerHello answers it.
func outcome12(reply *hello.Reply, err error) (Outcome, bool) {
	switch {
	case err != nil:
		return failed(err), false
	case reply.ServerHello == nil && reply.Alert != nil:
		return Outcome{NotTested, "the server refused the ClientHello: " + reply.Alert.String()}, false
	case reply.ServerHello == nil:
		return Outcome{Failed, "the server answered the ClientHello without a ServerHello"}, false
	case reply.ServerHello.Version > hello.TLS12:
		return Outcome{NotTested, "the server chose " + hello.VersionName(reply.ServerHello.Version)}, false
	}
	return Outcome{State: Tested}, true
}

// probeHello12 learns everything that the answer to one ClientHello can show.
func (r *run) probeHello12(ctx context.Context, version uint16) {
	o := &r.facts.Options
	h := r.oldHello(version, offered12, groups12)
	h.Compressions = []byte{1, 0}
	reply, err := r.exchange(ctx, h, hello.AtServerHello)
	outcome, ok := outcome12(reply, err)
	o.ExtendedMaster.Outcome, o.SecureRenegotiation.Outcome, o.Compression.Outcome = outcome, outcome, outcome
	if ok {
		_, o.ExtendedMaster.On = reply.ServerHello.Extension(extExtendedMaster)
		_, o.SecureRenegotiation.On = reply.ServerHello.Extension(extRenegotiation)
		o.Compression.On = reply.ServerHello.Compression != 0
		if reply.ServerHello.Version == hello.SSL3 {
			o.ExtendedMaster.Outcome = Outcome{NotTested, "SSL 3 has no extended master secret"}
		}
	}
}

// probeEncryptThenMAC offers suites with CBC only: a server answers the extension for no others.
func (r *run) probeEncryptThenMAC(ctx context.Context, version uint16) {
	s := &r.facts.Options.EncryptThenMAC
	h := r.oldHello(version, cbcSuites, groups12)
	h.EncryptThenMAC = true
	reply, err := r.exchange(ctx, h, hello.AtServerHello)
	if reply != nil && err == nil && reply.Alert != nil && reply.ServerHello == nil {
		s.Outcome = Outcome{NotTested, "the server has no cipher suite with CBC"}
		return
	}
	var ok bool
	if s.Outcome, ok = outcome12(reply, err); ok {
		_, s.On = reply.ServerHello.Extension(extEncryptThenMAC)
	}
}

// probeRenegotiation asks for a renegotiation after a handshake.
func (r *run) probeRenegotiation(ctx context.Context) {
	s := &r.facts.Options.ClientRenegotiation
	err := r.again(ctx, func() error {
		return r.timed(ctx, func(conn net.Conn, _ float64) error {
			c, err := client.Handshake12(conn, &client.Config{ServerName: r.options.ServerName})
			if err != nil {
				return err
			}
			r.count(func(cost *Cost) { cost.Handshakes++; cost.Signatures++ })
			// A server that ignores the request sends nothing: that is no reason to wait for long.
			wait := max(renegotiationWait, 8*c.State.Times.Flight.Sub(c.State.Times.Sent))
			conn.SetDeadline(time.Now().Add(min(r.options.Timeout, wait)))
			s.On, err = c.Renegotiate()
			if errors.Is(err, os.ErrDeadlineExceeded) || closed(err) {
				err = nil // the server ignores the request, or refuses it without an alert
			}
			return err
		})
	})
	switch {
	case err == nil:
		s.Outcome = Outcome{State: Tested}
	case errors.As(err, new(*client.UnsupportedError)), errors.As(err, new(*client.AlertError)):
		s.Outcome = Outcome{NotTested, "no handshake before TLS 1.3: " + err.Error()}
	default:
		s.Outcome = failed(err)
	}
}

// renegotiationWait is how long a server may take at least to answer a request to renegotiate.
const renegotiationWait = 200 * time.Millisecond

// probeFallback offers the version below the server's best together with the signal that a better
// one is known.
func (r *run) probeFallback(ctx context.Context) {
	s := &r.facts.Options.Fallback
	versions := []uint16{hello.TLS13, hello.TLS12, hello.TLS11, hello.TLS10}
	var offered []uint16
	for _, v := range versions {
		if known, yes := r.offers(hello.VersionName(v)); !known {
			s.Outcome = Outcome{NotTested, "it isn't known whether the server offers " + hello.VersionName(v)}
			return
		} else if yes {
			offered = append(offered, v)
		}
	}
	if len(offered) < 2 {
		s.Outcome = Outcome{NotTested, "the server offers one version"}
		return
	}
	h := r.oldHello(offered[1], append(slices.Clone(offered12), fallbackSCSV), groups12)
	reply, err := r.exchange(ctx, h, hello.AtServerHello)
	switch {
	case err != nil:
		s.Outcome = failed(err)
	case reply.Alert != nil && (reply.Alert.Code == alertFallback || reply.Alert.Silent):
		s.Outcome, s.On = Outcome{State: Tested}, true
	case reply.ServerHello != nil && reply.ServerHello.Version == offered[1]:
		s.Outcome = Outcome{State: Tested}
	case reply.Alert != nil:
		s.Outcome = Outcome{Failed, "the server refused the ClientHello: " + reply.Alert.String()}
	default:
		s.Outcome = Outcome{Failed, "the server chose another version"}
	}
}

// probeALPN finds the protocols that the server chooses, by removal. Up to TLS 1.2 the answer is in
// the ServerHello. The version 0 stands for TLS 1.3 alone, which needs a handshake.
func (r *run) probeALPN(ctx context.Context, version uint16) {
	f := &r.facts.Options.ALPN
	if r.target.Protocol != "https" && r.target.Protocol != "tls" {
		f.Outcome = Outcome{NotTested, "the server doesn't speak HTTP"}
		return
	}
	ask := r.askALPN13
	if version != 0 {
		ask = func(ctx context.Context, protocols []string) (string, error) {
			return r.askALPN12(ctx, version, protocols)
		}
	}
	protocols := []string{"h2", "http/1.1"}
	for len(protocols) > 0 {
		chosen, err := ask(ctx, protocols)
		if r.target.Protocol == "tls" && chosen == "" {
			f.Outcome = Outcome{NotTested, "the server doesn't choose HTTP by ALPN"}
			return
		}
		if err != nil {
			f.Outcome = failed(err)
			return
		}
		r.target.Protocol = "https"
		i := slices.Index(protocols, chosen)
		if i < 0 {
			break
		}
		f.Values = append(f.Values, chosen)
		protocols = slices.Delete(protocols, i, i+1)
	}
	f.Outcome = Outcome{State: Tested}
}

func (r *run) askALPN12(ctx context.Context, version uint16, protocols []string) (string, error) {
	h := r.oldHello(version, offered12, groups12)
	h.ALPN = protocols
	reply, err := r.exchange(ctx, h, hello.AtServerHello)
	switch {
	case err != nil:
		return "", err
	case reply.ServerHello != nil:
		return reply.ServerHello.ALPN, nil
	case reply.Alert != nil && (reply.Alert.Code == alertNoProtocol || reply.Alert.Silent):
		return "", nil
	case reply.Alert != nil:
		return "", fmt.Errorf("the server refused the ClientHello: %s", reply.Alert.String())
	}
	return "", errors.New("the server answered the ClientHello without a ServerHello")
}

func (r *run) askALPN13(ctx context.Context, protocols []string) (chosen string, err error) {
	state, err := r.handshake13(ctx, &client.Config{ServerName: r.options.ServerName, ALPN: protocols})
	var alert *client.AlertError
	if errors.As(err, &alert) && (alert.Code == alertNoProtocol || alert.Silent) {
		return "", nil
	}
	return state.ALPN, err
}

// handshake13 makes a TLS 1.3 handshake.
func (r *run) handshake13(ctx context.Context, config *client.Config) (state client.State, err error) {
	err = r.again(ctx, func() error {
		return r.timed(ctx, func(conn net.Conn, _ float64) error {
			c, err := r.clientHandshake13(conn, config)
			if c != nil {
				state = c.State
			}
			if err != nil {
				return err
			}
			c.CloseWrite()
			r.count(func(cost *Cost) { cost.Handshakes++; cost.Signatures++ })
			return nil
		})
	})
	return state, err
}

// compressions are the algorithms of RFC 8879.
var compressions = map[uint16]string{1: "zlib", 2: "brotli", 3: "zstd"}

// probeCompression13 finds the algorithms with which the server compresses its certificates, by
// removal.
func (r *run) probeCompression13(ctx context.Context) {
	f := &r.facts.Options.CompressCertificate
	if known, offered := r.offers("TLS 1.3"); known && !offered {
		f.Outcome = Outcome{NotTested, "the server has no TLS 1.3"}
		return
	}
	left := []uint16{1, 2, 3}
	for len(left) > 0 {
		h := client.Default(r.options.ServerName)
		h.CompressCertificate = left
		state, err := r.handshake13(ctx, &client.Config{Hello: h})
		var alert *client.AlertError
		if errors.As(err, &alert) && alert.Code == alertVersion {
			f.Outcome = Outcome{NotTested, "the server has no TLS 1.3"}
			return
		}
		if err != nil {
			f.Outcome = failed(err)
			return
		}
		if state.Compressed == 0 {
			break
		}
		f.Values = append(f.Values, compressions[state.Compressed])
		left = slices.DeleteFunc(left, func(a uint16) bool { return a == state.Compressed })
	}
	f.Outcome = Outcome{State: Tested}
}
