package main

import "regexp"

// A difference is a disagreement between an audit and another tool.
type difference struct{ server, fact, tool, ours, theirs string }

// A decision says who is right about differences, and the fact that shows it. Empty patterns match
// everything.
type decision struct {
	server, fact, tool, ours, theirs string // regular expressions for the whole
	right, why                       string
}

// decide returns the tool that is right, and why, or nothing.
func (d difference) decide() (right, why string) {
	for _, one := range decisions {
		if matches(one.server, d.server) && matches(one.fact, d.fact) && matches(one.tool, d.tool) &&
			matches(one.ours, d.ours) && matches(one.theirs, d.theirs) {
			return one.right, one.why
		}
	}
	return "", ""
}

func matches(pattern, text string) bool {
	return pattern == "" || regexp.MustCompile("^(?:"+pattern+")$").MatchString(text)
}

var decisions = []decision{}
