package otelossl

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/ossl-go/ossl"
)

// labels are the attributes of a duration. Their number is bounded: the peer chooses none freely.
type labels struct {
	context string
	server  bool
	address string // "server.address", or ""

	failure ossl.Failure // if not zero, the others below are zero
	version uint16
	suite   uint16
	curve   tls.CurveID
	resumed bool

	transport, network string
}

// other is the value of attributes for values that the program has not named, as for
// "http.request.method" in the semantic conventions.
const other = "_OTHER"

func (i *Instrumentation) event(name string, e ossl.Event) {
	switch e := e.(type) {
	case *ossl.HandshakeEvent:
		i.handshake(name, e)
	case *ossl.SessionEvent:
		i.session(name, e)
	}
}

func (i *Instrumentation) handshake(name string, e *ossl.HandshakeEvent) {
	l := labels{context: name, server: e.Server, failure: e.Failure}
	l.transport, l.network = network(e.Conn.RemoteAddr())
	var state tls.ConnectionState
	if e.Err == nil || len(i.names) > 0 {
		state = e.Conn.ConnectionState()
	}
	if len(i.names) > 0 {
		if l.address = state.ServerName; !i.names[l.address] {
			l.address = other
		}
	}
	if e.Err == nil {
		l.version, l.suite, l.curve, l.resumed = state.Version, state.CipherSuite, state.CurveID, e.Resumption != ossl.NotResumed
	}
	ctx := i.span(&l, e, state.NegotiatedProtocol)
	i.durations.Record(ctx, e.Duration.Seconds(), i.option(&l))
}

// span makes the span of a handshake, and returns the context that refers to it.
func (i *Instrumentation) span(l *labels, e *ossl.HandshakeEvent, protocol string) context.Context {
	name := "TLS client handshake" // as .NET calls it
	if e.Server {
		name = "TLS server handshake"
	}
	ctx, span := i.tracer.Start(e.Context, name, trace.WithTimestamp(e.Start), trace.WithSpanKind(trace.SpanKindInternal))
	end := trace.WithTimestamp(e.Start.Add(e.Duration))
	defer span.End(end)
	if !span.IsRecording() {
		return ctx
	}
	span.SetAttributes(l.attributes()...)
	switch {
	case e.Err != nil:
		span.SetStatus(codes.Error, e.Failure.String())
		span.AddEvent(semconv.ExceptionEventName, end,
			trace.WithAttributes(semconv.ExceptionType(fmt.Sprintf("%T", e.Err)), semconv.ExceptionMessage(excerpt(e.Err.Error()))))
	case e.Resumption != ossl.NotResumed:
		span.SetAttributes(resumptionKey.String(string(e.Resumption)))
	}
	if protocol != "" {
		span.SetAttributes(semconv.TLSNextProtocol(protocol))
	}
	return ctx
}

// excerpt returns at most 512 bytes of an error's text, which may quote the peer's certificate.
func excerpt(text string) string {
	const limit = 512
	if len(text) > limit {
		text = text[:limit]
	}
	return strings.ToValidUTF8(text, "")
}

func (i *Instrumentation) session(name string, e *ossl.SessionEvent) {
	result := "ok"
	switch {
	case e.Err != nil:
		result = "error"
	case e.Op == "get" && e.Hit:
		result = "hit"
	case e.Op == "get":
		result = "miss"
	}
	attrs := append(named(name), operationKey.String(e.Op), resultKey.String(result))
	if e.Err != nil {
		attrs = append(attrs, semconv.ErrorTypeKey.String(string(ossl.FailureOf(e.Err).Class)))
	}
	i.sessionCalls.Record(context.Background(), e.Duration.Seconds(), metric.WithAttributes(attrs...))
}

// option returns the option with the attributes. They are made once for equal labels.
func (i *Instrumentation) option(l *labels) metric.MeasurementOption {
	if o, ok := i.sets.Load(*l); ok {
		return o.(metric.MeasurementOption)
	}
	o, _ := i.sets.LoadOrStore(*l, metric.WithAttributeSet(attribute.NewSet(l.attributes()...)))
	return o.(metric.MeasurementOption)
}

func (l *labels) attributes() []attribute.KeyValue {
	attrs := append(named(l.context), role(l.server))
	if l.failure.Class != "" {
		attrs = append(attrs, failed(l.failure)...)
	} else {
		attrs = append(attrs, negotiated(l.version, l.suite, l.curve, l.resumed)...)
	}
	for _, a := range []struct {
		key   attribute.Key
		value string
	}{{semconv.ServerAddressKey, l.address}, {semconv.NetworkTransportKey, l.transport}, {semconv.NetworkTypeKey, l.network}} {
		if a.value != "" {
			attrs = append(attrs, a.key.String(a.value))
		}
	}
	return attrs
}

// network returns "network.transport" and "network.type" for an address.
func network(addr net.Addr) (transport, network string) {
	switch addr := addr.(type) {
	case *net.TCPAddr:
		if addr.IP.To4() != nil {
			return "tcp", "ipv4"
		}
		return "tcp", "ipv6"
	case *net.UnixAddr:
		return "unix", ""
	}
	return "", ""
}
