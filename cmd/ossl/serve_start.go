package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// startPatience is the time that a start has, before and after the program is executed again: longer
// than the minute that certificates, keys and stores have, and shorter than restartPatience.
const startPatience = 80 * time.Second

// A startWatch stops the process if its start takes too long, or at a signal: the start may hang in
// a file system or in C, and then never returns.
type startWatch struct {
	ctx      context.Context // the command's, which a signal may have canceled
	patience time.Duration
	log      *slog.Logger
	output   *terminator.LogWriter
	exit     func(status int)
	signals  chan os.Signal // that stop the process

	stopping chan struct{}
	stopped  chan struct{} // closed when the watch has stopped and the process goes on
}

// begin begins to watch the start.
func (w *startWatch) begin() {
	w.signals = make(chan os.Signal, 1)
	w.stopping, w.stopped = make(chan struct{}), make(chan struct{})
	signal.Notify(w.signals, os.Interrupt, syscall.SIGTERM)
	go w.run()
}

func (w *startWatch) run() {
	late := time.NewTimer(w.patience)
	defer late.Stop()
	for ended := w.ctx.Done(); ; {
		select {
		case s := <-w.signals:
			w.interrupt(s)
			return
		case <-ended:
			ended = nil
			if s := interruption(w.ctx); s != syscall.SIGHUP { // after SIGHUP, the start reads the configuration anyway
				w.interrupt(s)
				return
			}
		case <-late.C:
			w.log.Error("the start is not complete in time: a file, a library or a store doesn't answer", "after", w.patience.String())
			w.end(exitFailure)
			return
		case <-w.stopping:
			close(w.stopped)
			return
		}
	}
}

// interrupt stops the process at a signal. Nothing is under way yet.
func (w *startWatch) interrupt(s os.Signal) {
	w.log.Info("ending during the start", "signal", s.String())
	notify(w.log, daemon.SdNotifyStopping)
	w.end(0)
}

func (w *startWatch) end(status int) {
	ctx, cancel := context.WithTimeout(context.Background(), logPatience)
	defer cancel()
	w.output.Close(ctx)
	w.exit(status)
}

// stop stops the watch. It returns a signal that the watch has not obeyed, or nil.
func (w *startWatch) stop() os.Signal {
	signal.Stop(w.signals) // and waits until those that have come are in the channel
	close(w.stopping)
	<-w.stopped
	select {
	case s := <-w.signals:
		return s
	default:
		return nil
	}
}

// last prepares for a program that is executed in place of this one. Signals that come later kill
// the process at once, since nobody gets them any more, or wait for the program.
func (w *startWatch) last() error {
	signal.Stop(commandSignals)
	s := w.stop()
	if s == nil {
		select {
		case s = <-commandSignals:
		default:
			s = interruption(w.ctx)
		}
	}
	if s != nil && s != syscall.SIGHUP {
		w.interrupt(s)
		return errors.New("ended by a signal") // not reached
	}
	return nil
}
