package audit

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/ossl-go/ossl/audit/internal/client"
	"github.com/ossl-go/ossl/audit/internal/hello"
)

// Rounds of timing. Each costs one connection for each kind of key.
const (
	fewRounds     = minRounds + 1 // the first warms up, and isn't counted
	preciseRounds = 60
)

// stallShare is the part of a round trip for which a flight must pause to count as another round
// trip: the server waited for acknowledgments. The server's own work between two writes takes less,
// on links where round trips can be counted at all.
const (
	stallShare   = 0.75
	leastTrip    = 8.0 // ms: on faster links a pause may be the server's work
	noTripReason = "not measurable here: the round trip of %.2f ms is too short to tell waiting from work"
)

// probeTiming measures the server's first flight, and the time of its public-key operations. All
// kinds of key are measured in alternating rounds, so that a change of the machine's speed hits
// all.
func probeTiming(ctx context.Context, r *run) error {
	if r.options.NoTiming {
		r.facts.Timing.Outcome = Outcome{NotTested, "not asked for"}
	}
	keys, err := r.timedKeys(ctx)
	if err != nil {
		r.facts.Flight.Outcome, r.facts.Timing.Outcome = failed(err), failed(err)
		return ctx.Err()
	}
	defer r.flightFacts(keys[0]) // when the shortest round trip is known
	if r.options.NoTiming {
		return nil
	}
	rounds := fewRounds
	if r.options.Precise {
		rounds = preciseRounds
	}
	for i := range rounds {
		for _, key := range rotated(keys, i) {
			if err := key.round(ctx, r, i > 0); err != nil {
				r.facts.Timing.Outcome = failed(err)
				return ctx.Err()
			}
		}
	}
	r.timingFacts(keys)
	return nil
}

// rotated returns the keys in another order for each round.
func rotated(keys []*timedKey, round int) []*timedKey {
	n := round % len(keys)
	return append(slices.Clone(keys[n:]), keys[:n]...)
}

// failed is the outcome of a probe that failed by err.
func failed(err error) Outcome {
	if errors.Is(err, errBudget) {
		return Outcome{NotTested, err.Error()}
	}
	return Outcome{Failed, err.Error()}
}

// A timedKey is a kind of key of the server, with the times of its handshakes in milliseconds.
type timedKey struct {
	name      string
	schemes   []uint16
	state     client.State // of a whole handshake
	pauses    []float64    // within the flight of that handshake
	pause     float64      // the longest one in later flights
	retry     []float64
	full      []float64
	trips     []float64
	publicKey []float64
}

// schemesOf are the signature schemes by kind of key, for hellos that ask for it.
var schemesOf = map[x509.PublicKeyAlgorithm][]uint16{
	x509.ECDSA:   {0x0403, 0x0503, 0x0603},
	x509.RSA:     {0x0804, 0x0805, 0x0806, 0x0401, 0x0501, 0x0601},
	x509.Ed25519: {0x0807},
}

// timedKeys makes one whole handshake for each kind of key that the server has.
func (r *run) timedKeys(ctx context.Context) (keys []*timedKey, err error) {
	first, err := r.timedHandshake(ctx, nil)
	if err != nil {
		return nil, err
	}
	keys = []*timedKey{first}
	for _, kind := range []x509.PublicKeyAlgorithm{x509.ECDSA, x509.RSA} {
		if slices.Contains(schemesOf[kind], first.state.Signature) {
			first.schemes = schemesOf[kind]
			continue
		}
		key, err := r.timedHandshake(ctx, schemesOf[kind])
		switch {
		case err == nil:
			keys = append(keys, key)
		case ctx.Err() != nil, !errors.As(err, new(*client.AlertError)):
			return nil, err
		}
	}
	return keys, nil
}

// again calls f, and once more, alone, if the connection was lost without an alert.
func (r *run) again(ctx context.Context, f func() error) error {
	for try := 0; ; try++ {
		err := f()
		switch {
		case err == nil, ctx.Err() != nil, finalError(err), errors.Is(err, errRefused):
			return err
		case errors.As(err, new(*client.AlertError)), errors.As(err, new(*client.ProtocolError)):
			return err
		}
		if err := r.retry(ctx, r.address, err, try); err != nil {
			return err
		}
	}
}

