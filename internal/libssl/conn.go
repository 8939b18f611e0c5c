package libssl

import (
	"bytes"
	"runtime"
	"unsafe"
)

// Conn is one connection: an SSL between two windows. Its methods must not be called at the same
// time.
type Conn struct {
	p         *c_ossl_conn
	crossings uint64 // except the sides' calls
	read      ReadSide
	write     WriteSide
	ctx       *Context    // kept for the signer of its credential
	cred      *Credential // the connection's own, kept for its signer
}

// Start makes a connection and takes its first step. A client offers session, if there is one, to
// be resumed. If asks is set, steps may end with any question: NeedSign, NeedResume, and NeedVerify
// even if libssl itself can't pause for it. Otherwise they end only with those for which libssl
// pauses.
func (c *Context) Start(server, asks bool, serverName string, session, in, out []byte) (*Conn, Step, error) {
	return c.start(server, asks, serverName, session, nil, in, out)
}

// StartPSK is Start for a client that offers a pre-shared key, packed by PackPSK.
func (c *Context) StartPSK(asks bool, serverName string, psk, out []byte) (*Conn, Step, error) {
	return c.start(false, asks, serverName, nil, psk, nil, out)
}

func (c *Context) start(server, asks bool, serverName string, session, psk, in, out []byte) (*Conn, Step, error) {
	c.settle()
	ssl := c.hold()
	if ssl == nil {
		return nil, Step{}, errContextClosed
	}
	defer ssl.release()
	name := cString(serverName)
	defer c_free(unsafe.Pointer(name))
	var errs [errorSlots]c_ulong
	var p *c_ossl_conn
	start := func(asIs bool) c_ossl_step {
		return c_ossl_conn_start(ssl.p, c_int(flag(asIs)), c_int(flag(server)), name, bytePtr(session), c_size_t(len(session)),
			bytePtr(psk), c_size_t(len(psk)), c_int(flag(asks)), &p, &errs[0], bytePtr(in), c_size_t(len(in)),
			bytePtr(out), c_size_t(len(out)))
	}
	step := start(false)
	if step.status == c_OSSL_NEED_PART {
		if err := c.addPart(ssl, c_int32_t(step.n)); err != nil {
			return nil, Step{}, err
		}
		step = start(true)
	}
	if p == nil {
		return nil, Step{}, &Error{Op: "new connection", Codes: codes(&errs)}
	}
	conn := &Conn{p: p, crossings: 1}
	if asks {
		conn.ctx = c
	}
	return conn, stepOf(step), nil
}

// Handshake takes a step of the handshake. It fills facts if the step returns Done.
func (c *Conn) Handshake(in, out []byte, facts *Facts) Step {
	c.crossings++
	var f c_ossl_facts
	step := stepOf(c_ossl_conn_handshake(c.p, bytePtr(in), c_size_t(len(in)), bytePtr(out), c_size_t(len(out)), &f))
	if step.Status == Done {
		if !settled.Load() {
			settled.Store(true)
		}
		*facts = factsOf(&f)
	}
	return step
}

// Read opens records from in into dst. If the step reports that the connection was taken over,
// later records are for its Sides.
func (c *Conn) Read(in, dst []byte) Step {
	c.crossings++
	return stepOf(c_ossl_conn_read(c.p, bytePtr(in), c_size_t(len(in)), bytePtr(dst), c_size_t(len(dst))))
}

// Write seals src into out. With payload > 0 the i-th record holds at most payload*(first+i+1)
// bytes.
func (c *Conn) Write(src, out []byte, payload, first int) Step {
	c.crossings++
	return stepOf(c_ossl_conn_write(c.p, bytePtr(src), c_size_t(len(src)), bytePtr(out), c_size_t(len(out)),
		c_size_t(payload), c_size_t(first)))
}

// CloseNotify seals close_notify, once. It returns WantRead if the rest of a message from the peer
// must be read first.
func (c *Conn) CloseNotify(out []byte) Step {
	c.crossings++
	return stepOf(c_ossl_conn_close_notify(c.p, bytePtr(out), c_size_t(len(out))))
}

