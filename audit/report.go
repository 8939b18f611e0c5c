package audit

import (
	"time"

	"github.com/ossl-go/ossl/policy"
)

// A Report is the result of an audit of one target.
type Report struct {
	Target   Target    `json:"target"`
	Policy   string    `json:"policy"` // the name of the policy that the findings refer to
	At       string    `json:"at"`     // the day for which the facts are judged: "2026-11-23"
	Started  time.Time `json:"started"`
	Seconds  float64   `json:"seconds"`
	Facts    Facts     `json:"facts"`
	Results  []Result  `json:"results"`  // one for each rule, in the order of Rules
	Findings []Finding `json:"findings"` // the worst first
	Fast     Grade     `json:"fast"`
	Safe     Grade     `json:"safe"`
	Cost     Cost      `json:"cost"`
	// Interrupted reports whether the context stopped the audit. The report has the facts found
	// before.
	Interrupted bool `json:"interrupted,omitempty"`
	// Error is the error of Check, if there was one.
	Error string `json:"error,omitempty"`
}

// A State reports whether something was tested.
type State string

// The states.
const (
	Tested    State = "tested"
	NotTested State = "not tested" // it doesn't apply, or wasn't asked for
	Failed    State = "failed"     // the test failed: nothing is known about the server
)

// An Outcome is embedded in the facts that one probe finds.
type Outcome struct {
	State  State  `json:"state"`
	Reason string `json:"reason,omitempty"` // why it was not tested or failed
}

// A Result reports whether a rule was applied.
type Result struct {
	Rule     string `json:"rule"` // Rule.ID
	State    State  `json:"state"`
	Reason   string `json:"reason,omitempty"`
	Findings int    `json:"findings"`
}

// A Severity is a measure of how bad a finding is.
type Severity string

// The severities, with the best grade that a server with such a finding can have.
const (
	Info     Severity = "info"     // A
	Low      Severity = "low"      // B
	Medium   Severity = "medium"   // C
	High     Severity = "high"     // D
	Critical Severity = "critical" // F
)

// An Axis is the goal that a rule serves.
type Axis string

// The axes.
const (
	Fast Axis = "fast"
	Safe Axis = "safe"
)

// A Finding is a rule that the server breaks.
type Finding struct {
	Rule     string   `json:"rule"` // Rule.ID
	Axis     Axis     `json:"axis"`
	Severity Severity `json:"severity"`
	Title    string   `json:"title"`    // one line
	Evidence string   `json:"evidence"` // the server's behaviour, with values
	Reason   string   `json:"reason"`   // why it matters
	Source   string   `json:"source"`   // the policy's or the RFC's section
	Remedy   string   `json:"remedy"`   // for the server at hand, if Facts.Server is known
	Price    Price    `json:"price"`
	Address  string   `json:"address,omitempty"` // if it is about one of several addresses

	// settled reports that Remedy follows from the policy, or from the value that was found: the
	// product's directive doesn't replace it.
	settled bool
}

// A Price is the cost of a finding for each connection. A price that wasn't measured has no numbers
// and a Method that begins with "not measurable here".
type Price struct {
	RoundTrips   float64   `json:"round_trips,omitempty"`
	Millis       *Interval `json:"ms,omitempty"`        // of the client's time
	ServerMillis *Interval `json:"server_ms,omitempty"` // of the server's processor
	Bytes        int       `json:"bytes,omitempty"`
	Share        float64   `json:"share,omitempty"` // of connections that pay it, if not all: 0.5
	Method       string    `json:"method"`          // how it was measured, or why it wasn't
}

// An Interval is a median and the bounds of its 95 % confidence interval.
type Interval struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// A Grade is a mark from A to F, or "?" if a rule that could lower it failed to be tested.
type Grade struct {
	Mark string `json:"mark"`
	Rule string `json:"rule,omitempty"` // the rule that stops the next grade, or that failed to be tested
	Best string `json:"best,omitempty"` // if Mark is "?": the mark if the rules that failed find nothing
}

// Cost is the work that the audit made for the server.
type Cost struct {
	Connections int `json:"connections"` // TCP connections
	Handshakes  int `json:"handshakes"`  // completed handshakes
	Signatures  int `json:"signatures"`  // private-key operations of the server
	Retried     int `json:"retried"`     // connections that were lost, and made again alone
	Bytes       int `json:"bytes"`       // sent and received, without TCP's and IP's headers
}

// A Rule is a rule that servers are judged by.
type Rule struct {
	ID     string `json:"id"`
	Axis   Axis   `json:"axis"`
	Title  string `json:"title"`
	Reason string `json:"reason"`
	Source string `json:"source"`
	// info reports whether all findings of the rule have the severity info, so that it lowers no grade.
	info bool
	// extra reports whether the rule is judged only if Facts.Extra was asked for.
	extra bool
	// crls reports whether the rule is judged only if certificates were looked up in revocation lists.
	crls bool
	// check returns the findings of the rule, without the fields that the rule has too, and with
	// prices if the rule has any; and the outcome: that a rule wasn't tested, if its facts weren't.
	check func(*judgement) ([]Finding, Outcome)
	// settings are the policy's settings that the server's directives must follow. Their lines, as
	// "ossl config" writes them for the product, replace the remedies of findings.
	settings []string
	// remedies replace these lines. The requirements of a directive are in the product's manual,
	// and in the files that "ossl config" writes.
	remedies byProduct
	// impossible has the reasons why a product can't follow the rule by design. Only a rule about
	// something that is missing as a whole has it: values that a product can't turn off are excused
	// one by one.
	impossible byProduct
}

// byProduct has texts for some of Products.
type byProduct map[string]string

// A judgement is the input of a rule.
type judgement struct {
	facts  *Facts
	policy *policy.Policy
	at     time.Time      // the day on which it is judged
	onDay  *policy.Policy // the policy on that day, made by now
	// product is one of Products, or "" if it isn't known.
	product string
}
