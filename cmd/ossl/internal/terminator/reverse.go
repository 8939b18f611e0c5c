package terminator

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/httptls"
	"github.com/ossl-go/ossl/keys"
)

// A backend makes connections to a server behind.
type backend struct {
	target
	plan   *backendPlan
	tls    func(net.Conn) tlsConn // nil for a backend without TLS
	attach attach                 // nil for a backend without TLS, and with crypto/tls
	config *tls.Config            // nil for a backend without TLS
}

// newBackend prepares a site's connections to a backend.
func newBackend(p *backendPlan, to target, lists crlStore) (*backend, error) {
	made := &backend{target: to, plan: p}
	if !to.tls {
		return made, nil
	}
	config, err := clientConfig(cmp.Or(p.Name, to.host), p.CA, Pair{Cert: p.Cert, Key: p.Key})
	if err != nil {
		return nil, err
	}
	made.config = config
	if p.engine == "go" {
		made.tls = func(conn net.Conn) tlsConn { return newStrictClient(conn, config) }
		return made, nil
	}
	ctx, err := ossl.NewContext(config, slices.Concat(withFIPS(p.fips), lists.options(p.crls))...)
	if err != nil {
		return nil, err
	}
	made.tls = func(conn net.Conn) tlsConn { return ctx.Client(conn, "") }
	made.attach = ctx.Attach
	return made, nil
}

// clientConfig returns the configuration for connections to a server behind, or to a store, that has a
// certificate with a name, from the authorities in a file or "" for the system's. pair is for a server that
// asks for a certificate.
func clientConfig(name, authorities string, pair Pair) (*tls.Config, error) {
	config := &tls.Config{ServerName: name, ClientSessionCache: tls.NewLRUClientSessionCache(0)}
	var err error
	if authorities != "" {
		if config.RootCAs, err = readPool([]string{authorities}); err != nil {
			return nil, err
		}
	}
	if pair.Cert != "" {
		loaded, err := loadPair(pair.Cert, pair.Key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{loaded}
	}
	return config, nil
}

// loadPair loads the certificate that a server behind may ask for.
func loadPair(cert, key string) (tls.Certificate, error) {
	if isURI(key) || isURI(cert) {
		return keys.LoadX509KeyPair(cert, key)
	}
	r, err := httptls.NewReloader(cert, key, keys.WithPassphrase(func(string) ([]byte, error) {
		return nil, errors.New("the key is encrypted, which those for servers behind can't be: 'openssl pkey' decrypts it")
	}))
	if err != nil {
		return tls.Certificate{}, err
	}
	pair, err := r.GetCertificate(nil)
	if err != nil {
		return tls.Certificate{}, err
	}
	return *pair, nil
}

// withFIPS returns the options for OpenSSL's FIPS module alone, if that is wanted.
func withFIPS(fips bool) []ossl.Option {
	if fips {
		return []ossl.Option{ossl.WithFIPS()}
	}
	return nil
}

// dial connects to the backend, without TLS.
func (b *backend) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: time.Duration(b.plan.limits.Backend)}
	return dialer.DialContext(ctx, b.network, b.address)
}

// dialForRequests is dial for http.Transport.
func (b *backend) dialForRequests(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := b.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &backendConn{Conn: conn}, nil
}

// closeIdler is an http.RoundTripper that can close its idle connections.
type closeIdler interface {
	http.RoundTripper
	CloseIdleConnections()
}

// continuePatience is the time in which a backend must answer to "Expect: 100-continue" before it
// gets the request's body in any case: there are backends that don't know it. net/http waits as long.
const continuePatience = time.Second

// transport returns the transport for requests to the backend, which makes some connections at most.
func (b *backend) transport(conns int) (closeIdler, error) {
	l := b.plan.limits
	base := &http.Transport{
		DialContext:            b.dialForRequests,
		TLSClientConfig:        b.config,
		TLSHandshakeTimeout:    time.Duration(l.Backend),
		ResponseHeaderTimeout:  time.Duration(l.Backend),
		ExpectContinueTimeout:  continuePatience,
		IdleConnTimeout:        time.Duration(l.Idle),
		MaxConnsPerHost:        conns,
		MaxIdleConnsPerHost:    conns,
		MaxResponseHeaderBytes: int64(l.HeaderBytes),
		DisableCompression:     true, // the client's choice
		ForceAttemptHTTP2:      b.target.tls,
	}
	if b.plan.engine == "go" || !b.target.tls {
		return base, nil
	}
	return httptls.NewTransport(base, withFIPS(b.plan.fips)...)
}

