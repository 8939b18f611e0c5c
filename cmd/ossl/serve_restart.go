package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// restartPatience is the time after which a restart fails if the new process doesn't serve yet. Its
// start has a minute for certificates, keys and stores.
const restartPatience = 90 * time.Second

// A restart is the start of a process that takes over the sockets of this one.
type restart struct {
	process *exec.Cmd
	done    chan error // nil if the process serves
	cancel  context.CancelFunc
}

// isRestart reports whether a signal asks for a restart.
func isRestart(s os.Signal) bool { return slices.Contains(restartSignals, s) }

// beginRestart starts the program again: the file at its path, which may be a newer version, with the
// same arguments.
func beginRestart(server *terminator.Server) *restart {
	r := &restart{done: make(chan error, 1)}
	path, err := os.Executable()
	if err == nil && os.Getpid() == 1 {
		err = fmt.Errorf("this is process 1, of a container for example, which ends with it")
	}
	if err != nil {
		r.done <- err
		r.cancel = func() {}
		return r
	}
	r.process = exec.Command(path)
	r.process.Args = terminator.CommandLine()
	r.process.Stdin, r.process.Stdout, r.process.Stderr = os.Stdin, os.Stdout, os.Stderr
	ctx, cancel := context.WithTimeout(context.Background(), restartPatience)
	r.cancel = cancel
	go func() { r.done <- server.HandOver(ctx, r.process) }()
	return r
}

// finished returns the channel that gets the result, or nil without a restart.
func (r *restart) finished() <-chan error {
	if r == nil {
		return nil
	}
	return r.done
}

// abandon cancels a restart that is under way, since the service must stop. If the new process
// serves already, it gets the signal.
func (r *restart) abandon(signal os.Signal, log *slog.Logger) {
	if r == nil {
		return
	}
	r.cancel()
	if <-r.done != nil {
		return
	}
	if err := r.process.Process.Signal(signal); err != nil {
		log.Error("the new process can't be ended", "pid", r.process.Process.Pid, "error", err)
	}
}
