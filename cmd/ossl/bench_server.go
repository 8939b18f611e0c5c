package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ossl-go/ossl"
)

// A serverRequest measures the handshakes of a server.
type serverRequest struct {
	mine        bool
	rate        float64
	connections int
	insecure    bool
	name        string
	roots       string // the file of the authorities, or "" for the system's

	set *pflag.FlagSet
}

// The limits of a measurement of a server, so that a slip of the finger is no attack.
const (
	minRate        = 0.01
	maxRate        = 1000
	maxConnections = 10_000
)

func (r *serverRequest) flags(flags *pflag.FlagSet) {
	r.set = flags
	flags.BoolVar(&r.mine, "yes-this-is-mine", false, "of a server: I may load it")
	flags.Float64Var(&r.rate, "rate", 50, fmt.Sprintf("of a server: connections a second, at most %d", maxRate))
	flags.IntVar(&r.connections, "connections", 200,
		fmt.Sprintf("of a server: connections of each kind, at most %d", maxConnections))
	flags.BoolVar(&r.insecure, "insecure", false, "of a server: don't verify its certificate")
	flags.StringVar(&r.roots, "roots", "", "of a server: trust the certificates in this `file`, in PEM, instead of the system's")
	flags.StringVar(&r.name, "server-name", "", "of a server: ask for `name`, and verify the certificate for it")
}

// unused returns an error if a flag of this measurement is given to another one.
func (r *serverRequest) unused() error {
	for _, name := range []string{"yes-this-is-mine", "rate", "connections", "insecure", "roots", "server-name"} {
		if r.set.Changed(name) {
			return usageError(fmt.Sprintf("--%s is for the measurement of a server: name one, such as example.org:443", name))
		}
	}
	return nil
}

func (r *serverRequest) check(format string) error {
	for _, name := range []string{"duration", "rounds", "against", "pairings", "html", "no-color"} {
		if r.set.Changed(name) {
			return usageError(fmt.Sprintf("--%s is not for the measurement of a server", name))
		}
	}
	switch {
	case !r.mine:
		return usageError("this loads a server that other people may need. If it is yours, say --yes-this-is-mine")
	case !(r.rate >= minRate && r.rate <= maxRate):
		return usageError(fmt.Sprintf("--rate is %v, but must be between %v and %d", r.rate, minRate, maxRate))
	case r.connections < 1 || r.connections > maxConnections:
		return usageError(fmt.Sprintf("--connections is %d, but must be between 1 and %d", r.connections, maxConnections))
	case format != "text" && format != "json":
		return usageError(fmt.Sprintf("--format %q is not text or json", format))
	case r.insecure && r.roots != "":
		return usageError("--insecure verifies nothing, so --roots would have no effect")
	}
	return nil
}

// A serverResult is the result, as --format json writes it.
type serverResult struct {
	Server  string       `json:"server"`
	Version string       `json:"version"`
	Suite   string       `json:"cipher_suite"`
	Group   string       `json:"group"`
	Kinds   []serverKind `json:"kinds"`
}

// A serverKind has the figures of full or of resumed handshakes.
type serverKind struct {
	Kind      string  `json:"kind"` // "full" or "resumed"
	Count     int     `json:"count"`
	Failed    int     `json:"failed"`
	Refused   int     `json:"not_resumed"` // of resumed: the server has made a full handshake
	PerSecond float64 `json:"per_second"`
	// The times of the handshakes alone, without connecting, in nanoseconds.
	Median   time.Duration `json:"median_ns"`
	P90      time.Duration `json:"p90_ns"`
	P99      time.Duration `json:"p99_ns"`
	Connect  time.Duration `json:"connect_median_ns"`
	FirstErr string        `json:"first_error,omitempty"`
}

