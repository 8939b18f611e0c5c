//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// The programs of clients, besides the one in C.
const (
	clientC = "client"
	wrk     = "wrk"
	h2load  = "h2load"
)

const (
	keptClients  = 32 // over kept connections
	largeClients = 4
	streams      = 10 // HTTP/2 streams at a time on a connection
)

// opensslConf leaves servers no choice in handshakes with wrk, which has no options for that.
const opensslConf = `openssl_conf = init
[init]
ssl_conf = configurations
[configurations]
system_default = defaults
[defaults]
MinProtocol = TLSv1.3
Ciphersuites = ` + suite13 + `
Groups = ` + group + `
`

// wrkScript prints exact counts, which wrk rounds.
const wrkScript = `done = function(summary, latency, requests)
  local e = summary.errors
  io.write(string.format("turn %d %d %d %d\n", summary.requests, summary.bytes, summary.duration,
    e.connect + e.read + e.write + e.status + e.timeout))
end
`

// A sample is the result of one turn.
type sample struct {
	work  float64 // requests, or bytes
	took  time.Duration
	spent time.Duration // processor time of the server
}

// rate is the work in a second.
func (s sample) rate() float64 { return s.work / s.took.Seconds() }

// each is the processor time for a unit of work, in nanoseconds.
func (s sample) each() float64 { return float64(s.spent) / s.work }

// take does a turn.
func (r *runner) take(ctx context.Context, t turn) (s sample, err error) {
	server := r.servers[t.row.server(t.stack)]
	var before time.Duration
	ready := func() (err error) {
		before, err = server.used()
		return err
	}
	if t.row.demand == fresh {
		s, err = r.visit(ctx, t.row, server, ready)
	} else {
		if t.row.demand == kept2 && r.numbers[t] == 0 { // a turn that only shows the rate
			if _, err := r.request(ctx, t, server); err != nil {
				return s, err
			}
		}
		if err = ready(); err == nil {
			s, err = r.request(ctx, t, server)
		}
	}
	if err := errors.Join(err, server.ended()); err != nil {
		return s, err
	}
	after, err := server.used()
	s.spent = after - before
	return s, err
}

// request makes requests over kept connections.
func (r *runner) request(ctx context.Context, t turn, server *server) (sample, error) {
	ctx, cancel := context.WithTimeout(ctx, r.turn+patience)
	defer cancel()
	url := "https://127.0.0.1:" + server.port + "/"
	switch t.row.demand {
	case kept2:
		return r.h2load(ctx, t, url)
	case large:
		s, bytes, err := r.wrk(ctx, largeClients, url+"large.bin")
		s.work = float64(bytes)
		return s, err
	}
	s, _, err := r.wrk(ctx, keptClients, url)
	return s, err
}

// wrk makes HTTP/1.1 requests. Its turns are of whole seconds.
func (r *runner) wrk(ctx context.Context, connections int, url string) (s sample, bytes int64, err error) {
	seconds := max(1, int(r.turn.Round(time.Second)/time.Second))
	out, err := r.run(ctx, wrk, "-t", "1", "-c", strconv.Itoa(connections), "-d", strconv.Itoa(seconds)+"s", "--timeout", "30s",
		"-s", r.file("wrk.lua"), url)
	if err != nil {
		return s, 0, err
	}
	return parseWrk(out)
}

// h2load makes HTTP/2 requests: as many as fill a turn at the rate of the one before. (With a time
// instead of a number h2load 1.52 sometimes doesn't finish.)
func (r *runner) h2load(ctx context.Context, t turn, url string) (sample, error) {
	n := r.numbers[t]
	if n == 0 {
		n = 4 * keptClients * streams
	}
	out, err := r.run(ctx, h2load, "-n", strconv.Itoa(n), "-c", strconv.Itoa(keptClients), "-t", "1", "-m", strconv.Itoa(streams),
		"--tls13-ciphers="+suite13, "--groups="+group, url)
	if err != nil {
		return sample{}, err
	}
	s, err := parseH2load(out)
	if err == nil {
		r.numbers[t] = max(keptClients*streams, int(s.rate()*r.turn.Seconds()))
	}
	return s, err
}

