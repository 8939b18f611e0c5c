package audit

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ossl-go/ossl/policy"
)

// withProbes runs the test with these probes only.
func withProbes(t *testing.T, list ...probe) {
	t.Helper()
	old := probes
	probes = list
	t.Cleanup(func() { probes = old })
}

// dialTo returns a Dial that reaches the addresses in good, and is refused by the others.
func dialTo(good ...string) func(context.Context, string, string) (net.Conn, error) {
	return func(_ context.Context, _, address string) (net.Conn, error) {
		if !slices.Contains(good, address) {
			return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		}
		here, _ := net.Pipe()
		return here, nil
	}
}

var two = []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:443"), netip.MustParseAddrPort("[2001:db8::1]:443")}

// resultOf returns the result of a rule.
func resultOf(t *testing.T, r *Report, rule string) Result {
	t.Helper()
	for _, result := range r.Results {
		if result.Rule == rule {
			return result
		}
	}
	t.Fatalf("no result of %s", rule)
	return Result{}
}

// TestUnreachable: no address answers, so everything has failed to be tested, and the report has no
// finding about the server.
func TestUnreachable(t *testing.T) {
	withProbes(t, probe{"never", func(context.Context, *run) error { t.Error("a probe ran"); return nil }})
	r, err := Check(t.Context(), Target{Host: "example.test", Port: 443, Protocol: "https"}, Options{Addresses: two, Dial: dialTo()})
	if !errors.Is(err, ErrUnreachable) || r.Error == "" {
		t.Fatalf("error %v, report's %q", err, r.Error)
	}
	if r.Fast.Mark != "?" || len(r.Findings) != 0 || r.Count(Tested) != 0 {
		t.Errorf("%+v, findings %+v, %d tested", r.Fast, r.Findings, r.Count(Tested))
	}
	if r.Cost.Connections != 4 || r.Cost.Retried != 2 {
		t.Errorf("each address is to be tried twice: %+v", r.Cost)
	}
	noEmptyOutcome(t, reflect.ValueOf(r.Facts), "Facts")
}

// TestOneUnreachable: the audit is of the address that answers, and the other is a finding.
func TestOneUnreachable(t *testing.T) {
	withProbes(t)
	r, err := Check(t.Context(), Target{Host: "example.test", Port: 443, Protocol: "tls"},
		Options{Addresses: two, Dial: dialTo("[2001:db8::1]:443")})
	if err != nil {
		t.Fatal(err)
	}
	if r.Facts.Address != "[2001:db8::1]:443" || resultOf(t, r, "address-unreachable").Findings != 1 {
		t.Errorf("address %s, results %+v", r.Facts.Address, r.Results)
	}
	i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Rule == "address-unreachable" })
	if i < 0 || r.Findings[i].Address != "192.0.2.1:443" || r.Findings[i].Price.Method == "" {
		t.Errorf("findings %+v", r.Findings)
	}
}

// TestNoRoute: an address that this host has no route to leads to no finding about the server.
func TestNoRoute(t *testing.T) {
	withProbes(t)
	if routeless("127.0.0.1:1") {
		t.Error("no route to loopback")
	}
	old := routeless
	t.Cleanup(func() { routeless = old })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	good := netip.MustParseAddrPort(l.Addr().String())
	other := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), good.Port()) // nobody listens there
	routeless = func(address string) bool { return address == other.String() }
	r, err := Check(t.Context(), Target{Host: "example.test", Port: 443, Protocol: "tls"},
		Options{Addresses: []netip.AddrPort{other, good}})
	if err != nil {
		t.Fatal(err)
	}
	result := resultOf(t, r, "address-unreachable")
	if result.State != NotTested || result.Findings != 0 || r.Facts.Address != good.String() || r.Cost.Retried != 0 {
		t.Errorf("%+v, %+v", result, r.Facts.Addresses)
	}
}

func TestOneAddress(t *testing.T) {
	withProbes(t)
	r, err := Check(t.Context(), Target{Host: "example.test", Port: 443, Protocol: "tls"},
		Options{Addresses: two, Dial: dialTo("192.0.2.1:443", "[2001:db8::1]:443"), OneAddress: true})
	if err != nil || r.Cost.Connections != 1 || r.Facts.Addresses[1].State != NotTested {
		t.Errorf("error %v, %+v, %+v", err, r.Cost, r.Facts.Addresses)
	}
}

