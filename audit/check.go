package audit

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/ossl-go/ossl/policy"
)

// probes are run in this order. A probe may use the facts of those before it.
var probes = []probe{
	{"addresses", probeAddresses},
	{"versions, suites and groups", probeProtocols},
	{"certificates", certificates},
	{"options", probeOptions},
	{"timing", probeTiming},
	{"StartTLS", probeInjection},
	{"HTTP", probeHTTP},
	{"DNS", probeDNS},
	{"resumption", probeResumption},
	{"early data", probeEarly},
	{"clients", probeClients},
	{"staples", staples},
	{"watch", probeWatch},
}

// rules judge the facts, in the order of Report.Results.
var rules = concat(
	addressRules,
	protocolRules,
	optionRules,
	flightRules,
	certificateRules,
	sessionRules,
	clientRules,
	startTLSRules,
	httpRules,
	dnsRules,
	extraRules,
)

func concat(lists ...[]Rule) (all []Rule) {
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

// Rules returns all rules.
func Rules() []Rule { return append([]Rule(nil), rules...) }

// ErrUnreachable is wrapped by the error of a [Check] that reached no address of the target.
var ErrUnreachable = errors.New("no address can be reached")

// ErrNoTLS is wrapped by the error of a [Check] of a port that has another protocol than TLS.
var ErrNoTLS = errors.New("there is no TLS on this port")

// ErrTime is the error of a [Check] that took as long as it may. The report has the facts found
// before.
var ErrTime = errors.New("the audit took as long as it may")

// Times of audits. An audit over a fast link takes a second. If the server never answers, it takes
// seven timeouts; if the server answers each connection at the last moment, it would take hundreds.
const (
	usualTime   = 3 * time.Minute
	usualWaits  = 36 // timeouts, if those are longer
	preciseTime = 5 * time.Minute
	lateTime    = 6 * time.Minute // for greetings: 60 of them, each after 6 seconds
)

// maxTime returns the time that the audit may take.
func (o *Options) maxTime(protocol string) time.Duration {
	if o.MaxTime != 0 {
		return o.MaxTime
	}
	most := max(usualTime, usualWaits*o.Timeout) + o.Watch
	if o.Rate > 0 {
		most += time.Duration(min(float64(o.MaxConnections)/o.Rate, longestTime.Seconds()) * float64(time.Second))
	}
	if o.Precise {
		most += preciseTime
	}
	if greets(protocol) {
		most += lateTime
	}
	return most
}

// longestTime bounds the time for the rate.
const longestTime = 1000 * 24 * time.Hour

// Check audits a target: it looks for the addresses of the name, connects to each, and runs its
// probes on the first address that can be reached.
//
// Check always returns a report. It fails if the audit couldn't begin: the name has no address, or
// the error wraps [ErrUnreachable] or [ErrNoTLS]. All rules have failed then. If the context is
// done, the report has the facts found before, Interrupted is set, and the error is the context's.
//
// A target's protocol "tls" is a guess: if the server chooses HTTP by ALPN, or doesn't answer TLS and
// speaks PostgreSQL, SMTP, IMAP, POP3 or MySQL, the report's Target has that protocol.
func Check(ctx context.Context, target Target, options Options) (*Report, error) {
	if options.Timeout == 0 {
		options.Timeout = 5 * time.Second
	}
	if options.Greeting == 0 {
		options.Greeting = 30 * time.Second
	}
	if options.MaxConnections == 0 {
		options.MaxConnections = 200
		if options.All {
			options.MaxConnections = 1000
		}
	}
	if options.ServerName == "" {
		options.ServerName = target.Host
	}
	if options.Policy == nil {
		var err error
		if options.Policy, err = defaultPolicy(); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, options.maxTime(target.Protocol), ErrTime)
	defer cancel()
	report := &Report{Target: target, Policy: options.Policy.Name, Started: time.Now()}
	if options.At.IsZero() {
		options.At = report.Started
	}
	report.At = options.At.UTC().Format(time.DateOnly)
	report.Facts.Server = options.Server
	report.Facts.Certificates.CRLs = options.CheckCRL != nil
	if options.Extra {
		report.Facts.Extra = &ExtraFacts{Headers: map[string]string{}, OwnRoots: options.Roots != nil}
	}
	r := &run{target: target, options: options, facts: &report.Facts}
	err := r.all(ctx)
	report.Target = r.target // the protocol may have been recognised
	outOfTime := err != nil && ctx.Err() != nil && context.Cause(ctx) == ErrTime
	report.Interrupted = err != nil && ctx.Err() != nil && !outOfTime
	reason := "nothing looked at it"
	switch {
	case outOfTime:
		err = ErrTime
		reason = err.Error()
	case report.Interrupted:
		err, reason = ctx.Err(), "the audit was interrupted"
	case err != nil:
		reason = err.Error()
	}
	if err != nil {
		report.Error = reason
		complete(reflect.ValueOf(&report.Facts).Elem(), Outcome{Failed, reason})
	} else {
		complete(reflect.ValueOf(&report.Facts).Elem(), Outcome{NotTested, reason})
	}
	r.count(func(c *Cost) { report.Cost = *c })
	report.Seconds = time.Since(report.Started).Seconds()
	report.Judge(options.Policy, options.At)
	return report, err
}

// all runs all probes.
func (r *run) all(ctx context.Context) error {
	r.progress("addresses")
	if err := r.reach(ctx); err != nil {
		return err
	}
	for _, p := range probes {
		if err := ctx.Err(); err != nil {
			return err
		}
		r.progress(p.name)
		err := p.run(ctx, r)
		r.dropSpare()
		if errors.Is(err, ErrNoTLS) {
			r.facts.Address = "" // the other facts are about nothing
			return err
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

func (r *run) progress(name string) {
	if r.options.Progress != nil {
		r.options.Progress(name)
	}
}

// complete gives an outcome to all facts that have none.
func complete(v reflect.Value, outcome Outcome) {
	switch v.Kind() {
	case reflect.Struct:
		if o, ok := v.Addr().Interface().(*Outcome); ok {
			if o.State == "" {
				*o = outcome
			}
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				complete(v.Field(i), outcome)
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			complete(v.Elem(), outcome)
		}
	case reflect.Slice:
		for i := range v.Len() {
			complete(v.Index(i), outcome)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() { // elements of maps can't be changed in place
			e := reflect.New(v.Type().Elem()).Elem()
			e.Set(v.MapIndex(key))
			complete(e, outcome)
			v.SetMapIndex(key, e)
		}
	}
}

const defaultPolicyName = "fast-and-safe"

// defaultPolicy returns the policy of audits that name none.
func defaultPolicy() (*policy.Policy, error) { return policy.Get(defaultPolicyName) }
