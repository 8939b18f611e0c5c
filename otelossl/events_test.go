package otelossl_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/otelossl"
	"github.com/ossl-go/ossl/session"
)

// A telemetry records metrics and spans of events alone.
type telemetry struct {
	*otelossl.Instrumentation
	reader *sdkmetric.ManualReader
	spans  *tracetest.SpanRecorder
	tracer trace.Tracer
}

func record(t *testing.T, opts ...otelossl.Option) telemetry {
	t.Helper()
	reader, spans := sdkmetric.NewManualReader(), tracetest.NewSpanRecorder()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	opts = append(opts, otelossl.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))),
		otelossl.WithTracerProvider(tracers))
	return telemetry{newInstrumentation(t, fixed{}, opts...), reader, spans, tracers.Tracer("test")}
}

const negotiated = "tls.cipher=TLS_AES_128_GCM_SHA256,tls.curve=x25519,tls.protocol.name=tls,tls.protocol.version=1.3"

// TestHandshake checks the duration and the span of a handshake, on both sides.
func TestHandshake(t *testing.T) {
	for _, c := range []struct {
		name, address, span string
		opts                []otelossl.Option
	}{
		{name: "no server name"},
		{"known server name", ",server.address=" + serverName, serverName,
			[]otelossl.Option{otelossl.WithServerNames("a", serverName)}},
		{"unknown server name", ",server.address=_OTHER", "_OTHER", []otelossl.Option{otelossl.WithServerNames("a")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tel := record(t, c.opts...)
			cc, sc := configs(t)
			client, server := newContext(t, cc, tel.Events("out")), newContext(t, sc, tel.Events(""))
			ctx, parent := tel.tracer.Start(t.Context(), "parent")
			before := time.Now()
			if clientErr, serverErr := visit(t, ctx, client, server); clientErr != nil || serverErr != nil {
				t.Fatal(clientErr, serverErr)
			}
			compare(t, collect(t, tel.reader),
				point{"ossl.tls_handshake.duration", "s", "network.transport=tcp,network.type=ipv4,ossl.context.name=out,ossl.role=client" +
					c.address + "," + negotiated + ",tls.resumed=false", 1},
				point{"ossl.tls_handshake.duration", "s", "network.transport=tcp,network.type=ipv4,ossl.role=server" +
					c.address + "," + negotiated + ",tls.resumed=false", 1})

			ended := tel.spans.Ended()
			if len(ended) != 2 {
				t.Fatalf("%d spans, want 2", len(ended))
			}
			for _, s := range ended {
				isClient := s.Name() == "TLS client handshake"
				if !isClient && s.Name() != "TLS server handshake" || s.SpanKind() != trace.SpanKindInternal {
					t.Errorf("%s, %v", s.Name(), s.SpanKind())
				}
				if has := s.Parent().SpanID() == parent.SpanContext().SpanID(); has != isClient {
					t.Errorf("%s: the parent is %v", s.Name(), s.Parent())
				}
				if s.StartTime().Before(before) || !s.EndTime().After(s.StartTime()) || s.EndTime().After(time.Now()) {
					t.Errorf("%s: from %v to %v", s.Name(), s.StartTime(), s.EndTime())
				}
				if s.Status().Code != codes.Unset || len(s.Events()) > 0 {
					t.Errorf("%s: status %+v, events %v", s.Name(), s.Status(), s.Events())
				}
				if got := value(s, "tls.next_protocol"); got != "h2" {
					t.Errorf("%s: tls.next_protocol=%s", s.Name(), got)
				}
				if got := value(s, "server.address"); got != c.span {
					t.Errorf("%s: server.address=%s, want %q", s.Name(), got, c.span)
				}
			}
		})
	}
}

func value(s sdktrace.ReadOnlySpan, key attribute.Key) string {
	for _, a := range s.Attributes() {
		if a.Key == key {
			return a.Value.String()
		}
	}
	return ""
}

// TestFailure checks the duration and the span of handshakes that fail.
func TestFailure(t *testing.T) {
	tel := record(t)
	cc, sc := configs(t)
	cc.RootCAs = x509.NewCertPool()
	clientErr, serverErr := visit(t, t.Context(), newContext(t, cc, tel.Events("")), newContext(t, sc, tel.Events("")))
	if clientErr == nil || serverErr == nil {
		t.Fatalf("the handshake succeeds: %v, %v", clientErr, serverErr)
	}
	const common = ",network.transport=tcp,network.type=ipv4,ossl.alert=bad_certificate,ossl.role="
	compare(t, collect(t, tel.reader),
		point{"ossl.tls_handshake.duration", "s", "error.type=certificate_untrusted" + common + "client", 1},
		point{"ossl.tls_handshake.duration", "s", "error.type=peer_alert" + common + "server", 1})
	ended := tel.spans.Ended()
	if len(ended) != 2 {
		t.Fatalf("%d spans, want 2", len(ended))
	}
	for _, s := range ended {
		class, text := "certificate_untrusted", clientErr.Error()
		if s.Name() == "TLS server handshake" {
			class, text = "peer_alert", serverErr.Error()
		}
		if s.Status().Code != codes.Error || !strings.HasPrefix(s.Status().Description, class) || value(s, "error.type") != class {
			t.Errorf("%s: status %+v, error.type %s", s.Name(), s.Status(), value(s, "error.type"))
		}
		if e := s.Events(); len(e) != 1 || e[0].Name != "exception" || e[0].Attributes[1].Value.AsString() != text {
			t.Errorf("%s: events %+v, want one of %s", s.Name(), e, text)
		}
	}
}

