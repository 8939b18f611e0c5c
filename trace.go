package ossl

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/record"
	"github.com/ossl-go/ossl/internal/trace"
	"github.com/ossl-go/ossl/tlsnames"
)

// envTrace names the environment variable with the file that all handshakes are traced to, or
// "stderr".
const envTrace = "OSSL_TRACE"

// WithTrace prints the messages of each handshake to w, as openssl s_client -trace does: their
// extensions, names, certificates and the time since the handshake began. Keys, random numbers,
// tickets and signatures are not printed, only their lengths. Each message is one Write. The traces
// of all Contexts share a lock, so w sees one Write at a time, and a Write that blocks stops other
// handshakes. w must not use a traced connection itself. Errors of w are ignored.
//
// The environment variable OSSL_TRACE, which is "stderr" or the name of a file to append to, does
// the same for the connections of all other Contexts. Tickets that a TLS 1.3 client reads after its
// handshake are only printed if it has a ClientSessionCache.
func WithTrace(w io.Writer) Option {
	return func(o *options) error {
		if w == nil {
			return &ConfigError{Field: "WithTrace", Reason: "nil"}
		}
		o.trace = w
		return nil
	}
}

// traceFile returns the writer that the environment names for traces, or nil.
func traceFile() (io.Writer, error) {
	switch name := os.Getenv(envTrace); name {
	case "":
		return nil, nil
	case "stderr":
		return os.Stderr, nil
	default:
		file, _, err := environmentFiles.open(name)
		if err != nil {
			return nil, &ConfigError{Field: envTrace, Reason: "the file can't be written", Err: err}
		}
		return file, nil
	}
}

// A tracer prints the messages of a connection's handshake.
type tracer struct {
	to      io.Writer
	began   time.Time
	prefix  string
	shard   string // "" if there is only one
	printer trace.Printer
}

var (
	traced  atomic.Uint64 // connections
	traceMu sync.Mutex    // held for each Write
)

// newTracer returns a tracer for a connection that has begun its handshake.
func (c *Conn) newTracer(to io.Writer) *tracer {
	role := "server"
	if c.isClient {
		role = "client"
	}
	t := &tracer{to: to, began: time.Now()}
	peer := fmt.Sprint(c.conn.RemoteAddr())
	if quoted := strconv.Quote(peer); quoted != `"`+peer+`"` { // the name of a Unix socket may have line feeds
		peer = quoted
	}
	t.prefix = fmt.Sprintf("[%d %s %s", traced.Add(1), role, peer)
	return t
}

// started notes the shard of a connection that has begun.
func (t *tracer) started(ssl *libssl.Conn) {
	if shard, shards := ssl.Shard(); shards > 1 {
		t.shard = fmt.Sprintf("shard %d of %d", shard+1, shards)
	}
}

// print prints a text of some lines, the first one with the connection and the time.
func (t *tracer) print(text string) {
	text = fmt.Sprintf("%s %v] %s", t.prefix, time.Since(t.began).Round(time.Microsecond), text)
	traceMu.Lock()
	defer traceMu.Unlock()
	_, _ = io.WriteString(t.to, text)
}

// messages prints the messages that were received and, if the handshake has not failed, those that
// were sent. After a failure libssl's flight is discarded.
func (t *tracer) messages(list []libssl.Message, failed bool) {
	for _, m := range list {
		if !m.Sent || !failed {
			t.print(t.printer.Message(m))
		}
	}
}

// end prints the result of the handshake.
func (t *tracer) end(c *Conn, err error, failure Failure) {
	if err != nil {
		if c.watch.alertSent != 0 {
			alert := []byte{alertLevelFatal, c.watch.alertSent}
			t.print(t.printer.Message(libssl.Message{Sent: true, ContentType: record.Alert, Data: alert}))
		}
		t.print(fmt.Sprintf("failed: %s: %q\n", failure.Class, err.Error()))
		return
	}
	s := &c.state
	suite := cmp.Or(tlsnames.CipherSuites.Name(s.CipherSuite), tls.CipherSuiteName(s.CipherSuite))
	parts := []string{tls.VersionName(s.Version), suite}
	if s.CurveID != 0 {
		parts = append(parts, s.CurveID.String())
	}
	if s.NegotiatedProtocol != "" {
		parts = append(parts, fmt.Sprintf("ALPN %q", s.NegotiatedProtocol))
	}
	if c.watch.resumption != NotResumed {
		parts = append(parts, "resumed by "+string(c.watch.resumption))
	}
	if t.shard != "" {
		parts = append(parts, t.shard)
	}
	t.print("done: " + strings.Join(parts, ", ") + "\n")
}

// trace prints the messages of the last step. If the step has failed, or the handshake is refused,
// failed is true.
func (h *handshake) trace(failed bool) {
	if h.c.watch.tracer == nil {
		return
	}
	messages := h.messages
	h.messages = nil
	if h.rereads && len(messages) > 0 {
		messages, h.rereads = messages[1:], false
	}
	h.c.watch.tracer.messages(messages, failed)
}