// KeyUpdate updates the sending key and leaves the message in Spill; if request is set, it asks the
// peer to do the same.
func (c *Conn) KeyUpdate(request bool) Step {
	c.crossings++
	return stepOf(c_ossl_conn_key_update(c.p, c_int(flag(request))))
}

// Free frees the connection with both its sides, sealing close_notify into out first if notify is
// set. c must not be used again.
func (c *Conn) Free(notify bool, out []byte) Step {
	return c.free(readSide|writeSide, c.crossings+c.read.calls+c.write.calls, notify, out)
}

func (c *Conn) free(sides c_int, calls uint64, notify bool, out []byte) Step {
	crossings.Add(1 + calls)
	return stepOf(c_ossl_conn_free(c.p, sides, c_int(flag(notify)), bytePtr(out), c_size_t(len(out))))
}

// Miss makes a takeover not count the n-th record from now, or Finished, of those that are sent or
// received; for tests.
func (c *Conn) Miss(sent bool, n uint8) { c_ossl_conn_miss(c.p, c_int(flag(sent)), c_uint8_t(n)) }

// Export returns exported keying material, RFC 5705 and RFC 8446, section 7.5.
func (c *Conn) Export(label string, context []byte, useContext bool, length int) ([]byte, error) {
	c.crossings++
	out := make([]byte, length)
	l := []byte(label)
	if c_ossl_conn_export(c.p, bytePtr(out), c_size_t(length), (*c_char)(unsafe.Pointer(unsafe.SliceData(l))), c_size_t(len(l)),
		bytePtr(context), c_size_t(len(context)), c_int(flag(useContext))) != 1 {
		return nil, &Error{Op: "export keying material", Codes: c.Errors()}
	}
	return out, nil
}

// UseCredential answers NeedHello or NeedCert; nil means no certificate.
func (c *Conn) UseCredential(cred *Credential) error {
	c.crossings++
	var p *c_ossl_cred
	if cred != nil {
		p = cred.p
	}
	c.cred = cred
	ok := c_ossl_conn_use_cred(c.p, p)
	runtime.KeepAlive(cred)
	if ok != 1 {
		return &Error{Op: "use certificate and key", Codes: c.Errors()}
	}
	return nil
}

// Message returns the data of a pause: a ClientHello or a CertificateRequest (complete messages
// with their header), a chain of certificates, each preceded by its length in 4 bytes, the bytes to be
// signed, or a client's identity. It is valid until the next call on the connection.
func (c *Conn) Message() []byte { return borrowed(c.p.message, c.p.message_len) }

// Spill returns output that had no window. It is valid until the next call on the connection.
func (c *Conn) Spill() []byte { return borrowed(c.p.spill, c.p.spill_len) }

// Useless reports whether the peer has sent more than 16 messages in a row that brought no data.
func (c *Conn) Useless() bool { return c.p.useless > c_OSSL_MAX_USELESS }

// KeyLog returns the key-log lines of the last call. It is valid until the next call on the
// connection.
func (c *Conn) KeyLog() []byte { return borrowed(c.p.keylog, c.p.keylog_len) }

// Trace returns the messages of the last call, if the Context has WantTrace. They are copies.
func (c *Conn) Trace() (messages []Message) {
	const head = 2
	for b := bytes.Clone(borrowed(c.p.trace, c.p.trace_len)); len(b) > head; {
		m := Message{Sent: b[0] != 0, ContentType: b[1]}
		m.Data, b = sized(b[head:])
		messages = append(messages, m)
	}
	return messages
}

// Lookup returns, at NeedHello, the ID of a session to look up, or nil. It is valid until the next
// call on the connection.
func (c *Conn) Lookup() []byte {
	if c.p.lookup_len == 0 {
		return nil
	}
	return borrowed(c.p.lookup, c.p.lookup_len)
}

