//go:build cgo

package libssl

/*
#cgo CFLAGS: -O2 -Wall -Wno-unused-const-variable
#cgo linux LDFLAGS: -ldl
#cgo windows LDFLAGS: -Wl,-Bstatic -lwinpthread -Wl,-Bdynamic
#include <stdlib.h>
#include "shim.h"

#cgo noescape ossl_conn_start
#cgo nocallback ossl_conn_start
#cgo noescape ossl_conn_handshake
#cgo nocallback ossl_conn_handshake
#cgo noescape ossl_conn_facts
#cgo nocallback ossl_conn_facts
#cgo noescape ossl_conn_read
#cgo nocallback ossl_conn_read
#cgo noescape ossl_conn_write
#cgo nocallback ossl_conn_write
#cgo noescape ossl_conn_close_notify
#cgo nocallback ossl_conn_close_notify
#cgo noescape ossl_conn_key_update
#cgo nocallback ossl_conn_key_update
#cgo noescape ossl_conn_export
#cgo nocallback ossl_conn_export
#cgo noescape ossl_conn_free
#cgo nocallback ossl_conn_free
#cgo noescape ossl_conn_open
#cgo nocallback ossl_conn_open
#cgo noescape ossl_conn_seal
#cgo nocallback ossl_conn_seal
#cgo noescape ossl_conn_update
#cgo nocallback ossl_conn_update
#cgo noescape ossl_conn_kernel_key
#cgo nocallback ossl_conn_kernel_key
#cgo noescape ossl_conn_kernel_seals
#cgo nocallback ossl_conn_kernel_seals
#cgo noescape ossl_conn_offer_session
#cgo nocallback ossl_conn_offer_session
#cgo noescape ossl_conn_forget_sessions
#cgo nocallback ossl_conn_forget_sessions
#cgo noescape ossl_ctx_set_ticket_keys
#cgo nocallback ossl_ctx_set_ticket_keys
#cgo noescape ossl_conn_refuse
#cgo nocallback ossl_conn_refuse
#cgo noescape ossl_ctx_check_cred
#cgo nocallback ossl_ctx_check_cred
#cgo noescape ossl_conn_use_cred
#cgo nocallback ossl_conn_use_cred
*/
import "C"

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"math"
	"net"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"
)

// bytePtr returns a pointer that C may read len(b) bytes from; b may be empty.
func bytePtr(b []byte) *C.uint8_t { return (*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(b))) }

func stepOf(s C.ossl_step) Step {
	return Step{
		Status:    Status(s.status),
		Pending:   s.pending != 0,
		TakenOver: s.taken_over != 0,
		Consumed:  int(s.consumed),
		Produced:  int(s.produced),
		N:         int(s.n),
		Records:   int(s.records),
	}
}

// borrowed returns C's bytes as a slice that is valid until the connection's next call.
func borrowed(p *C.uint8_t, n C.size_t) []byte {
	if p == nil {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(p)), int(n))
}

// HeapInUse returns the number of bytes in use on the C heap, or 0 if the C library doesn't report
// it.
func HeapInUse() uint64 { return uint64(C.ossl_heap_in_use()) }

// hasGroup reports whether the library has a key exchange group or, in FIPS mode, the module.
func hasGroup(name string, fips bool) bool {
	s := C.CString(name)
	defer C.free(unsafe.Pointer(s))
	return C.ossl_has_group(s, C.int(flag(fips))) == 1
}

// Context is an SSL_CTX: immutable, and shared by connections. It is freed after Close, or else
// when it is no longer referenced. Each connection has its own reference to the C object.
type Context struct {
	p       *C.ossl_ctx
	cred    *Credential  // kept for its signer
	users   atomic.Int64 // one for the owner until Close, and one for each call under way; the last user frees p
	closed  atomic.Bool
	cleanup runtime.Cleanup // frees p if Close is not called
}

var errContextClosed = fmt.Errorf("libssl: the context is closed: %w", net.ErrClosed)

