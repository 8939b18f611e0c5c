// Package handover moves listeners and connections from a running process to the one that replaces
// it, so that a deployment closes no connection. Peers notice nothing. It is for Linux; on other
// systems [Start], [NewSender] and [NewReceiver] return an error that wraps [errors.ErrUnsupported].
//
// A [Server] does all of it for programs that have nothing else to hand over. The rest of the
// package is its parts.
//
// The two processes are joined by a Unix socket: [Start] starts the new program with one end of a
// pair, which [Inherited] returns there. If something else starts the new program, as systemd does,
// the old one has a socket with a path ([Listen]), to which the new one dials.
//
// The old process makes a [Sender]. NewSender returns when the new process asks for connections by
// [NewReceiver]; until then nothing has changed. Then the old process sends its listeners, and each
// of its connections:
//
//	sender, err := handover.NewSender(ctx, socket)
//	…
//	err = sender.SendListener(ctx, listener, []byte("https"))
//	…
//	err = sender.Send(ctx, conn, nil) // for each connection, at the same time
//	…
//	err = sender.Close()
//	listener.Close() // if err is nil
//
// The new process receives them:
//
//	socket, err := handover.Inherited() // nil if there is no old process
//	…
//	receiver, err := handover.NewReceiver(ctx, socket)
//	…
//	item, err := receiver.Receive(ctx) // until io.EOF
//	…
//	conn, err := item.Attach(context) // in a goroutine of its own
//
// A connection is in one process at each instant. Send first gives the new process the socket, and
// goes on only when that process has confirmed that it has it. Then [ossl.Conn.Detach] destroys the
// keys, and the state leaves. If anything fails before, the connection stays: errors of Send that
// wrap [ErrLost] are of connections that are lost, and after all other errors the connection goes
// on in this process. If a process dies, those connections are lost that are between the two, at
// most four.
//
// docs/HANDOVER.md is the guide, and has the format and the threat model.
package handover

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Errors that are wrapped by those of this package.
var (
	// ErrLost is the reason if a connection was closed because it was between the processes when
	// something failed.
	ErrLost = errors.New("the connection is lost")
	// ErrFull is the reason if the new process is short of descriptors. The connection stays in the
	// old process.
	ErrFull = errors.New("the new process has no descriptor left")
	// ErrUnfit is the reason if a connection or listener can't be handed over. It stays.
	ErrUnfit = errors.New("it can't be handed over")
	// ErrVersion is the reason if the two processes have no version of the format in common.
	ErrVersion = errors.New("the two processes have no version of the hand-over in common")
	// ErrUser is the reason if the two processes don't run as the same user.
	ErrUser = errors.New("the other process runs as another user")
	// ErrFormat is the reason if the other process doesn't keep to the format.
	ErrFormat = errors.New("the other process doesn't keep to the format")
)

// MaxData is the largest number of bytes that an application can send with a connection or a
// listener.
const MaxData = 1 << 20

// errorf makes an error of this package.
func errorf(format string, args ...any) error { return fmt.Errorf("handover: "+format, args...) }

// interruptible calls f. While it runs, the end of ctx makes the deadline that set sets pass. Its error
// is then ctx's.
func interruptible(ctx context.Context, set func(time.Time) error, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = set(time.Unix(1, 0))
		close(interrupted)
	})
	err := f()
	if !stop() {
		<-interrupted
		_ = set(time.Time{})
		if err != nil {
			return ctx.Err()
		}
	}
	return err
}

// enter takes a place in a semaphore.
func enter(ctx context.Context, places chan struct{}, failed <-chan struct{}) error {
	select {
	case <-failed:
		return errFailed
	default:
	}
	select {
	case places <- struct{}{}:
		return nil
	case <-failed:
		return errFailed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errFailed stands for the error with which a Sender has failed.
var errFailed = errors.New("handover: failed")
