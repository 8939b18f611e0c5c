package audit

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"math"
)

// price returns the price of a rule's finding: p with the parts that follow from others, or a price
// of the rule's kind if the rule gave none.
func (f *Facts) price(rule string, p Price) Price {
	if p.Method == "" {
		switch rule {
		case "group-retry", "client-retry":
			p = Price{RoundTrips: 1, Method: "a HelloRetryRequest is one round trip"}
		case "tls13-missing":
			p = Price{RoundTrips: 1, Method: "a full handshake of TLS 1.2 has two round trips, one of TLS 1.3 has one"}
		case "resume-none", "resume-tls13", "resume-tls12-id", "resume-tls12-ticket", "resume-fleet":
			share := p.Share
			p = f.resumptionPrice(rule)
			p.Share = share
		case "certificate-compression":
			p = f.compressionPrice()
		}
	}
	if rule == "chain-needless" || rule == "chain-root" {
		p = f.needlessPrice(p)
	}
	if p.RoundTrips > 0 && p.Millis == nil {
		if trip := f.roundTrip(); trip != nil {
			p.Millis = trip.scaled(p.RoundTrips)
			p.Method += "; the round trip is that of TCP's handshake to this address"
		}
	}
	if p.Method == "" {
		p.Method = notPriced
	}
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

// resumptionPrice is the price of a full handshake for a returning client: the server's public-key
// work and the certificates; in TLS 1.2 also a round trip.
func (f *Facts) resumptionPrice(rule string) Price {
	p := Price{Bytes: f.chainBytes()}
	if i := f.publicKey(); i != nil {
		p.ServerMillis, p.Millis, p.Method = i, i, "at most: "+workMethod
	} else if f.Timing.State == Tested {
		p.Method = f.unmeasured()
	} else {
		p.Method = "not measurable here: the server's work wasn't timed"
	}
	v13 := f.Protocols.Versions["TLS 1.3"]
	if rule == "resume-tls12-id" || rule == "resume-tls12-ticket" || rule == "resume-none" && v13.State == Tested && !v13.Offered {
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
		if a == nil {
			return b
		}
		return a
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

// unmeasured says why there is no time.
func (f *Facts) unmeasured() string {
	if f.Flight.RoundTrips > 1 {
		return "not measurable here: the server waits for the network within its flight"
	}
	return fmt.Sprintf("not measurable here: the noise of ±%.2g ms is larger than the effect", f.Timing.Noise)
}

func (f *Facts) chainBytes() int {
	if len(f.Certificates.Chains) == 0 {
		return 0
	}
	return f.Certificates.Chains[0].Bytes
}

// needlessPrice adds the round trip that the flight takes because of the price's bytes.
func (f *Facts) needlessPrice(p Price) Price {
	if p.Bytes > 0 && f.Flight.RoundTrips > 1 && f.Flight.Bytes-p.Bytes <= safeWindow {
		p.RoundTrips = f.Flight.RoundTrips - 1
		p.Method += fmt.Sprintf("; the flight of %d bytes was measured to take %.0f round trips", f.Flight.Bytes, f.Flight.RoundTrips)
	}
	return p
}

// compressionPrice compresses the chain.
func (f *Facts) compressionPrice() Price {
	if len(f.Certificates.Chains) == 0 {
		return Price{}
	}
	var out bytes.Buffer
	z, n := zlib.NewWriter(&out), 0
	for _, der := range f.Certificates.Chains[0].DER {
		z.Write(der)
		n += len(der)
	}
	z.Close()
	if n == 0 || out.Len() >= n {
		return Price{}
	}
	return Price{Bytes: n - out.Len(), Method: "the server's chain, compressed here with zlib"}
}