func TestMaxConnections(t *testing.T) {
	withProbes(t)
	r, err := Check(t.Context(), Target{Host: "example.test", Port: 443, Protocol: "tls"},
		Options{Addresses: two, Dial: dialTo("192.0.2.1:443", "[2001:db8::1]:443"), MaxConnections: 1})
	if err != nil || r.Cost.Connections != 1 {
		t.Errorf("error %v, %+v", err, r.Cost)
	}
}

func TestNoAddress(t *testing.T) {
	resolver := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}
	}}
	r, err := Check(t.Context(), Target{Host: "name.invalid", Port: 443, Protocol: "tls"}, Options{Resolver: resolver})
	var dns *net.DNSError
	if !errors.As(err, &dns) || r == nil || r.Fast.Mark != "?" {
		t.Errorf("error %v, report %+v", err, r)
	}
}

// TestInterrupted: the facts found before the end of the context stay, and nothing else is claimed.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	withProbes(t,
		probe{"first", func(_ context.Context, r *run) error {
			r.facts.Server = "nginx/1.26"
			r.facts.Options.Fallback = Switch{Outcome{State: Tested}, true}
			return nil
		}},
		probe{"second", func(ctx context.Context, _ *run) error { cancel(); <-ctx.Done(); return ctx.Err() }},
		probe{"third", func(context.Context, *run) error { t.Error("ran after the end"); return nil }},
	)
	r, err := Check(ctx, Target{Host: "example.test", Port: 443, Protocol: "tls"},
		Options{Addresses: two[:1], Dial: dialTo("192.0.2.1:443")})
	if !errors.Is(err, context.Canceled) || !r.Interrupted || r.Facts.Server != "nginx/1.26" {
		t.Errorf("error %v, report %+v", err, r)
	}
	if f := r.Facts.Options.Fallback; f.State != Tested || !f.On {
		t.Errorf("the fact is %+v", f)
	}
	if f := r.Facts.Options.Compression; f.State != Failed || f.Reason != "the audit was interrupted" {
		t.Errorf("the missing fact is %+v", f)
	}
	noEmptyOutcome(t, reflect.ValueOf(r.Facts), "Facts")
}

// noEmptyOutcome fails if a part of the facts doesn't report whether it was tested.
func noEmptyOutcome(t *testing.T, v reflect.Value, path string) {
	t.Helper()
	if o, ok := v.Interface().(Outcome); ok {
		if o.State == "" {
			t.Errorf("%s has no outcome", path)
		}
		return
	}
	if v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[time.Time]() {
		for i := range v.NumField() {
			noEmptyOutcome(t, v.Field(i), path+"."+v.Type().Field(i).Name)
		}
	}
}

// TestComplete: facts in slices, maps and behind pointers get an outcome too, and facts with an
// outcome keep it.
func TestComplete(t *testing.T) {
	f := Facts{
		Addresses: []AddressFacts{{}, {Outcome: Outcome{State: Tested}}},
		Protocols: ProtocolFacts{Versions: map[string]VersionFacts{"TLS 1.2": {Offered: true}}},
	}
	complete(reflect.ValueOf(&f).Elem(), Outcome{Failed, "no"})
	if f.Addresses[0].State != Failed || f.Addresses[1].State != Tested {
		t.Errorf("addresses %+v", f.Addresses)
	}
	if v := f.Protocols.Versions["TLS 1.2"]; v.State != Failed || !v.Offered {
		t.Errorf("versions %+v", v)
	}
	noEmptyOutcome(t, reflect.ValueOf(f), "Facts")
}

