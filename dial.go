package ossl

import (
	"context"
	"crypto/tls"
	"math"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/ossl-go/ossl/internal/stdtls"
)

// The functions here have crypto/tls's names and signatures. Each compiles its *tls.Config once and
// remembers the result until the configuration is collected or maxContexts others were used: a
// configuration whose callbacks refer to it is not collected while its Context is remembered.

var compiled = struct {
	mu     sync.Mutex
	recent recentMap[compiledKey, *compiledConfig] // guarded by mu
}{recent: recentMap[compiledKey, *compiledConfig]{max: maxContexts, idle: math.MaxInt64, drop: (*compiledConfig).drop}}

// A compiledKey is a configuration and the options that it is compiled with. It doesn't keep the
// configuration alive.
type compiledKey struct {
	config weak.Pointer[tls.Config]
	opts   *options
	fips   bool // OSSL_FIPS or the host requires FIPS mode
}

// A compiledConfig keeps the Context that was last made from a configuration.
type compiledConfig struct {
	opts    *options
	cleanup runtime.Cleanup // forgets it when the configuration is collected
	mu      sync.Mutex      // held while a Context is made
	last    atomic.Pointer[compilation]
}

func (c *compiledConfig) drop() { c.cleanup.Stop() }

// A compilation is a Context and the configuration that it was made from.
type compilation struct {
	ctx  *Context
	used *stdtls.Snapshot
}

// compile returns the Context for config with the default options.
func compile(config *tls.Config) (*Context, error) {
	config = orDefault(config)
	entry, err := entryOf(config)
	if err != nil {
		return nil, err
	}
	return entry.context(config)
}

// defaultOptions are the options of a Context that was given none, for each record path.
var defaultOptions = [...]*options{
	RecordsAuto:   newOptions(RecordsAuto),
	RecordsLibssl: newOptions(RecordsLibssl),
	RecordsDirect: newOptions(RecordsDirect),
}

// entryOf returns the entry for config with the default options. Copies made by Clone are separate configurations.
func entryOf(config *tls.Config) (*compiledConfig, error) {
	records, err := recordsOfEnvironment()
	if err != nil {
		return nil, err
	}
	opts := defaultOptions[records]
	required, err := fipsRequired()
	if err != nil {
		return nil, err
	}
	key := compiledKey{weak.Make(config), opts, required != ""}
	compiled.mu.Lock()
	defer compiled.mu.Unlock()
	now := time.Now()
	entry, ok := compiled.recent.get(key, now)
	if !ok {
		entry = &compiledConfig{opts: opts, cleanup: runtime.AddCleanup(config, forget, key)}
		compiled.recent.put(key, entry, now)
	}
	return entry, nil
}

// context returns the Context for config, of which c is the entry. A failure is not remembered.
func (c *compiledConfig) context(config *tls.Config) (*Context, error) {
	if ctx := c.current(config); ctx != nil {
		return ctx, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx := c.current(config); ctx != nil { // another goroutine was quicker
		return ctx, nil
	}
	used := stdtls.NewSnapshot(config)
	ctx, err := newContext(used.Config, c.opts, nil)
	if err != nil {
		return nil, err
	}
	c.last.Store(&compilation{ctx, used})
	return ctx, nil
}

// current returns the Context, or nil if there is none, or config was changed. It takes no lock: with many
// certificates a fingerprint takes long.
//
// A configuration must not be changed once it is in use, except by SetSessionTicketKeys. If it was changed
// nevertheless, for example if InsecureSkipVerify was set back to false, the Context of its old values must
// not be used.
func (c *compiledConfig) current(config *tls.Config) *Context {
	last := c.last.Load()
	if last == nil || last.used.Fingerprint != string(stdtls.Fingerprint(config)) {
		return nil
	}
	return last.ctx
}

func forget(key compiledKey) {
	compiled.mu.Lock()
	defer compiled.mu.Unlock()
	compiled.recent.forget(key)
}

var defaultConfig tls.Config

// orDefault returns config, or the zero configuration if it is nil.
func orDefault(config *tls.Config) *tls.Config {
	if config == nil {
		return &defaultConfig
	}
	return config
}

// Client returns a new TLS client connection over conn. config must have ServerName or
// InsecureSkipVerify set. If config can't be honoured, the handshake returns the error;
// [NewContext] returns it at once.
func Client(conn net.Conn, config *tls.Config) *Conn {
	ctx, err := compile(config)
	if err != nil {
		return &Conn{conn: conn, isClient: true, configErr: err}
	}
	return ctx.Client(conn, "")
}

// Server returns a new TLS server connection over conn. config must have a certificate, or
// GetCertificate or GetConfigForClient set. If config can't be honoured, the handshake returns the
// error; [NewContext] returns it at once.
func Server(conn net.Conn, config *tls.Config) *Conn {
	ctx, err := compile(config)
	return serverOf(ctx, err, conn)
}

// serverOf returns a server connection of ctx or, if err isn't nil, one whose handshake returns err.
func serverOf(ctx *Context, err error, conn net.Conn) *Conn {
	if err != nil {
		return &Conn{conn: conn, configErr: err}
	}
	return ctx.Server(conn)
}

// Dial connects to addr and runs the handshake. A nil config is equivalent to the zero Config. If
// config has no ServerName, addr's host is the name. For HTTP see the package documentation.
func Dial(network, addr string, config *tls.Config) (*Conn, error) {
	return DialWithDialer(new(net.Dialer), network, addr, config)
}

// DialWithDialer connects to addr with dialer and runs the handshake. The dialer's Timeout and
// Deadline apply to the connection and the handshake together. A nil config is equivalent to the
// zero Config. If config has no ServerName, addr's host is the name.
func DialWithDialer(dialer *net.Dialer, network, addr string, config *tls.Config) (*Conn, error) {
	ctx, err := compile(config)
	if err != nil {
		return nil, err
	}
	return ctx.dial(context.Background(), dialer, network, addr)
}

// A Dialer dials TLS connections with a configuration, and a [net.Dialer] for the underlying
// connection.
//
// A [net/http.Transport] whose DialTLSContext is a Dialer's can't use connections for HTTP/2 before
// Go 1.27: either NextProtos have no "h2", or httptls.NewTransport makes the transport.
type Dialer struct {
	NetDialer *net.Dialer // nil is equivalent to the zero Dialer
	Config    *tls.Config // nil is equivalent to the zero Config
}

// Dial connects to addr and runs the handshake. The connection is of type [*Conn].
func (d *Dialer) Dial(network, addr string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, addr)
}

