package audit

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/policy"
)

func TestInterval(t *testing.T) {
	if i := interval([]float64{1, 2, 3, 4, 5}); i != nil || i.measurable() {
		t.Errorf("five values have the interval %v", i)
	}
	if i := interval([]float64{2, 2, 2, 2, 2, 2}); *i != (Interval{2, 2, 2}) || !i.measurable() {
		t.Errorf("six equal values have the interval %v", i)
	}
	// Of many samples of a distribution with the median 0, nearly all intervals contain it, and nearly
	// none is measurable.
	random := rand.New(rand.NewPCG(3, 4))
	contains, measurable := 0, 0
	for range 200 {
		values := make([]float64, 20)
		for i := range values {
			values[i] = random.NormFloat64()
		}
		i := interval(values)
		if i.Low <= 0 && i.High >= 0 {
			contains++
		}
		if i.measurable() {
			measurable++
		}
		if i.Low > i.Median || i.Median > i.High {
			t.Fatal("the median is outside", i)
		}
	}
	if contains < 180 || measurable > 10 {
		t.Errorf("of 200 intervals %d contain the median, and %d are measurable", contains, measurable)
	}
	if d := difference(&Interval{5, 4, 6}, &Interval{2, 1, 3}); d.Median != 3 || math.Abs(d.Low-(3-math.Sqrt2)) > 1e-9 {
		t.Error("difference is", d)
	}
}

// TestPrice judges a server that breaks several rules.
func TestPrice(t *testing.T) {
	p, err := policy.Get("fast-and-safe")
	if err != nil {
		t.Fatal(err)
	}
	tested := Outcome{State: Tested}
	work, trip := &Interval{3, 2.9, 3.1}, &Interval{50, 49, 51}
	base := func() *Facts {
		f := &Facts{Protocols: ProtocolFacts{Outcome: tested, Versions: map[string]VersionFacts{
			"TLS 1.3": {Outcome: tested, Offered: true, Groups: []string{"secp256r1"}}}}}
		f.Timing = TimingFacts{Outcome: tested, RoundTrip: trip, PublicKey: map[string]*Interval{"RSA 4096": work}}
		f.Flight = FlightFacts{Outcome: tested, Bytes: 13000, RoundTrips: 2}
		f.Certificates = CertificateFacts{Outcome: tested, Chains: []ChainFacts{{Bytes: 12000, Needless: []int{1},
			Certificates: []CertificateFact{{}, {Subject: "Intermediate", Bytes: 11000 - certificateHeader}}}}}
		f.Resumption.Ticket13 = Resumed{Outcome: tested, Offered: true, Tries: 4, Hits: 1}
		f.Resumption.ID12 = f.Resumption.Ticket13
		f.Options.ExtendedMaster.Outcome = tested
		return f
	}
	for _, test := range []struct {
		name, rule string
		change     func(*Facts)
		trips      float64
		ms         float64
		server     float64
		bytes      int
		share      float64
		method     string
	}{
		{"retry", "group-retry", nil, 1, 50, 0, 0, 0, "round trip"},
		{"retry, no time", "group-retry", func(f *Facts) { f.Timing.RoundTrip = nil }, 1, 0, 0, 0, 0, "round trip"},
		{"no TLS 1.3", "tls13-missing", func(f *Facts) {
			f.Protocols.Versions["TLS 1.3"] = VersionFacts{Outcome: tested}
		}, 1, 50, 0, 0, 0, "of TLS 1.3 has one"},
		{"some sessions", "resume-tls13", nil, 0, 3, 3, 12000, 0.75, "at most"},
		{"some sessions of TLS 1.2", "resume-tls12-id", nil, 1, 53, 3, 12000, 0.75, "at most"},
		{"noise", "resume-tls13", func(f *Facts) {
			f.Timing.PublicKey["RSA 4096"], f.Timing.Noise, f.Flight.RoundTrips = nil, 4, 1
		}, 0, 0, 0, 12000, 0.75, "not measurable here: the noise of ±4 ms"},
		{"waits", "resume-tls13", func(f *Facts) { f.Timing.PublicKey["RSA 4096"] = nil }, 0, 0, 0, 12000, 0.75,
			"waits for the network"},
		{"needless", "chain-needless", nil, 1, 50, 0, 11000, 0, "13000 bytes"},
		{"needless, small", "chain-needless", func(f *Facts) { f.Flight.RoundTrips = 1 }, 0, 0, 0, 11000, 0, "counted"},
		{"flight", "chain-flight", func(f *Facts) { f.Flight.RoundTrips = 3 }, 2, 100, 0, 0, 0, "pauses"},
		{"no price", "ems-missing", nil, 0, 0, 0, 0, 0, notPriced},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := &Report{Facts: *base()}
			if test.change != nil {
				test.change(&r.Facts)
			}
			r.Judge(p, someDay)
			i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Rule == test.rule })
			if i < 0 {
				t.Fatalf("findings %+v", r.Findings)
			}
			p := r.Findings[i].Price
			value := func(i *Interval) float64 {
				if i == nil {
					return 0
				}
				return i.Median
			}
			if p.RoundTrips != test.trips || value(p.Millis) != test.ms || value(p.ServerMillis) != test.server ||
				p.Bytes != test.bytes || p.Share != test.share || !strings.Contains(p.Method, test.method) {
				t.Errorf("price is %+v, %v, %v", p, p.Millis, p.ServerMillis)
			}
		})
	}
}

func TestFlightRules(t *testing.T) {
	tested := Outcome{State: Tested}
	flight := func(bytes int, trips float64) func(*Facts) {
		return func(f *Facts) { f.Flight = FlightFacts{Outcome: tested, Bytes: bytes, RoundTrips: trips} }
	}
	keys := func(keys ...string) func(*Facts) {
		return func(f *Facts) {
			f.Certificates.State = Tested
			for _, key := range keys {
				f.Certificates.Chains = append(f.Certificates.Chains, ChainFacts{Key: key})
			}
		}
	}
	for _, test := range []struct {
		name     string
		rule     func(*judgement) ([]Finding, Outcome)
		facts    func(*Facts)
		state    State
		severity Severity // "" for no finding
	}{
		{"two round trips", checkChainFlight, flight(13000, 2), Tested, Medium},
		{"one round trip", checkChainFlight, flight(13000, 1), Tested, ""},
		{"large, not measured", checkChainFlight, flight(15000, 0), Tested, Medium},
		{"between, not measured", checkChainFlight, flight(13000, 0), Tested, ""},
		{"failed", checkChainFlight, func(f *Facts) { f.Flight.State = Failed }, Failed, ""},
		{"RSA 2048", checkKeySlow, keys("RSA 2048"), Tested, Low},
		{"RSA 4096", checkKeySlow, keys("RSA 4096"), Tested, Medium},
		{"both", checkKeySlow, keys("RSA 2048", "ECDSA secp256r1"), Tested, ""},
		{"Ed25519", checkKeySlow, keys("Ed25519"), Tested, ""},
		{"no chain", checkKeySlow, func(f *Facts) { f.Certificates.State = Failed }, Failed, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := &Facts{}
			test.facts(f)
			findings, outcome := test.rule(&judgement{facts: f})
			var severity Severity
			if len(findings) > 0 {
				severity = findings[0].Severity
			}
			if outcome.State != test.state || severity != test.severity || len(findings) > 1 {
				t.Errorf("%+v, %+v", outcome, findings)
			}
		})
	}
}
