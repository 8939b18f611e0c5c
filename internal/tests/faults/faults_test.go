//go:build cgo && ossl_faults

// Package faults_test makes each allocation in OpenSSL and in our C code fail, one at a time, and
// checks the connection that it hits and the next one with the same Context. ci/alloc-faults runs
// it. After a crash, the output with -test.v shows the scenario and the allocation.
package faults_test

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

var (
	most = flag.Int("most", 0, "the number of allocations to try in a scenario, evenly spread; 0 for all")
	span = flag.Int("span", 1, "the number of allocations in a row that fail")
)

func TestMain(m *testing.M) {
	if allocations := os.Getenv(envReplaced); allocations != "" {
		if err := replace(allocations); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	if _, err := ossl.NewContext(nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// An attempt is the result of an operation.
type attempt struct {
	state   string // everything that must be as without a fault
	resumed bool
	err     error // ours
	peer    error // the peer's
}

// A scenario is an operation that is tried with a fault.
type scenario struct {
	name    string
	refused bool // the operation must fail
	// prepare returns the operation, and the one that must succeed, or be refused, after each fault.
	prepare func(t *testing.T) (try func() attempt, next func(attempt) attempt)
}

func TestAllocations(t *testing.T) {
	var all judge
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			j := s.run(t)
			all.unharmed, all.errors, all.others, all.blames = all.unharmed+j.unharmed, all.errors+j.errors, all.others+j.others,
				all.blames+j.blames
		})
	}
	t.Logf("%d unharmed, %d errors, of which %d don't name the memory, and %d accuse the peer", all.unharmed, all.errors,
		all.others, all.blames)
	// libcrypto reports some of its failures as a bad signature, or as an algorithm that isn't there, and
	// drops the cause.
	if all.blames*100 > all.errors {
		t.Error("more than one in a hundred errors accuse the peer")
	}
}

func (s *scenario) run(t *testing.T) *judge {
	try, next := s.prepare(t)
	var whole attempt
	for range 4 { // for allocations that happen only once, and for the session to resume
		if whole = next(try()); (whole.err != nil) != s.refused {
			t.Fatalf("without a fault: %v, peer: %v", whole.err, whole.peer)
		}
	}
	libssl.FailAllocations(1<<40, 1<<40+1)
	try()
	total := libssl.CountAllocations()
	next(attempt{})
	step := 1
	if *most > 0 {
		step = max(1, total / *most)
	}
	j := &judge{t: t, whole: whole, refused: s.refused, accusing: map[string]int{}}
	for n := 1; n <= total; n += step {
		j.n = n
		if testing.Verbose() {
			fmt.Fprintf(os.Stderr, "\r%s: %d of %d ", s.name, n, total)
		}
		libssl.FailAllocations(n, n+*span)
		hit := try()
		if libssl.CountAllocations() >= n {
			j.hit(hit)
		}
		after := next(hit)
		if whole.resumed && !after.resumed {
			after = next(after)
		}
		j.next(after)
	}
	t.Logf("%d allocations, every %d. tried: %d unharmed, %d errors, of which %d don't name the memory", total, step,
		j.unharmed, j.errors, j.others)
	for text, n := range j.accusing {
		t.Logf("%d times accused: %s", n, text)
	}
	return j
}

// A judge counts results, and reports the wrong ones.
type judge struct {
	t                                *testing.T
	n                                int
	whole                            attempt
	refused                          bool
	unharmed, errors, others, blames int
	accusing                         map[string]int
}

func (j *judge) hit(a attempt) {
	for _, err := range []error{a.err, a.peer} {
		if e := net.Error(nil); errors.As(err, &e) && e.Timeout() {
			j.t.Errorf("allocation %d: both ends wait: %v, peer: %v", j.n, a.err, a.peer)
			return
		}
	}
	switch {
	case a.err == nil && (j.refused || a.state != "" && a.state != j.whole.state):
		j.t.Errorf("allocation %d: wrong success: %s, not %s", j.n, a.state, j.whole.state)
	case a.err == nil:
		j.unharmed++
	case j.refused && a.err.Error() == j.whole.err.Error():
		j.unharmed++
	default:
		j.errors++
		if !errors.Is(a.err, syscall.ENOMEM) {
			j.others++
		}
		if accuses(a.err) || accusesAlert(a.peer) {
			j.blames++
			j.accusing[fmt.Sprintf("%.80v; peer: %.80v", a.err, a.peer)]++
		}
	}
}

func (j *judge) next(a attempt) {
	switch {
	case j.refused && (a.err == nil || a.err.Error() != j.whole.err.Error()):
		j.t.Errorf("allocation %d: then %v, not %v", j.n, a.err, j.whole.err)
	case !j.refused && a.err != nil:
		j.t.Errorf("allocation %d: the next one fails: %v, peer: %v", j.n, a.err, a.peer)
	case !j.refused && (a.state != j.whole.state || a.resumed != j.whole.resumed):
		j.t.Errorf("allocation %d: the next one is %s, not %s", j.n, a.state, j.whole.state)
	}
}

// accuses reports whether an error of ours, or the label of it in metrics, is about the peer.
func accuses(err error) bool {
	switch f := ossl.FailureOf(err); f.Class {
	case ossl.FailureLibrary, ossl.FailureConfig, ossl.FailureOther, ossl.FailureClosed:
		return false
	case ossl.FailureRefused:
		return f.Alert != 80 // internal_error
	}
	return true
}

// accusesAlert reports whether the peer got an alert that blames it.
func accusesAlert(err error) bool {
	var alert tls.AlertError
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error" && !(errors.As(err, &alert) && alert == 80) &&
		!strings.Contains(err.Error(), "internal error")
}

type conn interface {
	net.Conn
	Handshake() error
	ConnectionState() tls.ConnectionState
}

// connect makes a client and a server exchange a few bytes.
func connect(client, server func(net.Conn) conn, ours string) attempt {
	c, s := tlstest.Buffered()
	deadline := time.Now().Add(5 * time.Second)
	_, _ = c.SetDeadline(deadline), s.SetDeadline(deadline)
	text := []byte("text")
	var a [2]attempt
	done := make(chan struct{})
	end := func(at *attempt, conn conn, err error) {
		if at.err = err; err == nil {
			state := conn.ConnectionState()
			at.resumed = state.DidResume
			at.state = fmt.Sprintf("%x %x %v %q %d", state.Version, state.CipherSuite, state.CurveID, state.NegotiatedProtocol,
				len(state.PeerCertificates))
		}
		_ = conn.Close()
	}
	go func() {
		defer close(done)
		defer s.Close()
		conn, in := server(s), make([]byte, len(text))
		err := conn.Handshake()
		if err == nil {
			_, err = io.ReadFull(conn, in)
		}
		if err == nil {
			_, err = conn.Write(in)
		}
		end(&a[1], conn, err)
	}()
	conn, in := client(c), make([]byte, len(text))
	err := conn.Handshake()
	if err == nil {
		_, err = conn.Write(text)
	}
	if err == nil {
		_, err = io.ReadFull(conn, in)
	}
	if err == nil && string(in) != string(text) {
		err = fmt.Errorf("%q came back", in)
	}
	end(&a[0], conn, err)
	c.Close()
	<-done
	if ours == "client" {
		a[0].peer = a[1].err
		return a[0]
	}
	a[1].peer = a[0].err
	return a[1]
}