// DialContext connects to addr and runs the handshake. ctx bounds both; after the handshake, it has
// no effect on the connection. The connection is of type [*Conn].
func (d *Dialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := compile(d.Config)
	if err != nil {
		return nil, err
	}
	dialer := d.NetDialer
	if dialer == nil {
		dialer = new(net.Dialer)
	}
	conn, err := c.dial(ctx, dialer, network, addr)
	if err != nil {
		return nil, err // not a *Conn of nil in an interface
	}
	return conn, nil
}

func (c *Context) dial(ctx context.Context, dialer *net.Dialer, network, addr string) (*Conn, error) {
	if dialer.Timeout != 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, dialer.Timeout)
		defer cancel()
	}
	if !dialer.Deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, dialer.Deadline)
		defer cancel()
	}
	raw, err := dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	name := c.config.ServerName
	if name == "" {
		name = hostOf(addr)
	}
	conn := c.Client(raw, name)
	if err := conn.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, err
	}
	return conn, nil
}

// hostOf returns the host of host:port, or all of an address without a port.
func hostOf(addr string) string {
	colon := strings.LastIndex(addr, ":")
	if colon < 0 {
		colon = len(addr)
	}
	return addr[:colon]
}

// Listen creates a TLS listener on laddr with [net.Listen]. Its Accept returns connections of type
// [*Conn] whose handshake has not run yet. config must have a certificate, or GetCertificate or
// GetConfigForClient set.
//
// If NextProtos list "h2", give the listener to httptls.Serve. [net/http.Serve] answers clients
// that agree on "h2" with HTTP/1.1 before Go 1.27, and they fail: see the package documentation.
func Listen(network, laddr string, config *tls.Config) (net.Listener, error) {
	ctx, err := compile(config)
	if err != nil {
		return nil, err
	}
	if ctx.serveErr != nil {
		return nil, ctx.serveErr
	}
	inner, err := net.Listen(network, laddr)
	if err != nil {
		return nil, err
	}
	return NewListener(inner, config), nil
}

// NewListener returns a listener that accepts connections from inner and wraps each with [Server].
// As with [Server], a connection uses the values that config has when the connection is accepted.
// If config can't be honoured at first, Accept returns the error. If config can't be honoured after
// a change, Handshake returns the error. The limits of [Listen] with net/http apply.
func NewListener(inner net.Listener, config *tls.Config) net.Listener {
	return &configListener{Listener: inner, config: orDefault(config)}
}

type configListener struct {
	net.Listener
	config *tls.Config
	entry  atomic.Pointer[compiledConfig] // nil until config could be honoured
}

func (l *configListener) Accept() (net.Conn, error) {
	entry, err := l.begin()
	if err != nil {
		return nil, err
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	ctx, err := entry.context(l.config)
	return serverOf(ctx, err, conn), nil
}

// begin returns the entry of the listener's configuration, which can be honoured.
func (l *configListener) begin() (*compiledConfig, error) {
	if entry := l.entry.Load(); entry != nil {
		return entry, nil
	}
	entry, err := entryOf(l.config)
	if err != nil {
		return nil, err
	}
	if _, err := entry.context(l.config); err != nil {
		return nil, err
	}
	l.entry.Store(entry)
	return entry, nil
}
