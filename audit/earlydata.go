package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/ossl-go/ossl/audit/internal/client"
	"github.com/ossl-go/ossl/audit/internal/hello"
)

// replays is how often a first flight is sent again.
const replays = 3

// probeEarly finds out whether the server accepts early data, and on demand whether it executes a
// request in early data again.
func probeEarly(ctx context.Context, r *run) error {
	f := &r.facts.EarlyData
	f.Replay.Outcome = Outcome{NotTested, "not asked for"}
	resumption := &r.facts.Resumption.Ticket13
	if resumption.State != Tested {
		f.Outcome = resumption.Outcome
	} else if session := r.earlySession(f); session == nil {
		f.Outcome = Outcome{State: Tested}
		if r.options.Replay {
			f.Replay.Outcome = Outcome{NotTested, "the server's tickets allow no early data"}
		}
	} else if r.options.Replay && r.target.Protocol == "https" {
		r.replay(ctx, session)
	} else {
		f.Accepted, f.Outcome = r.early(ctx, session)
		if r.options.Replay {
			f.Replay.Outcome = Outcome{NotTested, "only requests of HTTP are replayed"}
		}
	}
	return ctx.Err()
}

// earlySession takes a session that allows early data.
func (r *run) earlySession(f *EarlyDataFacts) *client.Session {
	for i := len(r.sessions13) - 1; i >= 0; i-- {
		if s := r.sessions13[i]; s.MaxEarly > 0 {
			f.Limit = int(s.MaxEarly)
			r.sessions13 = append(r.sessions13[:i:i], r.sessions13[i+1:]...)
			return s
		}
	}
	return nil
}

// early offers early data without content, which asks the server nothing.
func (r *run) early(ctx context.Context, session *client.Session) (bool, Outcome) {
	conn, err := r.shake(ctx, r.address, hello.TLS13, r.earlyConfig(session, []byte{}))
	if err != nil {
		return false, Outcome{Failed, err.Error()}
	}
	defer conn.Close()
	return conn.State.EarlyAccepted, Outcome{State: Tested}
}

func (r *run) earlyConfig(session *client.Session, data []byte) *client.Config {
	return &client.Config{Hello: client.Default(r.options.ServerName, hello.TLS13), Session: session, Early: data,
		ALPN: alpnOf(session)}
}

// alpnOf returns the protocol that a session's early data must be offered with.
func alpnOf(s *client.Session) []string {
	if s.ALPN == "" {
		return nil
	}
	return []string{s.ALPN}
}

// replay sends a GET in early data, and its first flight again as an attacker would. Whether the
// server executed a replay is seen from its answer, which only an executed request has.
func (r *run) replay(ctx context.Context, session *client.Session) {
	f := &r.facts.EarlyData
	path := r.options.ReplayPath
	if path == "" {
		path = "/"
	}
	request := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: ossl-check\r\nConnection: close\r\n\r\n",
		path, r.host())
	if len(request) > int(session.MaxEarly) {
		f.Accepted, f.Outcome = r.early(ctx, session)
		f.Replay.Outcome = Outcome{NotTested, fmt.Sprintf("the server's tickets allow %d bytes of early data, and a request needs %d",
			session.MaxEarly, len(request))}
		return
	}
	original, err := r.shake(ctx, r.address, hello.TLS13, r.earlyConfig(session, request))
	if err != nil {
		f.Outcome, f.Replay.Outcome = Outcome{Failed, err.Error()}, Outcome{Failed, err.Error()}
		return
	}
	defer original.Close()
	f.Outcome.State, f.Accepted = Tested, original.State.EarlyAccepted
	if !f.Accepted {
		f.Replay.Outcome = Outcome{NotTested, "the server accepts no early data"}
		return
	}
	start := time.Now()
	if _, err := readStatus(original); err != nil {
		f.Replay.Outcome = Outcome{Failed, fmt.Sprintf("the first request has no answer: %v", err)}
		return
	}
	// A server that waits for the end of the handshake doesn't answer a replay at all.
	wait := min(max(200*time.Millisecond, 10*time.Since(start)), r.options.Timeout)
	f.Replay.Outcome = Outcome{State: Tested}
	for range replays {
		if err := r.replayOnce(ctx, original.Conn, wait, &f.Replay); err != nil {
			f.Replay.Outcome = Outcome{Failed, err.Error()}
			return
		}
	}
}

// replayOnce replays a first flight once.
func (r *run) replayOnce(ctx context.Context, original *client.Conn, wait time.Duration, f *Replay) error {
	conn, err := r.shakeBy(ctx, r.address, func(conn net.Conn) (*client.Conn, error) { return original.Replay(conn) })
	if errors.As(err, new(*client.AlertError)) {
		f.Sent++ // refused
		return nil
	}
	if err != nil {
		return err
	}
	defer conn.Close()
	f.Sent++
	if !conn.State.EarlyAccepted {
		return nil // the request was discarded
	}
	conn.NetConn().SetDeadline(time.Now().Add(wait))
	status, err := readStatus(conn)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, new(*client.AlertError)),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
	case err != nil:
		return fmt.Errorf("the answer to a replay: %w", err)
	case status == http.StatusTooEarly:
		f.TooEarly++
	default:
		f.Executed++
	}
	return nil
}

// readStatus reads the status of a response.
func readStatus(conn io.Reader) (int, error) {
	response, err := readResponse(conn)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, nil
}
