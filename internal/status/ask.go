package status

import "fmt"

// A Problem is the reason why a process has not answered.
type Problem int

// The problems of [Ask].
const (
	NoProcess    Problem = iota + 1 // there is none with this ID
	OtherUser                       // the process belongs to another user
	OtherNetwork                    // the process is in another network namespace
	NotListening                    // the process has no socket
	Stranger                        // another process has the socket's name
	Refused                         // the process has closed the connection without an answer
	Failed                          // anything else
)

// An AskError is the error of [Ask].
type AskError struct {
	Problem Problem
	Text    string // the reason
	Do      string // what to do, or ""
}

func (e *AskError) Error() string { return e.Text }

func askError(problem Problem, do, format string, args ...any) error {
	return &AskError{problem, fmt.Sprintf(format, args...), do}
}