// timedHandshake makes a whole handshake, in TLS 1.3 if the server offers it.
func (r *run) timedHandshake(ctx context.Context, schemes []uint16) (key *timedKey, err error) {
	err = r.again(ctx, func() error {
		key, err = r.timedOnce(ctx, hello.TLS13, schemes)
		var alert *client.AlertError
		if errors.As(err, &alert) && alert.Code == alertVersion {
			key, err = r.timedOnce(ctx, hello.TLS12, schemes)
		}
		return err
	})
	return key, err
}

const alertVersion uint8 = 70

func (r *run) timedOnce(ctx context.Context, version uint16, schemes []uint16) (*timedKey, error) {
	conn, _, err := r.dialTimed(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Now()) })()
	log := &arrivals{Conn: conn}
	handshake := r.clientHandshake13
	if known, offered := r.offers("TLS 1.3"); version == hello.TLS12 || known && !offered {
		version, handshake = hello.TLS12, client.Handshake12
	}
	h := client.Default(r.options.ServerName, version)
	h.Groups = slices.DeleteFunc(h.Groups, func(g uint16) bool { return g == client.X25519MLKEM768 })
	if schemes != nil {
		h.Signatures = schemes
	}
	c, err := handshake(log, &client.Config{Hello: h})
	if err != nil {
		return nil, err
	}
	r.count(func(cost *Cost) { cost.Handshakes++; cost.Signatures++ })
	c.CloseWrite()
	key := &timedKey{schemes: h.Signatures, state: c.State, name: "?"}
	key.pauses = log.pauses(c.State.Times.Sent, c.State.Times.Flight)
	if len(c.State.Certificates) > 0 {
		if leaf, _ := client.ParseCertificate(c.State.Certificates[0]); leaf != nil {
			key.name = keyName(leaf)
		}
	}
	return key, nil
}

// dialTimed connects to the server under test, and returns the milliseconds of the TCP handshake.
func (r *run) dialTimed(ctx context.Context) (net.Conn, float64, error) {
	conn, err := r.dial(ctx, r.address)
	if err != nil {
		return nil, 0, err
	}
	trip := millis(conn.(*countedConn).connect)
	if r.trip == 0 || trip < r.trip {
		r.trip = trip
	}
	return conn, trip, nil
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// arrivals notes when bytes arrive.
type arrivals struct {
	net.Conn
	times []time.Time
}

func (a *arrivals) Read(b []byte) (int, error) {
	n, err := a.Conn.Read(b)
	if n > 0 && len(a.times) < 1<<12 {
		a.times = append(a.times, time.Now())
	}
	return n, err
}

// pauses returns the milliseconds between the arrivals between two times.
func (a *arrivals) pauses(from, to time.Time) (all []float64) {
	for i := 1; i < len(a.times); i++ {
		if a.times[i-1].After(from) && !a.times[i].After(to) {
			all = append(all, millis(a.times[i].Sub(a.times[i-1])))
		}
	}
	return all
}

// flightFacts are about a whole handshake.
func (r *run) flightFacts(k *timedKey) {
	f := &r.facts.Flight
	f.Outcome, f.Bytes = Outcome{State: Tested}, k.state.Flight
	if r.trip < leastTrip {
		f.Reason = fmt.Sprintf(noTripReason, r.trip)
		return
	}
	f.RoundTrips = 1
	for _, pause := range k.pauses {
		if pause > stallShare*r.trip {
			f.RoundTrips++
		}
	}
}

// timingFacts makes the facts of the times.
func (r *run) timingFacts(keys []*timedKey) {
	t := &r.facts.Timing
	t.Outcome = Outcome{State: Tested}
	t.PublicKey = map[string]*Interval{}
	var trips, retries []float64
	for _, k := range keys {
		trips, retries = append(trips, k.trips...), append(retries, k.retry...)
		t.PublicKey[k.name] = nil
		i := interval(k.publicKey)
		if i != nil {
			t.Noise = max(t.Noise, i.half())
		}
		longest := slices.Max(append(k.pauses, k.pause))
		if i.measurable() && (r.trip < leastTrip || longest <= stallShare*r.trip) {
			t.PublicKey[k.name] = i
		}
	}
	if keys[0].state.Version == hello.TLS13 {
		t.Retry = interval(retries)
	}
	t.RoundTrip, t.Full = interval(trips), interval(keys[0].full)
	r.facts.Flight.Millis = t.Full
}
