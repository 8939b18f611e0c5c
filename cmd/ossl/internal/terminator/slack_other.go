//go:build !linux

package terminator

// RelaxTimers does nothing: only Linux has a timer slack.
func RelaxTimers() error { return nil }
