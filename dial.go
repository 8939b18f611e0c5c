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
)

// The functions here have crypto/tls's names and signatures. Each compiles its *tls.Config and copies
// of it once: see contextCache. The result is remembered until the configuration is collected or
// others need the room: a configuration whose callbacks refer to it is not collected while
// its Context is remembered.

var compiled = newCompiledConfigs()

type compiledConfigs struct {
	mu       sync.Mutex
	recent   recentMap[compiledKey, *compiledConfig] // guarded by mu
	contexts *contextCache
}

func newCompiledConfigs() *compiledConfigs {
	c := &compiledConfigs{contexts: newContextCache(&process, defaultCache)}
	c.recent.max, c.recent.newcomers, c.recent.idle = defaultCache, defaultCache/4, math.MaxInt64
	c.recent.drop = (*compiledConfig).drop
	return c
}

// A compiledKey is a configuration and the options that it is compiled with. It doesn't keep the
// configuration alive.
type compiledKey struct {
	config weak.Pointer[tls.Config]
	opts   *options
	fips   bool // OSSL_FIPS or the host requires FIPS mode
}

// A compiledConfig keeps the Context that was last made from a configuration.
type compiledConfig struct {
	opts    *options        // nil for the default ones
	cleanup runtime.Cleanup // forgets it when the configuration is collected
	last    atomic.Pointer[sharedContext]
}

func (c *compiledConfig) drop() {
	c.cleanup.Stop()
	c.set(nil)
}

// set makes c a user of e, or of no Context if e is nil.
func (c *compiledConfig) set(e *sharedContext) {
	if e != nil {
		e.enter()
	}
	if last := c.last.Swap(e); last != nil {
		last.leave()
	}
}

// compile returns the Context for config with the default options. The caller must call leave.
func compile(config *tls.Config) (*sharedContext, error) {
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

// entryOf returns the entry for config with the default options.
func entryOf(config *tls.Config) (*compiledConfig, error) {
	records, err := recordsOfEnvironment()
	if err != nil {
		return nil, err
	}
	return entryWith(config, defaultOptions[records])
}

// entryWith returns the entry for config with opts.
func entryWith(config *tls.Config, opts *options) (*compiledConfig, error) {
	required, err := fipsRequired()
	if err != nil {
		return nil, err
	}
	key := compiledKey{weak.Make(config), opts, required != ""}
	compiled.mu.Lock()
	defer compiled.recent.unlock(&compiled.mu)
	now := time.Now()
	entry, ok := compiled.recent.get(key, now)
	if !ok {
		entry = &compiledConfig{opts: opts, cleanup: runtime.AddCleanup(config, forget, key)}
		compiled.recent.put(key, entry, configSize(config), now)
	}
	return entry, nil
}

// context returns the Context for config, of which c is the entry. The caller must call leave. It
// takes no lock if there is a Context.
//
// A configuration must not be changed once it is in use, except by SetSessionTicketKeys. If it was changed
// nevertheless, for example if InsecureSkipVerify was set back to false, the Context of its old values must
// not be used.
func (c *compiledConfig) context(config *tls.Config) (*sharedContext, error) {
	last := c.last.Load()
	if last != nil && last.used.Matches(config) && last.enter() {
		return last, nil
	}
	if err := checkServerName(config.ServerName); err != nil { // the Context is without it
		return nil, err
	}
	opts := c.opts
	if opts == nil {
		records, err := recordsOfEnvironment()
		if err != nil {
			return nil, err
		}
		opts = defaultOptions[records]
	}
	e, err := compiled.contexts.context(config, opts, nil)
	if err != nil {
		return nil, err
	}
	c.set(e)
	return e, nil
}

func forget(key compiledKey) {
	compiled.mu.Lock()
	defer compiled.recent.unlock(&compiled.mu)
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
	config = orDefault(config)
	e, err := compile(config)
	if err != nil {
		return &Conn{conn: conn, isClient: true, configErr: err}
	}
	return clientOf(e, conn, config.ServerName)
}

// clientOf returns a client connection of e.
func clientOf(e *sharedContext, conn net.Conn, serverName string) *Conn {
	c := e.ctx.Client(conn, serverName)
	c.pinned = e
	return c
}

// Server returns a new TLS server connection over conn. config must have a certificate, or
// GetCertificate or GetConfigForClient set. If config can't be honoured, the handshake returns the
// error; [NewContext] returns it at once.
func Server(conn net.Conn, config *tls.Config) *Conn {
	e, err := compile(orDefault(config))
	return serverOf(e, err, conn)
}

// serverOf returns a server connection of e or, if err isn't nil, one whose handshake returns err.
func serverOf(e *sharedContext, err error, conn net.Conn) *Conn {
	if err != nil {
		return &Conn{conn: conn, configErr: err}
	}
	c := e.ctx.Server(conn)
	c.pinned = e
	return c
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
	return dial(context.Background(), dialer, network, addr, config)
}

func dial(ctx context.Context, dialer *net.Dialer, network, addr string, config *tls.Config) (*Conn, error) {
	config = orDefault(config)
	e, err := compile(config)
	if err != nil {
		return nil, err
	}
	defer e.leave()
	return e.ctx.dial(ctx, dialer, network, addr, config.ServerName)
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
	dialer := d.NetDialer
	if dialer == nil {
		dialer = new(net.Dialer)
	}
	conn, err := dial(ctx, dialer, network, addr, d.Config)
	if err != nil {
		return nil, err // not a *Conn of nil in an interface
	}
	return conn, nil
}

// dial is DialContext with a dialer. If serverName is "", addr's host is the name.
func (c *Context) dial(ctx context.Context, dialer *net.Dialer, network, addr, serverName string) (*Conn, error) {
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
	if serverName == "" {
		serverName = hostOf(addr)
	}
	conn := c.Client(raw, serverName)
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
	e, err := compile(orDefault(config))
	if err != nil {
		return nil, err
	}
	defer e.leave()
	if e.ctx.serveErr != nil {
		return nil, e.ctx.serveErr
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
	config   *tls.Config
	compiled compiledConfig
}

func (l *configListener) Accept() (net.Conn, error) {
	if l.compiled.last.Load() == nil {
		e, err := l.compiled.context(l.config)
		if err != nil {
			return nil, err
		}
		e.leave()
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	e, err := l.compiled.context(l.config)
	return serverOf(e, err, conn), nil
}
