package audit

import (
	"cmp"
	"fmt"
	"math"
)

// priced returns the price of a finding with the parts that follow from others.
func (f *Facts) priced(p Price) Price {
	if p.RoundTrips > 0 && p.Millis == nil {
		if trip := f.roundTrip(); trip != nil {
			p.Millis = trip.scaled(p.RoundTrips)
			p.Method += "; the round trip is that of TCP's handshake to this address"
		}
	}
	p.Method = cmp.Or(p.Method, notPriced)
	return p
}

// roundTrip returns TCP's round trip to the server.
func (f *Facts) roundTrip() *Interval {
	if f.Timing.RoundTrip != nil {
		return f.Timing.RoundTrip
	}
	for _, a := range f.Addresses {
		if a.Address == f.Address {
			return a.RoundTrip
		}
	}
	return nil
}

// publicKey returns the public-key work of the slowest kind of key that was measured.
func (f *Facts) publicKey() (slowest *Interval) {
	for _, i := range f.Timing.PublicKey {
		if i != nil && (slowest == nil || i.Median > slowest.Median) {
			slowest = i
		}
	}
	return slowest
}

const workMethod = "the time to the server's flight minus the time to an answer without a public-key operation, in pairs; " +
	"the key exchange and the flight's transmission are in it"

// resumptionPrice is the price of a full handshake for a share of the returning clients: the server's
// public-key work and the certificates; in TLS 1.2 also a round trip.
func (f *Facts) resumptionPrice(share float64, tls12 bool) Price {
	p := Price{Share: share}
	if chains := f.Certificates.Chains; len(chains) > 0 {
		p.Bytes = chains[0].Bytes
	}
	if i := f.publicKey(); i != nil {
		p.ServerMillis, p.Millis, p.Method = i, i, "at most: "+workMethod
	} else if f.Timing.State == Tested {
		p.Method = f.unmeasured()
	} else {
		p.Method = "not measurable here: the server's work wasn't timed"
	}
	if tls12 {
		p.RoundTrips = 1
		if trip := f.roundTrip(); trip != nil {
			p.Millis = sum(p.Millis, trip)
		}
		p.Method += "; a resumed handshake of TLS 1.2 has one round trip less"
	}
	return p
}

// sum adds two independent intervals; nil counts as nothing.
func sum(a, b *Interval) *Interval {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	m := a.Median + b.Median
	return &Interval{m, m - math.Hypot(a.Median-a.Low, b.Median-b.Low), m + math.Hypot(a.High-a.Median, b.High-b.Median)}
}

// difference subtracts two independent intervals.
func difference(a, b *Interval) *Interval {
	if a == nil || b == nil {
		return nil
	}
	return sum(a, &Interval{-b.Median, -b.High, -b.Low})
}

// unmeasured returns the reason why there is no time.
func (f *Facts) unmeasured() string {
	if f.Flight.RoundTrips > 1 {
		return "not measurable here: the server waits for the network within its flight"
	}
	return fmt.Sprintf("not measurable here: the noise of ±%.2g ms is larger than the effect", f.Timing.Noise)
}
