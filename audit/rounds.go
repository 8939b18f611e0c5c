package audit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/ossl-go/ossl/audit/internal/client"
	"github.com/ossl-go/ossl/audit/internal/hello"
)

// round asks the server a question that it answers without a public-key operation, and one that it
// answers by its flight. The round trip is in both times, so the difference is the server's work.
func (k *timedKey) round(ctx context.Context, r *run, keep bool) error {
	ask := k.round13
	if k.state.Version != hello.TLS13 {
		ask = k.round12
	}
	var trip float64
	var retry, full answer
	err := r.again(ctx, func() (err error) {
		trip, retry, full, err = ask(ctx, r)
		return err
	})
	if err != nil {
		return err
	}
	r.count(func(c *Cost) { c.Signatures++ })
	k.pause = max(k.pause, full.pause)
	if keep {
		k.trips, k.retry, k.full = append(k.trips, trip), append(k.retry, retry.ms), append(k.full, full.ms)
		k.publicKey = append(k.publicKey, full.ms-retry.ms)
	}
	return nil
}

// round13 makes one connection: a ClientHello without a key share, which the server answers by a
// HelloRetryRequest, and one with a share.
func (k *timedKey) round13(ctx context.Context, r *run) (trip float64, retry, full answer, err error) {
	h := client.Default(r.options.ServerName)
	h.Suites, h.Groups, h.Signatures = []uint16{k.state.Suite}, []uint16{k.state.Group}, k.schemes
	share, err := client.NewShare(k.state.Group)
	if err != nil {
		return 0, retry, full, err
	}
	random := make([]byte, 64)
	rand.Read(random)
	h.Random, h.SessionID = random[:32], random[32:]
	h.KeyShares = []hello.KeyShare{}
	first, err := h.Marshal()
	if err != nil {
		return 0, retry, full, err
	}
	h.KeyShares, h.RecordVersion = []hello.KeyShare{share}, hello.TLS12
	second, err := h.Marshal()
	if err != nil {
		return 0, retry, full, err
	}
	err = r.timed(ctx, func(conn net.Conn, connect float64) error {
		trip = connect
		if retry, err = ask(conn, first, helloRetrySize); err != nil {
			return fmt.Errorf("the answer to a hello without a key share: %w", err)
		}
		if full, err = ask(conn, second, k.state.Flight-flightSlack-retry.extra); err != nil {
			return fmt.Errorf("the server's flight after a HelloRetryRequest: %w", err)
		}
		return nil
	})
	return trip, retry, full, err
}

// round12 makes two connections: a ClientHello that offers no suite, which the server answers by an
// alert, and one that it answers by its flight.
func (k *timedKey) round12(ctx context.Context, r *run) (trip float64, refused, full answer, err error) {
	h := client.Default(r.options.ServerName, hello.TLS12)
	h.Signatures = k.schemes
	packets := [2][]byte{}
	for i, suites := range [][]uint16{{noSuite}, {k.state.Suite}} {
		h.Suites = suites
		if packets[i], err = h.Marshal(); err != nil {
			return 0, refused, full, err
		}
	}
	err = r.timed(ctx, func(conn net.Conn, connect float64) error {
		trip = connect
		refused, err = ask(conn, packets[0], alertSize)
		if err == nil || !refused.alert {
			return fmt.Errorf("a hello without a known cipher suite isn't refused by an alert: %w", err)
		}
		return nil
	})
	if err != nil {
		return 0, refused, full, err
	}
	err = r.timed(ctx, func(conn net.Conn, connect float64) (err error) {
		trip = min(trip, connect)
		full, err = ask(conn, packets[1], k.state.Flight-flightSlack)
		return err
	})
	return trip, refused, full, err
}

// timed calls f with a connection and the milliseconds of the TCP handshake.
func (r *run) timed(ctx context.Context, f func(conn net.Conn, connect float64) error) error {
	conn, connect, err := r.dialTimed(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Now()) })()
	return f(conn, connect)
}

const (
	// helloRetrySize is the size of a HelloRetryRequest's record with a session ID of 32 bytes and the
	// extensions supported_versions and key_share.
	helloRetrySize = 5 + 4 + 2 + 32 + 33 + 2 + 1 + 2 + 6 + 6
	alertSize      = 7
	// flightSlack is by how much one flight may be shorter than another one: the DER of an ECDSA
	// signature, and a ChangeCipherSpec that came with the HelloRetryRequest. The last record of a
	// flight, Finished, is larger, so the time is always measured to the last record. In TLS 1.2 it
	// is measured to ServerKeyExchange, because ServerHelloDone follows without work.
	flightSlack = 24
	noSuite     = 0x0a0a // of GREASE, RFC 8701
)

// An answer is the server's answer to a packet.
type answer struct {
	ms    float64 // from the packet to the answer's last byte
	pause float64 // the longest pause within the answer
	extra int     // bytes that were read beyond those asked for
	alert bool
}

// ask writes a packet and reads n bytes of the answer at least.
func ask(conn net.Conn, packet []byte, n int) (a answer, err error) {
	buf := make([]byte, 1<<16)
	start := time.Now()
	if _, err := conn.Write(packet); err != nil {
		return a, err
	}
	var head []byte
	for total := 0; ; {
		m, err := conn.Read(buf)
		ms := millis(time.Since(start))
		if total > 0 && m > 0 {
			a.pause = max(a.pause, ms-a.ms)
		}
		if m > 0 {
			a.ms = ms
		}
		total += m
		if len(head) < 64 {
			head = append(head, buf[:min(m, 64)]...)
		}
		a.alert = len(head) >= alertSize && head[0] == 21
		switch {
		case total >= n || a.alert:
			a.extra = total - n
			return a, refusal(head)
		case err != nil:
			return a, errors.Join(refusal(head), err)
		}
	}
}

// errRefused is the error if the server answered, but not as it was asked to.
var errRefused = errors.New("the server answered otherwise")

// refusal returns an error if the answer begins with anything except a handshake record.
func refusal(head []byte) error {
	switch {
	case len(head) > 6 && head[0] == 21:
		return fmt.Errorf("%w: %s", errRefused, hello.AlertName(head[6]))
	case len(head) > 0 && head[0] != 22 && head[0] != 20:
		return fmt.Errorf("%w: a record of type %d", errRefused, head[0])
	}
	return nil
}