// OfferSession answers Lookup. Whether the session is resumed depends on libssl and on the answer
// to NeedResume.
func (c *Conn) OfferSession(der []byte) {
	c.crossings++
	c_ossl_conn_offer_session(c.p, bytePtr(der), c_size_t(len(der)))
}

// Sessions returns the sessions that were made since the last call, and forgets them.
func (c *Conn) Sessions() []Session {
	if c.p.sessions_len == 0 {
		return nil
	}
	c.crossings++
	all := bytes.Clone(borrowed(c.p.sessions, c.p.sessions_len))
	c_ossl_conn_forget_sessions(c.p)
	var list []Session
	for len(all) > 0 {
		id, rest := sized(all)
		der, rest := sized(rest)
		list = append(list, Session{ID: id, DER: der})
		all = rest
	}
	return list
}

// SingleUse reports whether Lookup's ID belongs to a TLS 1.3 ticket.
func (c *Conn) SingleUse() bool { return c.p.single_use == 1 }

// PackPSK packs a pre-shared key for UsePSK and Start. identity has fewer than 2^16 bytes. The caller
// clears the result.
func PackPSK(identity, key []byte, sha384 bool) []byte {
	packed := make([]byte, 3+len(identity)+len(key)) // without append, which may leave another copy of the key
	packed[0], packed[1], packed[2] = byte(flag(sha384)), byte(len(identity)>>8), byte(len(identity))
	copy(packed[3:], identity)
	copy(packed[3+len(identity):], key)
	return packed
}

// UsePSK gives a server the pre-shared key for the client's identity, at NeedHello if TLS 1.3 will be chosen,
// or at NeedPSK. At NeedHello in TLS 1.2, psk has no key, and NeedPSK follows. The connection then uses that
// key, or fails.
func (c *Conn) UsePSK(psk []byte) error {
	c.crossings++
	if c_ossl_conn_use_psk(c.p, bytePtr(psk), c_size_t(len(psk))) != 1 {
		return &Error{Op: "use pre-shared key", Codes: c.Errors()}
	}
	return nil
}

// PSKOffer returns, at NeedHello, whether TLS 1.3 will be chosen, and then the body of the client's extension
// pre_shared_key, or nil. It is valid until the next call on the connection.
func (c *Conn) PSKOffer() (tls13 bool, body []byte) {
	return c.p.offers_tls13 == 1, borrowed(c.p.psk_offer, c.p.psk_offer_len)
}

// PSK reports whether both peers have agreed to use a pre-shared key.
func (c *Conn) PSK() bool { return c.p.psk == 1 }

// Resumed reports whether both peers have agreed to resume a session.
func (c *Conn) Resumed() bool { return c.p.resumed == 1 }

// ExtendedMasterSecret reports whether the ServerHello has the extension: RFC 7627.
func (c *Conn) ExtendedMasterSecret() bool { return c.p.extended_master_secret == 1 }

// Paused reports whether the last step stopped with a question at a point where libssl itself can't
// pause.
func (c *Conn) Paused() bool { return c.p.paused == 1 }

// Deferred reports whether a later Read may take the connection over.
func (c *Conn) Deferred() bool { return c.p.deferred != 0 }

// SetSocket tells tracing tools which socket the connection uses: probe.h.
func (c *Conn) SetSocket(fd int) { c.p.socket = c_int32_t(fd) }

// SetVerdict answers NeedVerify.
func (c *Conn) SetVerdict(v Verdict) { c.p.verdict = c_int32_t(v) }

// SetResume answers NeedResume.
func (c *Conn) SetResume(resume bool) { c.p.answer = c_size_t(flag(resume)) }

// ServerName returns the name that a client asks for, after its hello was read and until the
// handshake is done.
func (c *Conn) ServerName() string { return string(borrowed(c.p.server_name, c.p.server_name_len)) }