// TestGrades: the worst finding decides, and a rule that failed makes every grade unknown, except F.
func TestGrades(t *testing.T) {
	old := rules
	t.Cleanup(func() { rules = old })
	rule := func(id string, axis Axis, state State, findings ...Severity) Rule {
		return Rule{ID: id, Axis: axis, Title: id, check: func(*judgement) (all []Finding, _ Outcome) {
			for _, s := range findings {
				all = append(all, Finding{Severity: s})
			}
			return all, Outcome{State: state}
		}}
	}
	lowersNone := rule("a", Fast, Failed)
	lowersNone.info = true
	for name, c := range map[string]struct {
		rules []Rule
		want  Grade
	}{
		"nothing":      {nil, Grade{Mark: "A"}},
		"info":         {[]Rule{rule("a", Fast, Tested, Info)}, Grade{Mark: "A"}},
		"low":          {[]Rule{rule("a", Fast, Tested, Low)}, Grade{Mark: "B", Rule: "a"}},
		"medium":       {[]Rule{rule("a", Fast, Tested, Low), rule("b", Fast, Tested, Medium)}, Grade{Mark: "C", Rule: "b"}},
		"high":         {[]Rule{rule("a", Fast, Tested, Low, High)}, Grade{Mark: "D", Rule: "a"}},
		"critical":     {[]Rule{rule("a", Fast, Tested, Critical), rule("b", Fast, Failed)}, Grade{Mark: "F", Rule: "a"}},
		"first":        {[]Rule{rule("a", Fast, Tested, High), rule("b", Fast, Tested, High)}, Grade{Mark: "D", Rule: "a"}},
		"failed":       {[]Rule{rule("a", Fast, Tested, Medium), rule("b", Fast, Failed)}, Grade{Mark: "?", Rule: "b", Best: "C"}},
		"failed info":  {[]Rule{lowersNone}, Grade{Mark: "A"}},
		"not tested":   {[]Rule{rule("a", Fast, NotTested)}, Grade{Mark: "A"}},
		"other axis":   {[]Rule{rule("a", Safe, Tested, High), rule("b", Safe, Failed)}, Grade{Mark: "A"}},
		"untested one": {[]Rule{rule("a", Fast, NotTested, High)}, Grade{Mark: "A"}}, // its findings don't count
	} {
		rules = c.rules
		var r Report
		r.Judge(&policy.Policy{Name: "p"}, time.Now())
		if r.Fast != c.want {
			t.Errorf("%s: %+v, want %+v", name, r.Fast, c.want)
		}
		r.Judge(&policy.Policy{Name: "q"}, time.Now())
		if r.Fast != c.want || r.Policy != "q" || len(r.Results) != len(c.rules) {
			t.Errorf("%s, judged again: %+v", name, r)
		}
	}
}

func TestProduct(t *testing.T) {
	for server, want := range map[string]string{
		"nginx": "nginx", "nginx/1.22.1": "nginx", "Apache/2.4.62 (Debian)": "apache", "Caddy": "caddy",
		"openresty/1.25.3.1": "nginx", "lighttpd/1.4.69": "lighttpd", "": "", "Microsoft-IIS/10.0": "", "nginxish": "",
	} {
		if got := Product(server); got != want {
			t.Errorf("%q: %q, want %q", server, got, want)
		}
	}
}

// TestRulesReadAlike: the texts of all rules have one form.
func TestRulesReadAlike(t *testing.T) {
	ids := map[string]bool{}
	for _, r := range Rules() {
		if ids[r.ID] || !regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)+$`).MatchString(r.ID) {
			t.Errorf("%q is used twice, or isn't words with hyphens", r.ID)
		}
		ids[r.ID] = true
		if r.Axis != Fast && r.Axis != Safe {
			t.Errorf("%s: axis %q", r.ID, r.Axis)
		}
		if n := len([]rune(r.Title)); n == 0 || n > 70 || strings.HasSuffix(r.Title, ".") ||
			strings.ToUpper(r.Title[:1]) != r.Title[:1] {
			t.Errorf("%s: the title %q isn't one short line that begins with a capital and has no full stop", r.ID, r.Title)
		}
		if !strings.HasSuffix(r.Reason, ".") || strings.ToUpper(r.Reason[:1]) != r.Reason[:1] || strings.Contains(r.Reason, "  ") {
			t.Errorf("%s: the reason %q isn't sentences", r.ID, r.Reason)
		}
		if r.Source == "" || strings.HasSuffix(r.Source, ".") {
			t.Errorf("%s: the source %q", r.ID, r.Source)
		}
		for _, texts := range []byProduct{r.remedies, r.impossible} {
			for product, text := range texts {
				if !slices.Contains(Products, product) || text == "" {
					t.Errorf("%s has for %s: %q", r.ID, product, text)
				}
			}
		}
	}
}
