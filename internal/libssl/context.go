package libssl

import (
	"fmt"
	"math"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// An sslContext is an SSL_CTX: immutable, and shared by connections. It is freed after close, or else
// when it is no longer referenced. Each connection has its own reference to the C object.
type sslContext struct {
	p       *c_ossl_ctx
	users   atomic.Int64 // one for the owner until close, and one for each call under way; the last user frees p
	closed  atomic.Bool
	cleanup runtime.Cleanup // frees p if close is not called
}

// hold reports whether p may be used. If so, the caller must call release.
func (c *sslContext) hold() bool {
	for {
		n := c.users.Load()
		if n == 0 || c.closed.Load() {
			return false
		}
		if c.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (c *sslContext) release() {
	if c.users.Add(-1) == 0 {
		c.cleanup.Stop()
		c_ossl_ctx_free(c.p)
	}
	runtime.KeepAlive(c) // otherwise the cleanup could begin before Stop
}

func (c *sslContext) close() {
	if c.closed.CompareAndSwap(false, true) {
		c.release()
	}
}

// Context is a configuration of connections: an SSL_CTX, which may have parts for several shards or, if it is
// early, one in the default library context, in whose place another one comes: slim.go.
type Context struct {
	ssl   atomic.Pointer[sslContext]
	early atomic.Bool // config is set
	cred  *Credential // kept for its signer

	mu     sync.Mutex     // held while ssl is replaced or gets a part, and by Close
	config *ContextConfig // guarded by mu; of an SSL_CTX that may be replaced, or get parts for other shards
}

var errContextClosed = fmt.Errorf("libssl: the context is closed: %w", net.ErrClosed)

// hold returns the SSL_CTX, or nil if the context is closed. The caller must release it.
func (c *Context) hold() *sslContext {
	for {
		ssl := c.ssl.Load()
		if ssl.hold() {
			return ssl
		}
		if c.ssl.Load() == ssl {
			return nil
		}
	}
}

func (c *Context) mustHold() *sslContext {
	ssl := c.hold()
	if ssl == nil {
		panic(errContextClosed)
	}
	return ssl
}

// Close closes the context: no more connections can be made from it, and its memory is freed when
// the last of its connections is freed. Close may be called at any time, and more than once.
func (c *Context) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.config = nil
	c.early.Store(false)
	c.ssl.Load().close()
}

// NewContext makes a context from cfg, which must not be changed afterwards. The library must be
// loaded.
func NewContext(cfg *ContextConfig) (*Context, error) {
	c := &Context{cred: cfg.Credential}
	early := isEarly(cfg)
	if early || cfg.Shards > 1 {
		c.config = cfg
	}
	c.early.Store(early)
	ssl, err := newSSL(cfg, nil)
	if err != nil {
		return nil, err
	}
	c.ssl.Store(ssl)
	return c, nil
}

// newSSL makes an SSL_CTX. before is nil, or the one in whose place it comes.
func newSSL(cfg *ContextConfig, before *sslContext) (*sslContext, error) {
	p, err := newPart(cfg, before, -1)
	if err != nil {
		return nil, err
	}
	c := &sslContext{p: p}
	c.users.Store(1)
	c.cleanup = runtime.AddCleanup(c, func(p *c_ossl_ctx) { c_ossl_ctx_free(p) }, p)
	return c, nil
}

// addPart makes the part of ssl for a shard, unless another goroutine is making one, or ssl is no longer c's. An
// error means that memory was short.
func (c *Context) addPart(ssl *sslContext, shard c_int32_t) error {
	if !c.mu.TryLock() {
		return nil
	}
	defer c.mu.Unlock()
	if c.config == nil || c.ssl.Load() != ssl {
		return nil
	}
	part, err := newPart(c.config, ssl, shard)
	if e, ok := err.(*Error); ok && e.NoMemory() {
		return err
	}
	if err == nil { // else the whole is as good, and only slower
		c_ossl_ctx_add_part(ssl.p, part)
	}
	return nil
}

// newPart makes an SSL_CTX, with the ticket keys of before if that is not nil. shard is -1, or the shard that
// the SSL_CTX is a part for. The caller must free it.
func newPart(cfg *ContextConfig, before *sslContext, shard c_int32_t) (_ *c_ossl_ctx, err error) {
	lists, err := cfg.lists()
	if err != nil {
		return nil, err
	}
	var p c_ossl_ctx_params
	p.min_version, p.max_version = c_int32_t(cfg.MinVersion), c_int32_t(cfg.MaxVersion)
	p.security_level = c_int32_t(cfg.SecurityLevel)
	p.exact_level = flag(cfg.ExactLevel)
	p.as_host = flag(cfg.AsHost)
	p.without_policy = flag(cfg.WithoutHostPolicy)
	packed := packCommands(cfg.HostCommands)
	commands := c_CBytes(packed)
	defer c_free(commands)
	p.commands, p.commands_len = (*c_uint8_t)(commands), c_size_t(len(packed))
	if cfg.RequestClientCert || cfg.RequireClientCert {
		p.client_auth |= 1 // SSL_VERIFY_PEER
	}
	if cfg.RequireClientCert {
		p.client_auth |= 2 // SSL_VERIFY_FAIL_IF_NO_PEER_CERT
	}
	p.want_hello = flag(cfg.WantHello)
	p.want_cert = flag(cfg.WantCert)
	p.want_keylog = flag(cfg.WantKeyLog)
	p.want_trace = flag(cfg.WantTrace)
	p.verify_pauses = flag(cfg.VerifyPauses)
	p.direct_records = flag(cfg.DirectRecords)
	p.seal_refusals = flag(cfg.SealRefusals)
	p.fips = flag(cfg.FIPS)
	p.tickets = flag(cfg.Tickets)
	p.cached = flag(cfg.Cached)
	p.tickets13 = flag(cfg.TLS13Tickets)
	p.keep_sessions = flag(cfg.KeepSessions)
	p.session_timeout = c_int32_t(min(cfg.SessionTimeout/time.Second, math.MaxInt32))
	for i, b := range cfg.Policy {
		p.policy[i] = c_uint8_t(b)
	}
	for _, s := range []struct {
		to   **c_char
		from string
	}{
		{&p.cipher_list, lists.suites}, {&p.cipher_suites, lists.suites13},
		{&p.groups, lists.groups}, {&p.sigalgs, lists.signatures}, {&p.client_sigalgs, lists.clientSignatures},
		{&p.psk_list, lists.psk}, {&p.psk_suites[0], lists.psk13[0]}, {&p.psk_suites[1], lists.psk13[1]},
	} {
		*s.to = cString(s.from)
		defer c_free(unsafe.Pointer(*s.to))
	}
	alpn := c_CBytes(cfg.ALPN)
	defer c_free(alpn)
	p.alpn, p.alpn_len = (*c_uint8_t)(alpn), c_size_t(len(cfg.ALPN))
	p.alpn_by_client = flag(cfg.ALPNByClient)
	if cfg.PSK != nil {
		p.psk_hello, p.psk_without_dhe = flag(cfg.PSK.Servers), flag(cfg.PSK.WithoutDHE)
		p.psk_narrows_clients, p.psk_narrows_servers = flag(cfg.PSK.NarrowsClients), flag(cfg.PSK.NarrowsServers)
	}

	if before != nil {
		p.before = before.p
	}
	p.shards, p.shard = c_int32_t(max(cfg.Shards, 1)), shard

	var errs [errorSlots]c_ulong
	var failed *c_char
	ctx := c_ossl_ctx_new(&p, &errs[0], &failed)
	runtime.KeepAlive(before)
	if ctx == nil {
		return nil, &Error{Op: "new context", Setting: c_GoString(failed), Codes: codes(&errs)}
	}
	defer func() {
		if err != nil {
			c_ossl_ctx_free(ctx)
		}
	}()
	for _, name := range cfg.ClientCAs {
		if c_ossl_ctx_add_ca(ctx, bytePtr(name), c_size_t(len(name)), &errs[0]) != 1 {
			return nil, &Error{Op: "new context", Setting: "ClientCAs", Codes: codes(&errs)}
		}
	}
	c_ossl_ctx_seal_cas(ctx)
	if cred := cfg.Credential; cred != nil {
		ok := c_ossl_ctx_set_cred(ctx, cred.p, &errs[0])
		runtime.KeepAlive(cred)
		if ok != 1 {
			return nil, &Error{Op: "new context", Setting: "Certificates", Codes: codes(&errs)}
		}
	}
	return ctx, nil
}

// CheckCredential returns an error if the context's servers can't use cred. It signs with it once,
// for a client of the same context, unless Go would have to sign or signing may take long.
func (c *Context) CheckCredential(cred *Credential) error {
	ssl := c.hold()
	if ssl == nil {
		return errContextClosed
	}
	defer ssl.release()
	defer runtime.KeepAlive(cred)
	var errs [errorSlots]c_ulong
	sign := !cred.MayBlock() && !cred.AsksGo()
	if c_ossl_ctx_check_cred(ssl.p, cred.p, c_int(flag(sign)), &errs[0]) != 1 {
		return &Error{Op: "use certificate and key", Codes: codes(&errs)}
	}
	return nil
}

// SetTicketKeys sets the keys that seal and open tickets: the first seals. It reports whether there
// was memory for them.
func (c *Context) SetTicketKeys(keys []TicketKey) bool {
	ssl := c.hold()
	if ssl == nil {
		return false
	}
	defer ssl.release()
	list := make([]c_ossl_ticket_key, len(keys))
	defer clear(list)
	for i := range keys {
		copyBytes(list[i].name[:], keys[i].Name[:])
		list[i].cipher_len = c_uint8_t(copyBytes(list[i].cipher[:], keys[i].Cipher))
		list[i].mac_len = c_uint8_t(copyBytes(list[i].mac[:], keys[i].MAC))
	}
	return c_ossl_ctx_set_ticket_keys(ssl.p, unsafe.SliceData(list), c_size_t(len(list))) == 1
}

// HasCipher reports whether the context offers a cipher suite.
func (c *Context) HasCipher(id uint16) bool {
	ssl := c.mustHold()
	defer ssl.release()
	return c_ossl_ctx_has_cipher(ssl.p, c_uint16_t(id)) == 1
}

// SecurityLevel returns the security level in force.
func (c *Context) SecurityLevel() int {
	ssl := c.mustHold()
	defer ssl.release()
	return int(c_ossl_ctx_security_level(ssl.p))
}
