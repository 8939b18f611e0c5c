package main

import (
	"fmt"
	"io"
	"time"

	pretty "github.com/jedib0t/go-pretty/v6/progress"
	"github.com/jedib0t/go-pretty/v6/text"
)

// A progress shows the progress of a measurement.
type progress interface {
	start(rounds, stepsPerRound int)
	step(round int, what string) // names the work that begins
	stop()
}

// newProgress returns a bar on a terminal, and plain lines elsewhere.
func newProgress(w io.Writer) progress {
	if isTerminal(w) {
		return &barProgress{w: w}
	}
	return &lineProgress{w: w, shown: -1}
}

// A lineProgress writes a line for each round.
type lineProgress struct {
	w             io.Writer
	rounds, shown int
}

func (p *lineProgress) start(rounds, _ int) { p.rounds = rounds }

func (p *lineProgress) step(round int, _ string) {
	if round != p.shown {
		p.shown = round
		fmt.Fprintf(p.w, "measuring: round %d of %d\n", round+1, p.rounds)
	}
}

func (p *lineProgress) stop() {}

// A barProgress draws a bar, which it removes at the end.
type barProgress struct {
	w       io.Writer
	bar     pretty.Writer
	tracker *pretty.Tracker
	begun   bool // the first step has begun, and none is complete
	done    chan struct{}
}

func (p *barProgress) start(rounds, stepsPerRound int) {
	p.bar = pretty.NewWriter()
	p.bar.SetOutputWriter(p.w)
	p.bar.SetMessageLength(48)
	p.bar.SetTrackerLength(24)
	p.bar.SetUpdateFrequency(250 * time.Millisecond)
	p.bar.SetStyle(pretty.StyleBlocks)
	p.bar.Style().Options.PercentFormat = "%4.0f%%"
	p.bar.Style().Options.Separator = "  "
	p.bar.Style().Visibility.Value = false
	p.bar.Style().Visibility.ETA = true
	p.bar.Style().Visibility.Time = false
	p.tracker = &pretty.Tracker{Message: "getting ready", Total: int64(rounds * stepsPerRound)}
	p.bar.AppendTracker(p.tracker)
	p.done = make(chan struct{})
	go func() {
		p.bar.Render()
		close(p.done)
	}()
}

func (p *barProgress) step(_ int, what string) {
	if p.begun {
		p.tracker.Increment(1)
	}
	p.begun = true
	p.tracker.UpdateMessage(what)
}

func (p *barProgress) stop() {
	for stopped := false; !stopped; {
		p.bar.Stop() // has no effect before Render has begun
		select {
		case <-p.done:
			stopped = true
		case <-time.After(10 * time.Millisecond):
		}
	}
	// Tracker.RemoveOnCompletion would leave a line for each update (go-pretty 6.8.3), so the one
	// line is erased here.
	fmt.Fprint(p.w, text.CursorUp.Sprint(), text.EraseLine.Sprint())
}