func (r *runner) run(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, r.programs[name], args...)
	cmd.Env = append(os.Environ(), "OPENSSL_CONF="+r.file("openssl.cnf"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return string(out), nil
}

var wrkLine = regexp.MustCompile(`(?m)^turn (\d+) (\d+) (\d+) (\d+)$`)

func parseWrk(out string) (s sample, bytes int64, err error) {
	fields := wrkLine.FindStringSubmatch(out)
	if fields == nil {
		return s, 0, fmt.Errorf("wrk says %q", out)
	}
	var n [4]int64
	for i := range n {
		if n[i], err = strconv.ParseInt(fields[i+1], 10, 64); err != nil {
			return s, 0, err
		}
	}
	s.work, s.took = float64(n[0]), time.Duration(n[2])*time.Microsecond
	switch {
	case n[3] > 0:
		return s, 0, fmt.Errorf("%d requests of wrk have failed: %s", n[3], out)
	case s.work == 0 || s.took == 0:
		return s, 0, fmt.Errorf("wrk has made no request: %s", out)
	}
	return s, n[1], nil
}

var (
	h2loadCounts = regexp.MustCompile(`(\d+) succeeded, 0 failed, 0 errored, 0 timeout`)
	h2loadRate   = regexp.MustCompile(`(?m)^finished in .*, ([0-9.]+) req/s`)
)

// parseH2load takes the time from the rate, since h2load rounds the time itself.
func parseH2load(out string) (s sample, err error) {
	counts, rate := h2loadCounts.FindStringSubmatch(out), h2loadRate.FindStringSubmatch(out)
	if counts == nil || rate == nil || !regexp.MustCompile(`(?m)^Cipher: `+suite13+`$`).MatchString(out) {
		return s, fmt.Errorf("h2load says %s", out)
	}
	if s.work, err = strconv.ParseFloat(counts[1], 64); err != nil {
		return s, err
	}
	perSecond, err := strconv.ParseFloat(rate[1], 64)
	if err == nil && (perSecond == 0 || s.work == 0) {
		err = fmt.Errorf("h2load has made no request: %s", out)
	}
	s.took = time.Duration(s.work / perSecond * float64(time.Second))
	return s, err
}

// signalingSuite is TLS_EMPTY_RENEGOTIATION_INFO_SCSV, which is no suite (RFC 5746, section 3.3).
const signalingSuite = 0x00ff

// checkOffer checks that wrk offers what opensslConf sets: otherwise servers would choose suites and
// groups by themselves, each another one.
func (r *runner) checkOffer(ctx context.Context) error {
	certificate, err := tls.LoadX509KeyPair(r.file("P256.pem"), r.file("P256.key"))
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	offers := make(chan *tls.ClientHelloInfo, 1)
	config := &tls.Config{Certificates: []tls.Certificate{certificate}}
	config.GetConfigForClient = func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		select {
		case offers <- h:
		default:
		}
		return nil, nil
	}
	server := &http.Server{Handler: http.NotFoundHandler(), TLSConfig: config, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = server.ServeTLS(listener, "", "") }()
	defer server.Close()
	if _, err := r.run(ctx, wrk, "-t", "1", "-c", "1", "-d", "1s", "https://"+listener.Addr().String()+"/"); err != nil {
		return err
	}
	select {
	case offer := <-offers:
		others := slices.DeleteFunc(offer.CipherSuites, func(id uint16) bool {
			return id == tls.TLS_AES_128_GCM_SHA256 || id == signalingSuite
		})
		if len(others) > 0 || !slices.Equal(offer.SupportedVersions, []uint16{tls.VersionTLS13}) ||
			!slices.Equal(offer.SupportedCurves, []tls.CurveID{tls.X25519}) {
			return fmt.Errorf("wrk offers %v, %v, %v", offer.SupportedVersions, offer.CipherSuites, offer.SupportedCurves)
		}
		return nil
	default:
		return errors.New("wrk has sent no ClientHello")
	}
}
