package audit

import (
	"cmp"
	"slices"
	"time"

	"github.com/ossl-go/ossl/policy"
)

// severities from the mildest, each with the best grade that it allows.
var severities = []struct {
	severity Severity
	mark     string
}{{Info, "A"}, {Low, "B"}, {Medium, "C"}, {High, "D"}, {Critical, "F"}}

// Rank returns a number that is greater for worse severities: 0 for Info, and -1 if s is none of the
// severities.
func (s Severity) Rank() int {
	for i := range severities {
		if severities[i].severity == s {
			return i
		}
	}
	return -1
}

// Judge judges the report's facts by a policy, as on a day. It replaces the results, findings and
// grades of an earlier judgement, so a report can be judged again, by another policy or for another
// day, without another audit.
func (r *Report) Judge(p *policy.Policy, at time.Time) {
	r.Policy, r.At = p.Name, at.UTC().Format(time.DateOnly)
	r.Results, r.Findings = nil, []Finding{}
	j := &judgement{facts: &r.Facts, policy: p, at: at, product: productOf(&r.Facts, r.Target)}
	order := map[string]int{}
	for i, rule := range rules {
		if rule.extra && r.Facts.Extra == nil || rule.crls && !r.Facts.Certificates.CRLs {
			continue
		}
		order[rule.ID] = i
		findings, outcome := rule.check(j)
		if outcome.State != Tested {
			findings = nil
		}
		if why := rule.impossible[j.product]; why != "" && len(findings) > 0 {
			findings, outcome = nil, Outcome{NotTested, "not applicable here: " + why}
		}
		for _, f := range findings {
			f.Rule, f.Axis = rule.ID, rule.Axis
			f.Title, f.Reason = cmp.Or(f.Title, rule.Title), cmp.Or(f.Reason, rule.Reason)
			f.Source = cmp.Or(f.Source, rule.Source)
			if !f.settled {
				f.Remedy = j.remedyFor(rule, f.Remedy)
			}
			f.settled = false
			f.Price = r.Facts.priced(f.Price)
			r.Findings = append(r.Findings, f)
		}
		r.Results = append(r.Results, Result{rule.ID, outcome.State, outcome.Reason, len(findings)})
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Severity.Rank(), a.Severity.Rank()), cmp.Compare(order[a.Rule], order[b.Rule]))
	})
	r.Fast, r.Safe = r.grade(Fast), r.grade(Safe)
}

// notPriced is the method of findings that change no handshake: without them, a connection would cost
// the same.
const notPriced = "not measurable here"

// grade returns the grade of an axis, which its worst finding determines. A rule that failed to be
// tested could lower every grade except F, unless its findings lower none.
func (r *Report) grade(axis Axis) Grade {
	grade := Grade{Mark: "A"}
	for _, f := range r.Findings { // the worst is the first
		if f.Axis == axis && f.Severity != Info {
			grade = Grade{Mark: severities[max(f.Severity.Rank(), 0)].mark, Rule: f.Rule}
			break
		}
	}
	if grade.Mark == "F" {
		return grade
	}
	for _, result := range r.Results {
		i := slices.IndexFunc(rules, func(rule Rule) bool { return rule.ID == result.Rule })
		if rules[i].Axis == axis && result.State == Failed && !rules[i].info {
			return Grade{Mark: "?", Rule: result.Rule, Best: grade.Mark}
		}
	}
	return grade
}

// Worst returns the worst severity of the findings, and false if there are none.
func (r *Report) Worst() (Severity, bool) {
	if len(r.Findings) == 0 {
		return "", false
	}
	return r.Findings[0].Severity, true
}

// Count returns the number of rules in a state.
func (r *Report) Count(state State) (n int) {
	for _, result := range r.Results {
		if result.State == state {
			n++
		}
	}
	return n
}