// hold reports whether p may be used. If so, the caller must call release.
func (c *Context) hold() bool {
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

func (c *Context) mustHold() {
	if !c.hold() {
		panic(errContextClosed)
	}
}

func (c *Context) release() {
	if c.users.Add(-1) == 0 {
		c.cleanup.Stop()
		C.ossl_ctx_free(c.p)
	}
	runtime.KeepAlive(c) // otherwise the cleanup could begin before Stop
}

// Close ends the use of the context: no more connections can be made from it, and its memory is freed with the last of its
// connections. Close may be called at any time, and more than once.
func (c *Context) Close() {
	if c.closed.CompareAndSwap(false, true) {
		c.release()
	}
}

// cString returns s for C, nil if empty. It is freed with free.
func cString(s string) *C.char {
	if s == "" {
		return nil
	}
	return C.CString(s)
}

// NewContext makes a context from cfg. The library must be loaded.
func NewContext(cfg *ContextConfig) (*Context, error) {
	lists, err := cfg.lists()
	if err != nil {
		return nil, err
	}
	var p C.ossl_ctx_params
	p.min_version, p.max_version = C.int32_t(cfg.MinVersion), C.int32_t(cfg.MaxVersion)
	p.security_level = C.int32_t(cfg.SecurityLevel)
	p.exact_level = flag(cfg.ExactLevel)
	p.as_host = flag(cfg.AsHost)
	p.without_policy = flag(cfg.WithoutHostPolicy)
	packed := packCommands(cfg.HostCommands)
	commands := C.CBytes(packed)
	defer C.free(commands)
	p.commands, p.commands_len = (*C.uint8_t)(commands), C.size_t(len(packed))
	if cfg.RequestClientCert || cfg.RequireClientCert {
		p.client_auth |= 1 // SSL_VERIFY_PEER
	}
	if cfg.RequireClientCert {
		p.client_auth |= 2 // SSL_VERIFY_FAIL_IF_NO_PEER_CERT
	}
	p.want_hello = flag(cfg.WantHello)
	p.want_cert = flag(cfg.WantCert)
	p.want_keylog = flag(cfg.WantKeyLog)
	p.verify_pauses = flag(cfg.VerifyPauses)
	p.own_records = flag(cfg.OwnRecords)
	p.seal_refusals = flag(cfg.SealRefusals)
	p.fips = flag(cfg.FIPS)
	p.tickets = flag(cfg.Tickets)
	p.cached = flag(cfg.Cached)
	p.keep_sessions = flag(cfg.KeepSessions)
	p.session_timeout = C.int32_t(min(cfg.SessionTimeout/time.Second, math.MaxInt32))
	for i, b := range cfg.Policy {
		p.policy[i] = C.uint8_t(b)
	}
	for _, s := range []struct {
		to   **C.char
		from string
	}{
		{&p.cipher_list, lists.suites}, {&p.cipher_suites, lists.suites13},
		{&p.groups, lists.groups}, {&p.sigalgs, lists.signatures}, {&p.client_sigalgs, lists.clientSignatures},
	} {
		*s.to = cString(s.from)
		defer C.free(unsafe.Pointer(*s.to))
	}
	alpn := C.CBytes(cfg.ALPN)
	defer C.free(alpn)
	p.alpn, p.alpn_len = (*C.uint8_t)(alpn), C.size_t(len(cfg.ALPN))
	p.alpn_by_client = flag(cfg.ALPNByClient)

	var errs [errorSlots]C.ulong
	var failed *C.char
	ctx := C.ossl_ctx_new(&p, &errs[0], &failed)
	if ctx == nil {
		return nil, &Error{Op: "new context", Setting: C.GoString(failed), Codes: codes(&errs)}
	}
	c := &Context{p: ctx}
	c.users.Store(1)
	c.cleanup = runtime.AddCleanup(c, func(p *C.ossl_ctx) { C.ossl_ctx_free(p) }, ctx)
	for _, name := range cfg.ClientCAs {
		if C.ossl_ctx_add_ca(ctx, bytePtr(name), C.size_t(len(name)), &errs[0]) != 1 {
			return nil, &Error{Op: "new context", Setting: "ClientCAs", Codes: codes(&errs)}
		}
	}
	C.ossl_ctx_seal_cas(ctx)
	if cred := cfg.Credential; cred != nil {
		ok := C.ossl_ctx_set_cred(ctx, cred.p, &errs[0])
		runtime.KeepAlive(cred)
		if ok != 1 {
			return nil, &Error{Op: "new context", Setting: "Certificates", Codes: codes(&errs)}
		}
		c.cred = cred
	}
	return c, nil
}

// CheckCredential returns an error if the context's servers can't use cred. It signs with it once,
// for a client of the same context, unless Go would have to sign or signing may take long.
func (c *Context) CheckCredential(cred *Credential) error {
	if !c.hold() {
		return errContextClosed
	}
	defer c.release()
	defer runtime.KeepAlive(cred)
	var errs [errorSlots]C.ulong
	sign := !cred.MayBlock() && !cred.AsksGo()
	if C.ossl_ctx_check_cred(c.p, cred.p, C.int(flag(sign)), &errs[0]) != 1 {
		return &Error{Op: "use certificate and key", Codes: codes(&errs)}
	}
	return nil
}

func flag(on bool) C.uint8_t {
	if on {
		return 1
	}
	return 0
}

// SetTicketKeys sets the keys that seal and open tickets: the first seals. It reports whether there
// was room for them.
func (c *Context) SetTicketKeys(keys []TicketKey) bool {
	if !c.hold() {
		return false
	}
	defer c.release()
	list := make([]C.ossl_ticket_key, len(keys))
	defer clear(list)
	for i := range keys {
		copyBytes(list[i].name[:], keys[i].Name[:])
		list[i].cipher_len = C.uint8_t(copyBytes(list[i].cipher[:], keys[i].Cipher))
		list[i].mac_len = C.uint8_t(copyBytes(list[i].mac[:], keys[i].MAC))
	}
	return C.ossl_ctx_set_ticket_keys(c.p, unsafe.SliceData(list), C.size_t(len(list))) == 1
}

func copyBytes(to []C.uint8_t, from []byte) int {
	n := min(len(to), len(from))
	for i := range n {
		to[i] = C.uint8_t(from[i])
	}
	return n
}

// HasCipher reports whether the context offers a cipher suite.
func (c *Context) HasCipher(id uint16) bool {
	c.mustHold()
	defer c.release()
	return C.ossl_ctx_has_cipher(c.p, C.uint16_t(id)) == 1
}

// SecurityLevel returns the security level in force.
func (c *Context) SecurityLevel() int {
	c.mustHold()
	defer c.release()
	return int(C.ossl_ctx_security_level(c.p))
}

// Credential is a certificate chain with its key, ready for use by any number of connections.
type Credential struct {
	p        *C.ossl_cred
	asksGo   bool
	provider string // the provider of a key that was loaded by URI
}

// NewCredential makes a credential of a chain and a PKCS #8 key, which it clears. schemes, if there
// are any, limit the algorithms that the key signs with. fips makes the credential for Contexts in
// FIPS mode, and for them only.
func NewCredential(fips bool, chain [][]byte, pkcs8 []byte, schemes []tls.SignatureScheme,
	staple, scts []byte) (*Credential, error) {
	defer clear(pkcs8)
	sigalgs, err := list(schemes, signatureNames)
	if err != nil {
		return nil, err
	}
	packed := PackChain(chain)
	limits := cString(sigalgs)
	defer C.free(unsafe.Pointer(limits))
	var errs [errorSlots]C.ulong
	p := C.ossl_cred_new(C.int(flag(fips)), bytePtr(packed), C.size_t(len(packed)), bytePtr(pkcs8), C.size_t(len(pkcs8)), limits,
		bytePtr(staple), C.size_t(len(staple)), bytePtr(scts), C.size_t(len(scts)), &errs[0])
	if p == nil {
		return nil, &Error{Op: "load certificate and key", Codes: codes(&errs)}
	}
	return ownCredential(&Credential{p: p}), nil
}

func ownCredential(c *Credential) *Credential {
	runtime.AddCleanup(c, func(p *C.ossl_cred) { C.ossl_cred_free(p) }, c.p)
	return c
}

// SetIdentity sets the hash of the identity in the certificate. Servers bind their sessions to it;
// without it they resume none. It must be called before the credential is used.
func (c *Credential) SetIdentity(id [32]byte) {
	C.ossl_cred_set_identity(c.p, (*C.uint8_t)(&id[0]))
	runtime.KeepAlive(c)
}

// AsksGo reports whether handshakes ask Go to sign with the credential. Their connections must come
// from [Context.Start] with asks set.
func (c *Credential) AsksGo() bool { return c.asksGo }

// MayBlock reports whether libssl may take long to sign with the credential, because its key's
// provider is not one of OpenSSL's own.
func (c *Credential) MayBlock() bool { return !IsOwnProvider(c.provider) }

// Conn is one connection: an SSL between two windows. Its methods must not be called at the same
// time.
type Conn struct {
	p         *C.ossl_conn
	crossings uint64 // except those of the sides
	read      ReadSide
	write     WriteSide
	ctx       *Context    // kept for the signer of its credential
	cred      *Credential // the connection's own, kept for its signer
}

// Start makes a connection and takes its first step. A client offers session, if there is one, to be
// resumed. If asks is set, steps may end with any question: NeedSign, NeedResume, and NeedVerify even
// if libssl itself can't pause for it. Otherwise they end only with those for which libssl pauses.
func (c *Context) Start(server, asks bool, serverName string, session, in, out []byte) (*Conn, Step, error) {
	if !c.hold() {
		return nil, Step{}, errContextClosed
	}
	defer c.release()
	name := cString(serverName)
	defer C.free(unsafe.Pointer(name))
	var errs [errorSlots]C.ulong
	var p *C.ossl_conn
	step := C.ossl_conn_start(c.p, C.int(flag(server)), name, bytePtr(session), C.size_t(len(session)), C.int(flag(asks)), &p,
		&errs[0], bytePtr(in), C.size_t(len(in)), bytePtr(out), C.size_t(len(out)))
	if p == nil {
		return nil, Step{}, &Error{Op: "new connection", Codes: codes(&errs)}
	}
	conn := &Conn{p: p, crossings: 1}
	if asks {
		conn.ctx = c
	}
	return conn, stepOf(step), nil
}

// Handshake takes a step of the handshake. It fills facts if the step ends with Done.
func (c *Conn) Handshake(in, out []byte, facts *Facts) Step {
	c.crossings++
	var f C.ossl_facts
	step := stepOf(C.ossl_conn_handshake(c.p, bytePtr(in), C.size_t(len(in)), bytePtr(out), C.size_t(len(out)), &f))
	if step.Status == Done {
		*facts = factsOf(&f)
	}
	return step
}

// Read opens records from in into dst. If the step says that the connection was taken over, later
// records are for its Sides.
func (c *Conn) Read(in, dst []byte) Step {
	c.crossings++
	return stepOf(C.ossl_conn_read(c.p, bytePtr(in), C.size_t(len(in)), bytePtr(dst), C.size_t(len(dst))))
}

// Write seals src into out. With payload > 0 the i-th record holds at most payload*(first+i+1) bytes.
func (c *Conn) Write(src, out []byte, payload, first int) Step {
	c.crossings++
	return stepOf(C.ossl_conn_write(c.p, bytePtr(src), C.size_t(len(src)), bytePtr(out), C.size_t(len(out)),
		C.size_t(payload), C.size_t(first)))
}

// CloseNotify seals close_notify, once. It returns WantRead if the rest of a message from the peer must be read first.
func (c *Conn) CloseNotify(out []byte) Step {
	c.crossings++
	return stepOf(C.ossl_conn_close_notify(c.p, bytePtr(out), C.size_t(len(out))))
}

// KeyUpdate updates the sending key and leaves the message in Spill; if request is set, it asks the
// peer to do the same.
func (c *Conn) KeyUpdate(request bool) Step {
	c.crossings++
	return stepOf(C.ossl_conn_key_update(c.p, C.int(flag(request))))
}

// Free frees the connection with both its sides, sealing close_notify into out first if notify is
// set. c must not be used again.
func (c *Conn) Free(notify bool, out []byte) Step {
	return c.free(readSide|writeSide, c.crossings+c.read.calls+c.write.calls, notify, out)
}

func (c *Conn) free(sides C.int, calls uint64, notify bool, out []byte) Step {
	crossings.Add(1 + calls)
	return stepOf(C.ossl_conn_free(c.p, sides, C.int(flag(notify)), bytePtr(out), C.size_t(len(out))))
}

// Miss makes a takeover not count the n-th record from now, or Finished, of those that are sent or
// received; for tests.
func (c *Conn) Miss(sent bool, n uint8) { C.ossl_conn_miss(c.p, C.int(flag(sent)), C.uint8_t(n)) }

// PausesHoldThreads reports whether a handshake that has asked Go holds a thread until it has the answer. It does except on Linux
// with amd64 or arm64.
func PausesHoldThreads() bool { return C.ossl_pauses_hold_threads() == 1 }

// Occupied reports whether this thread's signatures and secrets are attributed to a handshake, for
// tests.
func Occupied() bool { return C.ossl_occupied() == 1 }

// Export returns exported keying material, RFC 5705 and RFC 8446, section 7.5.
func (c *Conn) Export(label string, context []byte, useContext bool, length int) ([]byte, error) {
	c.crossings++
	out := make([]byte, length)
	l := []byte(label)
	if C.ossl_conn_export(c.p, bytePtr(out), C.size_t(length), (*C.char)(unsafe.Pointer(unsafe.SliceData(l))), C.size_t(len(l)),
		bytePtr(context), C.size_t(len(context)), C.int(flag(useContext))) != 1 {
		return nil, &Error{Op: "export keying material", Codes: c.Errors()}
	}
	return out, nil
}

// UseCredential answers NeedHello or NeedCert; nil means no certificate.
func (c *Conn) UseCredential(cred *Credential) error {
	c.crossings++
	var p *C.ossl_cred
	if cred != nil {
		p = cred.p
	}
	c.cred = cred
	ok := C.ossl_conn_use_cred(c.p, p)
	runtime.KeepAlive(cred)
	if ok != 1 {
		return &Error{Op: "use certificate and key", Codes: c.Errors()}
	}
	return nil
}

// Message returns the data of a pause: a ClientHello or a CertificateRequest (complete messages
// with their header), a chain of certificates, each preceded by its length in 4 bytes, or the bytes
// to be signed. It is valid until the next call on the connection.
func (c *Conn) Message() []byte { return borrowed(c.p.message, c.p.message_len) }

// Spill returns output that had no window. It is valid until the next call on the connection.
func (c *Conn) Spill() []byte { return borrowed(c.p.spill, c.p.spill_len) }

// KeyLog returns the key-log lines of the last call. It is valid until the next call on the connection.
func (c *Conn) KeyLog() []byte { return borrowed(c.p.keylog, c.p.keylog_len) }

// Lookup returns, at NeedHello, the ID of a session to look up, or nil. It is valid until the next
// call on the connection.
func (c *Conn) Lookup() []byte {
	if c.p.lookup_len == 0 {
		return nil
	}
	return borrowed(c.p.lookup, c.p.lookup_len)
}

// OfferSession answers Lookup. Whether the session is resumed depends on libssl and on the answer to NeedResume.
func (c *Conn) OfferSession(der []byte) {
	c.crossings++
	C.ossl_conn_offer_session(c.p, bytePtr(der), C.size_t(len(der)))
}

// Sessions returns the sessions that were made since the last call, and forgets them.
func (c *Conn) Sessions() []Session {
	if c.p.sessions_len == 0 {
		return nil
	}
	c.crossings++
	all := bytes.Clone(borrowed(c.p.sessions, c.p.sessions_len))
	C.ossl_conn_forget_sessions(c.p)
	var list []Session
	for len(all) > 0 {
		id, rest := sized(all)
		der, rest := sized(rest)
		list = append(list, Session{ID: id, DER: der})
		all = rest
	}
	return list
}

// sized splits a part that follows its length off the front of b. The shim made it so.
func sized(b []byte) (part, rest []byte) {
	n := int(binary.BigEndian.Uint32(b))
	return b[4 : 4+n : 4+n], b[4+n:]
}

// SingleUse reports whether Lookup's ID is that of a TLS 1.3 ticket.
func (c *Conn) SingleUse() bool { return c.p.single_use == 1 }

// Resumed reports whether both ends have agreed to resume a session.
func (c *Conn) Resumed() bool { return c.p.resumed == 1 }

// ExtendedMasterSecret reports whether the ServerHello has the extension: RFC 7627.
func (c *Conn) ExtendedMasterSecret() bool { return c.p.extended_master_secret == 1 }

// Paused reports whether the last step stopped with a question at a point where libssl itself can't
// pause.
func (c *Conn) Paused() bool { return c.p.paused == 1 }

// SetVerdict answers NeedVerify.
func (c *Conn) SetVerdict(v Verdict) { c.p.verdict = C.int32_t(v) }

// SetResume answers NeedResume.
func (c *Conn) SetResume(resume bool) { c.p.answer = C.size_t(flag(resume)) }

// ServerName returns the name that a client asks for, after its hello was read and until the
// handshake is done.
func (c *Conn) ServerName() string { return string(borrowed(c.p.server_name, c.p.server_name_len)) }

// Refuse answers a pause for verification with a refusal. A TLS 1.3 client whose Context has
// SealRefusals seals the alert; otherwise libssl sends the verdict's alert.
func (c *Conn) Refuse(v Verdict, alert uint8) {
	c.p.verdict, c.p.refusal = C.int32_t(v), C.int32_t(alert)
}

// RefuseRequest answers NeedCert on a TLS 1.3 client whose Context has SealRefusals: the handshake ends with an alert when the
// server's flight is complete.
func (c *Conn) RefuseRequest(alert uint8) { c.p.refusal = C.int32_t(alert) }

// LongHello returns the length of a ClientHello that was refused because it exceeds crypto/tls's limit, otherwise 0.
func (c *Conn) LongHello() int { return int(c.p.hello_len) }

// LeftOut reports whether a client's handshake failed because libssl would have omitted its certificate.
func (c *Conn) LeftOut() bool { return c.p.left_out == 1 }

// RefuseFlight refuses a TLS 1.3 handshake on a client whose last step's output, its own flight,
// has not been sent and won't be. The resulting alert is sealed if the Context has SealRefusals.
func (c *Conn) RefuseFlight(alert uint8, out []byte) Step {
	c.crossings++
	return stepOf(C.ossl_conn_refuse(c.p, C.uint8_t(alert), bytePtr(out), C.size_t(len(out))))
}

// RefuseHello answers NeedHello with an alert.
func (c *Conn) RefuseHello(alert uint8) { c.p.hello_alert = C.int32_t(alert) }

// AlertIn returns the last alert read: its level and description.
func (c *Conn) AlertIn() (level, description uint8, ok bool) { return alertOf(c.p.alert_in) }

// AlertOut returns the last alert written.
func (c *Conn) AlertOut() (level, description uint8, ok bool) { return alertOf(c.p.alert_out) }

func alertOf(v C.int32_t) (level, description uint8, ok bool) { return uint8(v >> 8), uint8(v), v >= 0 }

// Version returns the protocol version, as far as it is known.
func (c *Conn) Version() uint16 { return uint16(c.p.version) }

// Calls returns how many calls into C the connection has made.
func (c *Conn) Calls() uint64 { return c.crossings + c.read.calls + c.write.calls }

// Negotiated reports whether a ServerHello, other than a HelloRetryRequest, was sent or received.
func (c *Conn) Negotiated() bool { return c.p.negotiated != 0 }

// Errors returns the packed codes of the last failure, oldest first.
func (c *Conn) Errors() []uint64 { return codes(&c.p.errors) }

// Facts returns the parameters negotiated so far.
func (c *Conn) Facts() Facts {
	c.crossings++
	var f C.ossl_facts
	C.ossl_conn_facts(c.p, &f)
	return factsOf(&f)
}

// factsOf copies f and the data that it points to.
func factsOf(f *C.ossl_facts) Facts {
	facts := Facts{
		Version:              uint16(f.version),
		CipherSuite:          uint16(f.cipher),
		Group:                uint16(f.group),
		Resumed:              f.resumed != 0,
		HelloRetry:           f.hello_retry != 0,
		TakenOver:            f.taken_over != 0,
		Deferred:             f.deferred != 0,
		ExtendedMasterSecret: f.extended_master_secret != 0,
		ALPN:                 string(borrowed(f.alpn, f.alpn_len)),
		ServerName:           string(borrowed(f.server_name, f.server_name_len)),
	}
	facts.OCSPResponse = append(facts.OCSPResponse, borrowed(f.ocsp, f.ocsp_len)...)
	facts.SCTs = append(facts.SCTs, borrowed(f.scts, f.scts_len)...)
	if n := int(f.local_finished_len); n > 0 && n <= len(f.local_finished) {
		facts.LocalFinished = C.GoBytes(unsafe.Pointer(&f.local_finished[0]), C.int(n))
	}
	if n := int(f.peer_finished_len); n > 0 && n <= len(f.peer_finished) {
		facts.PeerFinished = C.GoBytes(unsafe.Pointer(&f.peer_finished[0]), C.int(n))
	}
	return facts
}
