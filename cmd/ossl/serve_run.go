package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"github.com/ossl-go/ossl/audit/report"
	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// run serves until a signal stops it.
func (f *serverFlags) run(cmd *cobra.Command) error {
	if err := f.check(cmd); err != nil {
		return err
	}
	// With a receiver for SIGPIPE, a write fails when the log's reader has exited; otherwise
	// SIGPIPE would kill the process.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	output := terminator.NewLogWriter(cmd.ErrOrStderr())
	log, err := f.logger(output)
	if err == nil {
		err = f.runLogged(cmd, output, log)
		if err != nil && f.logFormat == "json" && !errors.As(err, new(usageError)) {
			log.Error("failed", "error", err.Error())
			err = exitStatus(exitFailure)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), logPatience)
	defer cancel()
	if !output.Close(ctx) && err != nil {
		return exitStatus(exitFailure) // the reason could not be logged either
	}
	return err
}

// logPatience is how long the process waits for the reader of the log before it exits.
const logPatience = 2 * time.Second

// runLogged serves with a log whose lines pass through output.
func (f *serverFlags) runLogged(cmd *cobra.Command, output *terminator.LogWriter, log *slog.Logger) error {
	// From the first moment on: the start may take long.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, append([]os.Signal{syscall.SIGHUP}, restartSignals...)...)
	defer signal.Stop(signals)
	watch := &startWatch{ctx: cmd.Context(), patience: startPatience, log: log, output: output, exit: os.Exit}
	watch.begin()
	inherited, err := terminator.Inherit()
	if err != nil {
		return err
	}
	defer func() { inherited.Abandon() }() // of sockets that no server has
	config, err := f.readFirst(cmd, inherited)
	if err != nil {
		if f.file == "" {
			return usageError(err.Error())
		}
		return err
	}
	// This process may execute the program again here, and not return. It has logged nothing yet.
	tried := false
	inherited, err = terminator.Settle(config, inherited, func() error {
		tried = true
		return watch.last()
	})
	if tried {
		watch.begin() // once more
	}
	if err != nil {
		return err
	}
	terminator.HoldBallast()
	// The library logs there if OSSL_KEYLOG is set, and net/http's transport, by package log, if a
	// backend sends data without a request.
	slog.SetDefault(log)
	stdlog.SetFlags(0)
	stdlog.SetOutput(withoutData{slog.NewLogLogger(log.Handler(), slog.LevelWarn).Writer()})

	starting, cancel := context.WithTimeout(context.Background(), time.Minute)
	server, err := terminator.StartWith(starting, config, inherited, log, log)
	cancel()
	if err != nil {
		return err
	}
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if s := watch.stop(); s != nil {
		watch.interrupt(s)
	}
	server.CountLog(output)
	announce(server, config, inherited.TakesOver(), log)
	if err := inherited.Ready(); err != nil {
		log.Warn("the former process has ended", "error", err)
	}
	return f.serve(cmd, server, config, signals, log)
}

// withoutData leaves out the data that net/http quotes if a backend sends it without a request: it may
// be a part of a response, and the log has no secrets.
type withoutData struct{ io.Writer }

func (w withoutData) Write(line []byte) (int, error) {
	kept, _, _ := bytes.Cut(line, []byte(" starting with "))
	if _, err := w.Writer.Write(kept); err != nil {
		return 0, err
	}
	return len(line), nil
}

// serve obeys signals until one stops the server.
func (f *serverFlags) serve(
	cmd *cobra.Command, server *terminator.Server, config *terminator.Config, signals <-chan os.Signal, log *slog.Logger,
) error {
	var restarting *restart
	for ending := false; !ending; {
		select {
		case s := <-signals:
			switch {
			case s == syscall.SIGHUP:
				if changed, err := f.reload(cmd, server); err != nil {
					log.Error("reload failed, the old configuration stays", "error", err)
				} else {
					config = changed
					log.Info("reloaded")
				}
				notify(log, daemon.SdNotifyReady)
			case isRestart(s) && restarting != nil:
				log.Warn("a restart is under way already")
			case isRestart(s):
				log.Info("restarting")
				restarting = beginRestart(server)
			default:
				log.Info("ending", "signal", s.String(), "at most", config.Limits.Drain.String())
				restarting.abandon(s, log)
				notify(log, daemon.SdNotifyStopping)
				ending = true
			}
		case err := <-restarting.finished():
			restarting.cancel()
			if ending = err == nil; ending {
				pid := restarting.process.Process.Pid
				log.Info("another process serves, this one ends", "pid", pid, "at most", config.Limits.Drain.String())
				notify(log, fmt.Sprintf("MAINPID=%d", pid))
			} else {
				log.Error("restart failed, this process goes on", "error", err)
				restarting = nil
			}
		}
	}
	if err := drain(server, config, signals); err != nil {
		return err
	}
	log.Info("ended")
	return nil
}

// drain stops the server. A further signal cuts off the connections that are left.
func drain(server *terminator.Server, config *terminator.Config, signals <-chan os.Signal) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(config.Limits.Drain))
	defer cancel()
	done := make(chan int)
	go func() { done <- server.Drain(ctx) }()
	for {
		select {
		case cut := <-done:
			if cut > 0 {
				return fmt.Errorf("connections cut off: %d", cut)
			}
			return nil
		case s := <-signals:
			if s != syscall.SIGHUP && !isRestart(s) {
				cancel()
			}
		}
	}
}

// reload reads the configuration again, and passes it to the server.
func (f *serverFlags) reload(cmd *cobra.Command, server *terminator.Server) (*terminator.Config, error) {
	config, err := f.read(cmd)
	if err != nil {
		server.ReloadFailed()
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return config, server.Reload(ctx, config)
}

// announce reports that the server listens, in the log and to systemd. systemd doesn't listen to a
// process that is not the main one yet: the former one is, and speaks for a server that takes over
// from it.
func announce(server *terminator.Server, config *terminator.Config, takesOver bool, log *slog.Logger) {
	addresses, admin := server.Addrs()
	var texts []string
	for _, a := range addresses {
		texts = append(texts, a.String())
	}
	attributes := []any{"addresses", texts, "engine", config.Engine, "landlock", server.Landlock()}
	status := "STATUS=listening on " + strings.Join(texts, ", ")
	if admin != nil {
		attributes = append(attributes, "admin", admin.String())
		status += "; admin on " + admin.String()
	}
	log.Info("listening", attributes...)
	if takesOver {
		return
	}
	notify(log, status+"\n"+daemon.SdNotifyReady)
}

// notify sends a state to the service manager, if there is one: sd_notify(3).
func notify(log *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("sd_notify", "error", err)
	}
}

// logger returns the logger of the server.
func (f *serverFlags) logger(output io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return nil, usageError(fmt.Sprintf("--log-level %q is none of debug, info, warn, error", f.logLevel))
	}
	options := &slog.HandlerOptions{Level: level}
	if f.logFormat == "json" {
		return slog.New(slog.NewJSONHandler(jsonLines{output}, options)), nil
	}
	return slog.New(slog.NewTextHandler(output, options)), nil
}

// jsonLines are the lines of a log in JSON. Names and paths of clients are in them: package slog escapes
// in JSON fewer characters than in text.
type jsonLines struct{ to io.Writer }

func (l jsonLines) Write(b []byte) (int, error) {
	if _, err := io.WriteString(l.to, report.EscapeControls(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}
