// Package zoo has TLS servers, sound ones and broken ones, each with the verdicts that an audit of it
// must give. They listen on loopback.
package zoo

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/ossl-go/ossl/audit"
	"github.com/ossl-go/ossl/audit/internal/testcert"
)

// A Server is a server of the zoo.
type Server struct {
	Name  string
	About string // one sentence
	// Expect are the findings that an audit must have. It must have no other findings with the
	// severity "low" or above. Findings with the severity "info" are optional.
	Expect []Verdict
	// Failed are rules whose facts can't be had from this server. An audit that reports them as tested
	// is wrong.
	Failed []string
	// Protocol is the target's protocol, "tls" if empty.
	Protocol string
	// Options changes the options of the audit.
	Options func(*audit.Options)
	// Debian reports whether the server is a program that ci/openssl-versions -servers unpacks.
	Debian bool
	// Everywhere reports whether the server can't be made to listen on loopback alone, so that it runs
	// no longer than an audit.
	Everywhere bool
	// NoTLS reports whether the server has no TLS, and the audit reports that.
	NoTLS bool
	// Slow reports whether an audit of the server takes more than a second.
	Slow bool

	start func(*Running) error
}

// A Verdict is a finding that an audit must have.
type Verdict struct {
	Rule string
	Why  string // the fact about the server that breaks the rule
}

// A Running server has been started.
type Running struct {
	*Server
	Addresses []netip.AddrPort
	Roots     *x509.CertPool
	anchors   []*testcert.Cert
	Folder    string // of files that the server needs; removed by Close

	mu    sync.Mutex
	close []func() error
}

// Start starts the server. The caller must close it.
func (s *Server) Start() (*Running, error) {
	folder, err := os.MkdirTemp("", "ossl-zoo-")
	if err != nil {
		return nil, err
	}
	r := &Running{Server: s, Folder: folder}
	r.onClose(func() error { return os.RemoveAll(folder) })
	if err := s.start(r); err != nil {
		return nil, errors.Join(fmt.Errorf("zoo: %s: %w", s.Name, err), r.Close())
	}
	return r, nil
}

func (r *Running) onClose(f func() error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.close = append(r.close, f)
}

// Close stops the server and removes its files.
func (r *Running) Close() error {
	r.mu.Lock()
	closers := r.close
	r.close = nil
	r.mu.Unlock()
	var all error
	for i := len(closers) - 1; i >= 0; i-- {
		all = errors.Join(all, closers[i]())
	}
	return all
}

// PEM returns the roots that clients of the server have to trust.
func (r *Running) PEM() (all []byte) {
	for _, root := range r.anchors {
		all = append(all, root.PEM()...)
	}
	return all
}

// Target returns the target of an audit of the server.
func (r *Running) Target() audit.Target {
	protocol := r.Protocol
	if protocol == "" {
		protocol = "tls"
	}
	return audit.Target{Host: "localhost", Port: r.Addresses[0].Port(), Protocol: protocol}
}

// CheckOptions returns the options of an audit of the server.
func (r *Running) CheckOptions() audit.Options {
	o := audit.Options{Addresses: r.Addresses, Roots: r.Roots, Timeout: 20 * time.Second, NoHTTP: true, NoDNS: true}
	if r.Options != nil {
		r.Options(&o)
	}
	return o
}

// A Result compares an audit with the server's verdicts.
type Result struct {
	Report  *audit.Report
	Err     error
	Missing []Verdict       // expected, and not found
	Extra   []audit.Finding // found, and not expected
	Claimed []string        // rules that the audit reports as tested, although it can't have tested them
	Untried []audit.Result  // rules that failed to be tested, of a server that answers everything
}

// OK reports whether the audit gave the expected verdicts and no other ones.
func (r Result) OK() bool {
	return r.Err == nil && len(r.Missing) == 0 && len(r.Extra) == 0 && len(r.Claimed) == 0 && len(r.Untried) == 0
}

// Check audits the server and compares the findings with the expected ones.
func (r *Running) Check(ctx context.Context) Result {
	report, err := audit.Check(ctx, r.Target(), r.CheckOptions())
	result := Result{Report: report, Err: err}
	if r.NoTLS {
		if result.Err = nil; !errors.Is(err, audit.ErrNoTLS) {
			result.Err = fmt.Errorf("zoo: got %v, not %w", err, audit.ErrNoTLS)
		}
	}
	if report == nil {
		return result
	}
	expected, found := map[string]bool{}, map[string]bool{}
	for _, v := range r.Expect {
		expected[v.Rule] = true
	}
	for _, f := range report.Findings {
		found[f.Rule] = true
		if !expected[f.Rule] && f.Severity != audit.Info {
			result.Extra = append(result.Extra, f)
		}
	}
	for _, v := range r.Expect {
		if !found[v.Rule] {
			result.Missing = append(result.Missing, v)
		}
	}
	states := map[string]audit.State{}
	for _, one := range report.Results {
		states[one.Rule] = one.State
		if one.State == audit.Failed && len(r.Failed) == 0 {
			result.Untried = append(result.Untried, one)
		}
	}
	for _, rule := range r.Failed {
		if states[rule] == audit.Tested {
			result.Claimed = append(result.Claimed, rule)
		}
	}
	return result
}

// listen listens on loopback and calls serve for each connection. If there are several hosts, all
// have the same port.
func (r *Running) listen(host string, serve func(net.Conn)) error {
	l, err := r.listener(host)
	if err != nil {
		return err
	}
	r.serve(l, serve)
	return nil
}

// listener listens on an address of loopback, with the port of the addresses before it.
func (r *Running) listener(host string) (net.Listener, error) {
	port := "0"
	if len(r.Addresses) > 0 {
		port = fmt.Sprint(r.Addresses[0].Port())
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, err
	}
	r.onClose(func() error { l.Close(); return nil })
	r.Addresses = append(r.Addresses, l.Addr().(*net.TCPAddr).AddrPort())
	return l, nil
}

// serve calls answer for each of the listener's connections, until the server is closed.
func (r *Running) serve(l net.Listener, answer func(net.Conn)) {
	var mu sync.Mutex
	conns := map[net.Conn]bool{}
	closed := false
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			if closed {
				mu.Unlock()
				conn.Close()
				return
			}
			conns[conn] = true
			mu.Unlock()
			all.Go(func() {
				answer(conn)
				conn.Close()
				mu.Lock()
				delete(conns, conn)
				mu.Unlock()
			})
		}
	})
	r.onClose(func() error {
		l.Close()
		mu.Lock()
		closed = true
		for conn := range conns {
			conn.Close()
		}
		mu.Unlock()
		all.Wait()
		return nil
	})
}

// Local returns the servers that need nothing besides this process.
func Local() []*Server {
	var all []*Server
	for _, some := range [][]*Server{certificateServers(), goServers(), mailServers(), sessionServers(), scriptedServers(),
		lyingServers(), slowServers()} {
		all = append(all, some...)
	}
	return all
}