func (r *serverRequest) run(cmd *cobra.Command, addr, format string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return usageError(fmt.Sprintf("%q is neither a section nor an address such as example.org:443", addr))
	}
	if err := r.check(format); err != nil {
		return err
	}
	config := &tls.Config{ServerName: r.name, InsecureSkipVerify: r.insecure}
	if r.name == "" {
		config.ServerName = host
	}
	if r.roots != "" {
		if config.RootCAs, err = readRoots(cmd.Context(), r.roots); err != nil {
			return err
		}
	}
	result := &serverResult{Server: addr}
	p := newProgress(cmd.ErrOrStderr())
	p.start(2, 1)
	err = r.measureBoth(cmd.Context(), config, result, p)
	p.stop() // before the result is written: it erases a line of the terminal
	if err != nil {
		return err
	}
	if format == "json" {
		e := json.NewEncoder(cmd.OutOrStdout())
		e.SetIndent("", "  ")
		return e.Encode(result)
	}
	writeServer(cmd, result)
	return nil
}

// measureBoth measures full and resumed handshakes.
func (r *serverRequest) measureBoth(ctx context.Context, config *tls.Config, result *serverResult, p progress) error {
	full, err := ossl.NewContext(config)
	if err != nil {
		return err
	}
	sessions := &lastSession{}
	config = config.Clone()
	config.ClientSessionCache = sessions
	resuming, err := ossl.NewContext(config)
	if err != nil {
		return err
	}
	p.step(0, "full handshakes")
	kind, last, err := r.measure(ctx, "full", full, result.Server, nil)
	if err != nil {
		return err
	}
	result.Kinds = append(result.Kinds, kind)
	result.Version, result.Suite = tls.VersionName(last.version), tls.CipherSuiteName(last.suite)
	if last.group != 0 {
		result.Group = last.group.String()
	}
	p.step(1, "resumed handshakes")
	if kind, _, err = r.measure(ctx, "resumed", resuming, result.Server, sessions); err != nil {
		return err
	}
	result.Kinds = append(result.Kinds, kind)
	return nil
}

func writeServer(cmd *cobra.Command, result *serverResult) {
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "%s: %s, %s, %s\n\n", result.Server, result.Version, result.Suite, result.Group)
	const columns = "%-10s %8v %8v %12v %12v %12v %12v %12v\n"
	fmt.Fprintf(out, columns, "handshakes", "number", "failed", "a second", "median", "90 %", "99 %", "connecting")
	for _, k := range result.Kinds {
		fmt.Fprintf(out, columns, k.Kind, k.Count, k.Failed, fmt.Sprintf("%.1f", k.PerSecond), rounded(k.Median), rounded(k.P90),
			rounded(k.P99), rounded(k.Connect))
		if k.FirstErr != "" {
			fmt.Fprintf(out, "  the first error: %s\n", printable(k.FirstErr))
		}
		if k.Refused > 0 {
			fmt.Fprintf(out, "  %d of them were not resumed: the server has made full handshakes\n", k.Refused)
		}
	}
	fmt.Fprintln(out, "\nThe times are those of the handshakes, as the client sees them, with the network in them. The rate")
	fmt.Fprintln(out, "is paced: it is below --rate only if the server, or the network, doesn't keep up.")
}