// reverseHandler returns the handler of a site that passes requests on. limited counts the requests that
// meet a limit.
func reverseHandler(p *backends, limited *complaints, log *slog.Logger) http.Handler {
	failed := func(w http.ResponseWriter, r *http.Request, err error) {
		duplex(w, false)
		if errors.Is(err, errBusy) {
			limited.report(log, "backend-conns", r.RemoteAddr)
		}
		backendError(log, w, r, err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(p.members[0].to) // another backend has another host
			// As it is, also if url.ParseQuery refuses a part of it, which ReverseProxy has removed.
			r.Out.URL.RawQuery = r.In.URL.RawQuery
			setHost(r)
			removeForged(r.Out.Header, p.plan.UnderscoreHeaders)
			removeUpgrades(r)
			if r.Out.Body != nil && r.In.ProtoMajor == 2 {
				// Before Go 1.27, ReverseProxy's body has a Close that does nothing. A transport whose backend has
				// left would wait for the client.
				r.Out.Body = r.In.Body
			}
			r.SetXForwarded()
			if r.In.Host == "" {
				r.Out.Header.Del("X-Forwarded-Host")
			}
			if p.plan.ClientCert {
				addClientCert(r)
			}
		},
		Transport:    p,
		BufferPool:   buffers{},
		ErrorLog:     slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		ErrorHandler: failed,
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A tunnel would be to an address of the client's choice, and an echo shows headers to scripts.
		if r.Method == http.MethodConnect || r.Method == http.MethodTrace {
			if r.Method == http.MethodConnect && r.ProtoMajor == 1 {
				w.Header().Set("Connection", "close") // what follows is for the tunnel
			}
			w.Header().Set("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS") // and those that the backend knows
			http.Error(w, "405 method not allowed", http.StatusMethodNotAllowed)
			return
		}
		if c, ok := r.Context().Value(clientKey{}).(*client); ok && c.address.IsValid() {
			full := func() { limited.report(log, "address-requests", r.RemoteAddr) }
			release, err := p.shares.take(r.Context(), sourceOf(c.address.Addr()), full)
			if err != nil {
				failed(w, r, err)
				return
			}
			defer release()
		}
		if !r.ProtoAtLeast(1, 1) {
			defer resetIfCut(r)
		}
		duplex(w, true)
		pw, ok := w.(*progressWriter)
		if ok && r.Header.Get("Upgrade") != "" {
			r = r.WithContext(context.WithValue(r.Context(), writerKey{}, pw))
		}
		proxy.ServeHTTP(w, r)
		if ok && pw.upgrade != nil && pw.upgrade.answered.Load() {
			pw.goOn(pw.upgrade)
		}
	})
}

// duplex sets whether the response may begin while the request's body is still being read.
func duplex(w http.ResponseWriter, may bool) {
	if pw, ok := w.(*progressWriter); ok {
		pw.duplex = may
	}
}

// resetIfCut is deferred: it resets the client's connection if an HTTP/1.0 response is cut off. The
// response's body ends with the connection, which net/http would close as after a whole response.
func resetIfCut(r *http.Request) {
	if v := recover(); v != nil {
		if c, ok := r.Context().Value(clientKey{}).(*client); ok {
			reset(c.conn)
		}
		panic(v)
	}
}

// addClientCert adds the certificate that the client has proved to have: RFC 9440, section 2.2.
func addClientCert(r *httputil.ProxyRequest) {
	if r.In.TLS == nil || len(r.In.TLS.PeerCertificates) == 0 {
		return // if clients may come without one
	}
	r.Out.Header.Set("Client-Cert", ":"+base64.StdEncoding.EncodeToString(r.In.TLS.PeerCertificates[0].Raw)+":")
}

// setHost sets the host for the backend: the client's. Only HTTP/1.0 clients may send none, and then
// the backend must not get its own address, which http.Transport would take.
func setHost(r *httputil.ProxyRequest) {
	const none = " " // of which http.Transport makes an empty one, since it isn't a host
	r.Out.Host = cmp.Or(r.In.Host, r.In.TLS.ServerName, none)
}

// removeForged removes the headers of proxies, which clients can forge. ReverseProxy removes only some.
// It also removes those with another name than of letters, digits and hyphens: CGI, FastCGI and PHP take
// other characters for a hyphen, each server others, so that a backend would mistake them. underscores
// leaves those with underscores, except those that would pass for the proxy's. A header Proxy would
// become the variable HTTP_PROXY of programs.
func removeForged(h http.Header, underscores bool) {
	for name := range h {
		plain := strings.ToLower(name)
		if underscores {
			plain = strings.ReplaceAll(plain, "_", "-")
		}
		switch {
		case strings.ContainsFunc(plain, notInName), plain == "forwarded", plain == "x-forwarded",
			strings.HasPrefix(plain, "x-forwarded-"), plain == "client-cert", plain == "client-cert-chain", plain == "proxy":
			delete(h, name)
		}
	}
}