// TestLongError checks that the text of an error, which a callback or the peer may have chosen, is
// cut.
func TestLongError(t *testing.T) {
	tel := record(t)
	cc, sc := configs(t)
	cc.VerifyConnection = func(tls.ConnectionState) error { return errors.New(strings.Repeat("é", 10_000)) }
	if err, _ := visit(t, t.Context(), newContext(t, cc, tel.Events("")), newContext(t, sc)); err == nil {
		t.Fatal("the handshake succeeds")
	}
	text := tel.spans.Ended()[0].Events()[0].Attributes[1].Value.AsString()
	if len(text) > 512 || strings.Trim(text, "é") != "" || text == "" {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}

// TestResumption checks that a resumed handshake is reported as such, and the calls of the session
// cache.
func TestResumption(t *testing.T) {
	tel := record(t)
	cc, sc := configs(t)
	cc.ClientSessionCache, cc.MaxVersion = tls.NewLRUClientSessionCache(1), tls.VersionTLS12
	sc.SessionTicketsDisabled = true
	cc.CurvePreferences, sc.CurvePreferences = nil, nil
	client, server := newContext(t, cc), newContext(t, sc, tel.Events(""), ossl.WithSessionCache(session.NewCache(10)))
	for range 2 {
		if clientErr, serverErr := visit(t, t.Context(), client, server); clientErr != nil || serverErr != nil {
			t.Fatal(clientErr, serverErr)
		}
	}
	var resumed, full, hits, puts int64
	for p := range collect(t, tel.reader) {
		switch {
		case strings.HasSuffix(p.attributes, "tls.resumed=true"):
			resumed = p.value
		case strings.HasSuffix(p.attributes, "tls.resumed=false"):
			full = p.value
		case p.attributes == "ossl.cache.result=hit,ossl.session_cache.operation=get":
			hits = p.value
		case p.attributes == "ossl.cache.result=ok,ossl.session_cache.operation=put":
			puts = p.value
		default:
			t.Errorf("unexpected: %+v", p)
		}
	}
	if resumed != 1 || full != 1 || hits != 1 || puts == 0 {
		t.Errorf("%d resumed and %d full handshakes, %d hits and %d puts", resumed, full, hits, puts)
	}
	if got := value(tel.spans.Ended()[1], "ossl.resumption"); got != "id" {
		t.Errorf("ossl.resumption=%s, want id", got)
	}
}

// brokenCache is a session cache that fails.
type brokenCache struct{}

var errBroken = errors.New("the cache is broken")

func (brokenCache) Get(context.Context, []byte, bool) ([]byte, error)    { return nil, errBroken }
func (brokenCache) Put(context.Context, []byte, []byte, time.Time) error { return errBroken }
func (brokenCache) Remove(context.Context, []byte) error                 { return errBroken }

func TestBrokenSessionCache(t *testing.T) {
	tel := record(t)
	cc, sc := configs(t)
	server := newContext(t, sc, tel.Events("web"), ossl.WithSessionCache(brokenCache{}))
	cc.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	if clientErr, serverErr := visit(t, t.Context(), newContext(t, cc), server); clientErr != nil || serverErr != nil {
		t.Fatal(clientErr, serverErr)
	}
	found := false
	for p := range collect(t, tel.reader) {
		found = found || p.metric == "ossl.session_cache.operation.duration" &&
			p.attributes == "error.type=other,ossl.cache.result=error,ossl.context.name=web,ossl.session_cache.operation=put"
	}
	if !found {
		t.Error("no failed call of the cache")
	}
}

// TestUnsampled checks that handshakes that no span is recorded of are measured.
func TestUnsampled(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	tel := newInstrumentation(t, fixed{}, otelossl.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))),
		otelossl.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))))
	cc, sc := configs(t)
	client, server := newContext(t, cc, tel.Events("")), newContext(t, sc)
	if clientErr, serverErr := visit(t, t.Context(), client, server); clientErr != nil || serverErr != nil {
		t.Fatal(clientErr, serverErr)
	}
	if points := collect(t, reader); len(points) != 1 {
		t.Errorf("%+v", points)
	}
}

// TestWhileServing collects metrics while handshakes run on both sides.
func TestWhileServing(t *testing.T) {
	const workers, visits = 4, 5
	tel := record(t)
	cc, sc := configs(t)
	client, server := newContext(t, cc, tel.Events("out")), newContext(t, sc, tel.Events("in"))
	t.Run("workers", func(t *testing.T) {
		for n := range workers {
			t.Run(strconv.Itoa(n), func(t *testing.T) {
				t.Parallel()
				for range visits {
					if clientErr, serverErr := visit(t, t.Context(), client, server); clientErr != nil || serverErr != nil {
						t.Error(clientErr, serverErr)
					}
					collect(t, tel.reader)
				}
			})
		}
	})
	var handshakes int64
	for p := range collect(t, tel.reader) {
		handshakes += p.value
	}
	if want := int64(2 * workers * visits); handshakes != want || len(tel.spans.Ended()) != int(want) {
		t.Errorf("%d durations and %d spans, want %d", handshakes, len(tel.spans.Ended()), want)
	}
}