func rounded(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

// handshakeTime bounds a connection.
const handshakeTime = 10 * time.Second

// A sample is the result of one connection. It doesn't have the connection's state, which would
// keep the server's certificates, and the connection.
type sample struct {
	connect, handshake time.Duration
	ended              time.Time // of the handshake
	version, suite     uint16
	group              tls.CurveID
	resumed            bool
	err                error
}

// measure makes connections at the rate, each in a goroutine of its own. Resumed ones offer the
// sessions that earlier ones were given. last is a sample without an error.
func (r *serverRequest) measure(ctx context.Context, kind string, tlsContext *ossl.Context, addr string,
	sessions *lastSession) (k serverKind, last sample, err error) {
	ticketTime := time.Duration(0)
	if sessions != nil { // the first connection is only for its session
		if first := r.sample(ctx, tlsContext, addr, handshakeTime, sessions); first.err != nil {
			return k, last, first.err
		}
		sessions.put, ticketTime = nil, 100*time.Millisecond
		await(ctx, time.After(r.interval()))
	}
	tick := time.NewTicker(r.interval())
	defer tick.Stop()
	samples := make([]sample, r.connections)
	var wait sync.WaitGroup
	begin := time.Now()
	// At most a second's connections at a time: a server that doesn't keep up is not buried.
	places := make(chan struct{}, max(1, int(r.rate)))
	for i := 0; i < len(samples) && ctx.Err() == nil; i++ {
		select {
		case places <- struct{}{}:
			wait.Go(func() {
				samples[i] = r.sample(ctx, tlsContext, addr, ticketTime, nil)
				<-places
			})
		case <-ctx.Done():
		}
		await(ctx, tick.C)
	}
	wait.Wait()
	if err := ctx.Err(); err != nil {
		return k, last, err
	}
	return r.summarize(kind, samples, begin)
}

// interval is the time between two connections.
func (r *serverRequest) interval() time.Duration { return time.Duration(float64(time.Second) / r.rate) }

func await(ctx context.Context, c <-chan time.Time) {
	select {
	case <-c:
	case <-ctx.Done():
	}
}

// sample makes a connection, and waits for tickets: until the server closes the connection, or
// given, if it isn't nil, has a session. The time of two handshakes and ticketTime bound this.
func (r *serverRequest) sample(ctx context.Context, tlsContext *ossl.Context, addr string, ticketTime time.Duration,
	given *lastSession) (s sample) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	start := time.Now()
	var dialer net.Dialer
	raw, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return sample{err: err}
	}
	s.connect = time.Since(start)
	conn := tlsContext.Client(raw, "")
	defer conn.Close()
	start = time.Now()
	if s.err = conn.HandshakeContext(ctx); s.err != nil {
		return s
	}
	s.ended = time.Now()
	s.handshake = s.ended.Sub(start)
	state := conn.ConnectionState()
	s.version, s.suite, s.group, s.resumed = state.Version, state.CipherSuite, state.CurveID, state.DidResume
	if ticketTime > 0 && s.version >= tls.VersionTLS13 {
		// The tickets come a round trip later; the handshake has taken at least one. Servers that keep
		// them until they send something, such as ossl's, send them with their close_notify.
		_ = conn.SetDeadline(time.Now().Add(ticketTime + 2*s.handshake))
		end := func() { _ = conn.SetDeadline(time.Now()) }
		if given != nil {
			given.put = end
		}
		defer context.AfterFunc(ctx, end)()
		_ = conn.CloseWrite()
		_, _ = io.Copy(io.Discard, conn)
	}
	return s
}

func (r *serverRequest) summarize(kind string, samples []sample, begin time.Time) (k serverKind, last sample, err error) {
	k.Kind = kind
	var times, connects []time.Duration
	end, shortest := begin, handshakeTime
	for _, s := range samples {
		switch {
		case s.err != nil:
			if k.Failed++; k.Failed == 1 {
				k.FirstErr, err = s.err.Error(), s.err
			}
			continue
		case kind == "resumed" && !s.resumed:
			k.Refused++
		}
		k.Count++
		times, connects = append(times, s.handshake), append(connects, s.connect)
		last = s
		if s.ended.After(end) {
			end = s.ended
		}
		shortest = min(shortest, s.connect+s.handshake)
	}
	if k.Count == 0 {
		return k, last, errors.Join(errors.New("every handshake has failed"), err)
	}
	slices.Sort(times)
	slices.Sort(connects)
	at := func(q float64) time.Duration { return times[int(q*float64(len(times)-1)+0.5)] }
	// The rate is measured where handshakes finish. A handshake that nothing delays takes the
	// shortest time, so if a distant server keeps up, this is the rate at which connections begin.
	k.PerSecond = float64(k.Count) / (end.Sub(begin) - shortest + r.interval()).Seconds()
	k.Median, k.P90, k.P99, k.Connect = at(0.5), at(0.9), at(0.99), connects[len(connects)/2]
	return k, last, nil
}
