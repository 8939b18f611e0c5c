package main

import (
	"context"
	"fmt"
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

// A startWatch ends the process if its start takes too long, or at a signal: the start may hang in a
// file system or in C, and then never returns.
type startWatch struct {
	log     *slog.Logger
	output  *terminator.LogWriter
	signals chan os.Signal // that end the process
	stopped chan struct{}
	exit    func(status int)
}

// watchStart watches a start until stop is called. ctx is the command's, which a signal may have ended.
func watchStart(
	ctx context.Context, patience time.Duration, log *slog.Logger, output *terminator.LogWriter, exit func(int),
) *startWatch {
	w := &startWatch{log: log, output: output, signals: make(chan os.Signal, 1), stopped: make(chan struct{}), exit: exit}
	signal.Notify(w.signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		late := time.NewTimer(patience)
		defer late.Stop()
		for ended := ctx.Done(); ; {
			select {
			case s := <-w.signals:
				w.interrupt(s)
			case <-ended:
				ended = nil
				if s := interruption(ctx); s != syscall.SIGHUP { // which has the configuration read, and that is to come
					w.interrupt(s)
				}
				continue
			case <-late.C:
				w.log.Error("the start is not complete in time: a file, a library or a store doesn't answer", "after", patience.String())
				w.end(exitFailure)
			case <-w.stopped:
			}
			return
		}
	}()
	return w
}

// interrupt ends the process at a signal. Nothing is under way yet.
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

// stop ends the watch. Signals that come later are for the server.
func (w *startWatch) stop() {
	signal.Stop(w.signals)
	close(w.stopped)
}

// last prepares for a program that is executed in place of this one. From now on the signals that end
// the process do so at once, since this process will not get to obey them.
func (w *startWatch) last() error {
	signal.Reset(os.Interrupt, syscall.SIGTERM)
	select {
	case s := <-w.signals:
		w.interrupt(s)
		return fmt.Errorf("ended by the signal: %s", s) // not reached
	default:
		return nil
	}
}

// again undoes what last has done, for a program that has not been executed.
func (w *startWatch) again(signals chan<- os.Signal, watched []os.Signal) {
	signal.Notify(w.signals, os.Interrupt, syscall.SIGTERM)
	signal.Notify(signals, watched...)
}