// Refuse answers a pause for verification with a refusal. A TLS 1.3 client whose Context has
// SealRefusals seals the alert; otherwise libssl sends the verdict's alert.
func (c *Conn) Refuse(v Verdict, alert uint8) {
	c.p.verdict, c.p.refusal = c_int32_t(v), c_int32_t(alert)
}

// RefuseRequest answers NeedCert on a TLS 1.3 client whose Context has SealRefusals: the handshake
// fails with an alert when the server's flight is complete.
func (c *Conn) RefuseRequest(alert uint8) { c.p.refusal = c_int32_t(alert) }

// LongHello returns the length of a ClientHello that was refused because it exceeds crypto/tls's
// limit, otherwise 0.
func (c *Conn) LongHello() int { return int(c.p.hello_len) }

// LeftOut reports whether a client's handshake failed because libssl would have omitted its
// certificate.
func (c *Conn) LeftOut() bool { return c.p.left_out == 1 }

// RefuseFlight refuses a TLS 1.3 handshake on a client whose last step's output, its own flight,
// has not been sent and won't be. The resulting alert is sealed if the Context has SealRefusals.
func (c *Conn) RefuseFlight(alert uint8, out []byte) Step {
	c.crossings++
	return stepOf(c_ossl_conn_refuse(c.p, c_uint8_t(alert), bytePtr(out), c_size_t(len(out))))
}

// RefuseHello answers NeedHello with an alert.
func (c *Conn) RefuseHello(alert uint8) { c.p.hello_alert = c_int32_t(alert) }

// AlertIn returns the last alert read: its level and description.
func (c *Conn) AlertIn() (level, description uint8, ok bool) { return alertOf(c.p.alert_in) }

// AlertOut returns the last alert written.
func (c *Conn) AlertOut() (level, description uint8, ok bool) { return alertOf(c.p.alert_out) }

func alertOf(v c_int32_t) (level, description uint8, ok bool) { return uint8(v >> 8), uint8(v), v >= 0 }

// Version returns the protocol version, as far as it is known.
func (c *Conn) Version() uint16 { return uint16(c.p.version) }

// Shard returns the number of the connection's shard, from 0, and of how many.
func (c *Conn) Shard() (shard, shards int) { return int(c.p.shard), int(c.p.shards) }

// Calls returns how many calls into C the connection has made.
func (c *Conn) Calls() uint64 { return c.crossings + c.read.calls + c.write.calls }

// Negotiated reports whether a ServerHello, other than a HelloRetryRequest, was sent or received.
func (c *Conn) Negotiated() bool { return c.p.negotiated != 0 }

// Errors returns the packed codes of the last failure, oldest first.
func (c *Conn) Errors() []uint64 { return codes(&c.p.errors) }

// Hellos returns the hellos of a handshake that has failed. The bytes are valid until the next call
// on the connection.
func (c *Conn) Hellos() Hellos {
	c.crossings++
	var h c_ossl_hellos
	c_ossl_conn_hellos(c.p, &h)
	return Hellos{Client: borrowed(h.client, h.client_len), Version: uint16(h.version), Suite: uint16(h.suite)}
}

// Facts returns the parameters negotiated so far.
func (c *Conn) Facts() Facts {
	c.crossings++
	var f c_ossl_facts
	c_ossl_conn_facts(c.p, &f)
	return factsOf(&f)
}

// factsOf copies f and the data that it points to.
func factsOf(f *c_ossl_facts) Facts {
	facts := Facts{
		Version:              uint16(f.version),
		CipherSuite:          uint16(f.cipher),
		Group:                uint16(f.group),
		Resumed:              f.resumed != 0,
		PSK:                  f.psk != 0,
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
		facts.LocalFinished = c_GoBytes(unsafe.Pointer(&f.local_finished[0]), c_int(n))
	}
	if n := int(f.peer_finished_len); n > 0 && n <= len(f.peer_finished) {
		facts.PeerFinished = c_GoBytes(unsafe.Pointer(&f.peer_finished[0]), c_int(n))
	}
	return facts
}