// notInName reports whether a character has no place in the names of headers for backends.
func notInName(c rune) bool { return !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-') }

// removeUpgrades removes a client's wish for an upgrade that can't be passed on. After an upgrade to
// another HTTP version, or to TLS, the client's further requests would reach the backend as they are,
// with any host and forged headers. If the request has a body, a backend that changes the protocol
// before it has taken all of the body would get the rest as data of the new protocol. HTTP/1.0 has no
// upgrades.
func removeUpgrades(r *httputil.ProxyRequest) {
	h := r.Out.Header
	h.Del("HTTP2-Settings")
	refused := r.In.ContentLength != 0 || !r.In.ProtoAtLeast(1, 1)
	for protocol := range strings.SplitSeq(h.Get("Upgrade"), ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(protocol), "/")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "h2c", "h2", "http", "tls":
			refused = true
		}
	}
	if refused && h.Get("Upgrade") != "" {
		h.Del("Connection")
		h.Del("Upgrade")
	}
}

// backendError answers a request that the backend hasn't.
func backendError(log *slog.Logger, w http.ResponseWriter, r *http.Request, err error) {
	if pw, ok := w.(*progressWriter); ok {
		if body := pw.bodyFailed.Load(); body != nil { // the client's fault
			w.Header().Set("Connection", "close")
			if errors.As(*body, new(*http.MaxBytesError)) {
				refuseBody(w)
			} else if isTimeout(*body) {
				http.Error(w, "408 request timeout", http.StatusRequestTimeout)
			} else {
				http.Error(w, "400 bad request", http.StatusBadRequest)
			}
			return
		}
	}
	if r.Context().Err() != nil {
		panic(http.ErrAbortHandler) // the client has left
	}
	log.Error("backend", logAttributes(err)...)
	if answerLate(w, r) {
		return
	}
	if errors.Is(err, errBusy) || errors.Is(err, errShare) {
		http.Error(w, "503 service unavailable", http.StatusServiceUnavailable)
	} else if isTimeout(err) || errors.Is(err, errStalled) {
		http.Error(w, "504 gateway timeout", http.StatusGatewayTimeout)
	} else {
		http.Error(w, "502 bad gateway", http.StatusBadGateway)
	}
}

// answerLate answers a call of gRPC whose deadline has passed with DEADLINE_EXCEEDED, and reports whether it did. A
// backend resets the stream then. The client would make UNAVAILABLE, after which it may call again, of status 502:
// gRPC's PROTOCOL-HTTP2.md and http-grpc-status-mapping.md.
func answerLate(w http.ResponseWriter, r *http.Request) bool {
	const deadlineExceeded = "4"
	pw, ok := w.(*progressWriter)
	kind := r.Header.Get("Content-Type")
	if !ok || !pw.http2 || !strings.HasPrefix(kind, "application/grpc") || strings.HasPrefix(kind, "application/grpc-web") {
		return false
	}
	timeout, ok := grpcTimeout(r.Header.Get("Grpc-Timeout"))
	if !ok || time.Since(pw.start) < timeout {
		return false
	}
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Grpc-Status", deadlineExceeded)
	w.WriteHeader(http.StatusOK)
	return true
}

// grpcTimeout returns the time in a header Grpc-Timeout: one to eight digits and a unit.
func grpcTimeout(text string) (time.Duration, bool) {
	digits := strings.TrimRight(text, "HMSmun")
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || len(digits) > 8 || len(text) != len(digits)+1 {
		return 0, false
	}
	unit := map[byte]time.Duration{'H': time.Hour, 'M': time.Minute, 'S': time.Second, 'm': time.Millisecond,
		'u': time.Microsecond, 'n': time.Nanosecond}[text[len(digits)]]
	if n > uint64(math.MaxInt64/unit) { // more than 292 years
		return math.MaxInt64, true
	}
	return time.Duration(n) * unit, true
}

func isTimeout(err error) bool {
	var netErr net.Error
	return errors.As(err, &netErr) && netErr.Timeout()
}

// bufferSize is the size of the buffers for data on its way: three TLS records, which package ossl
// seals at once.
const bufferSize = 48 << 10

var pool = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// buffers is the httputil.BufferPool.
type buffers struct{}

func (buffers) Get() []byte  { return pool.Get().(*[bufferSize]byte)[:] }
func (buffers) Put(b []byte) { pool.Put((*[bufferSize]byte)(b)) }
