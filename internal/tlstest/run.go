package tlstest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
)

// Patience is the time that a run may take. Then its connections are closed, and it counts as hung.
const Patience = time.Minute

// A Case is something that happens between a client and a server. The configurations are made anew
// for each run.
type Case struct {
	Name           string
	Client, Server func() *tls.Config
	// ClientFault and ServerFault, if not nil, make the fault that the bytes written by that side
	// go through.
	ClientFault, ServerFault func() Fault
	// Pair makes the connection; Buffered if nil.
	Pair Pair
	// Shared is set if the configurations must be used as they are, without a key log. It is for
	// functions that return the same one each time, so that an implementation that compiles
	// configurations does so once. Sealed records are then opaque.
	Shared bool
	// Talk is called for each side after its handshake; Echo if nil. The text it returns is
	// compared, with its error.
	Talk func(role Role, c Conn) (string, error)
	// Context, if not nil, gives a side's handshake its context.
	Context func(role Role) context.Context
	// OnStall is called, once, when client and server of a Buffered pair wait for each other and
	// always would. Without it, or if they still wait after it, the run has hung.
	OnStall func(client, server Conn)
	// Calls, if not nil, is emptied before each run and collects the notes of the configurations'
	// callbacks.
	Calls *Calls
}

// Calls is a list of calls of callbacks for each side.
type Calls struct {
	mu   sync.Mutex
	list map[Role][]string
}

// Add notes a call.
func (c *Calls) Add(side Role, format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list[side] = append(c.list[side], fmt.Sprintf(format, args...))
}

func (c *Calls) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = make(map[Role][]string)
}

func (c *Calls) of(side Role) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.list[side], "; ")
}

// A Side is the outcome of a run for one side.
type Side struct {
	Handshake string // class of Handshake's error
	Talk      string // class of Talk's error, if the handshake was good
	Heard     string // the text that Talk returned
	State     string // the whole ConnectionState after a good handshake, printed
	Calls     string // the calls that Case.Calls collected for this side
	Name      string // the ConnectionState's ServerName after the handshake, even if it failed
	Alerts    string // alerts that this end sent, except close_notify, as "level/description", from the wire

	HandshakeErr, TalkErr error
	ConnState             tls.ConnectionState
}

// An Outcome is the outcome of a run for client and server.
type Outcome struct {
	Client, Server Side
	// Hung is set if client and server waited for each other, or if the run took longer than
	// Patience. The run was then aborted, which caused the errors of the sides.
	Hung      bool
	Recording *Recording
	// ClientLog and ServerLog are the key logs of client and server.
	ClientLog, ServerLog *KeyLog
}

// Of returns the side of a role.
func (o *Outcome) Of(r Role) *Side {
	if r == ClientRole {
		return &o.Client
	}
	return &o.Server
}

// Fields are the names of a Side's fields that tests compare.
var Fields = []string{"Handshake", "Talk", "Heard", "State", "Calls", "Name", "Alerts"}

// Field returns the field with a name in Fields.
func (s *Side) Field(name string) string { return reflect.ValueOf(*s).FieldByName(name).String() }

// Groups are the groups that every supported library and TLS version has. Configurations ask for
// them so that the outcomes don't depend on ML-KEM, which under the race detector also costs more
// than everything else.
var Groups = []tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP384, tls.CurveP521}

// ClientConfig returns a client's configuration that accepts the good server certificates.
func ClientConfig(edits ...func(*tls.Config)) *tls.Config {
	c := &tls.Config{RootCAs: CA().Pool(), ServerName: ServerName, CurvePreferences: Groups}
	for _, edit := range edits {
		edit(c)
	}
	return c
}

// ServerConfig returns a server's configuration with the good P-256 certificate and no session
// tickets.
func ServerConfig(edits ...func(*tls.Config)) *tls.Config {
	c := &tls.Config{
		Certificates:           []tls.Certificate{ServerCert(P256)},
		SessionTicketsDisabled: true,
		CurvePreferences:       Groups,
	}
	for _, edit := range edits {
		edit(c)
	}
	return c
}

// Run plays a case once.
func Run(p Pairing, c Case) *Outcome {
	o := &Outcome{Recording: new(Recording), ClientLog: new(KeyLog), ServerLog: new(KeyLog)}
	if c.Calls != nil {
		c.Calls.reset()
	}
	pair := c.Pair
	if pair == nil {
		pair = Buffered
	}
	rawClient, rawServer := pair()
	defer rawClient.Close()
	defer rawServer.Close()
	wrap := func(r Role, raw net.Conn, fault func() Fault) net.Conn {
		conn := o.Recording.Tap(r, raw)
		if fault != nil {
			conn = WithFault(conn, fault())
		}
		return conn
	}
	client := p.Client.Client(wrap(ClientRole, rawClient, c.ClientFault), config(c.Client, ClientConfig, c.Shared, o.ClientLog))
	server := p.Server.Server(wrap(ServerRole, rawServer, c.ServerFault), config(c.Server, ServerConfig, c.Shared, o.ServerLog))

	var wg sync.WaitGroup
	for role, conn := range map[Role]Conn{ClientRole: client, ServerRole: server} {
		wg.Go(func() {
			side := o.Of(role)
			defer conn.Close()
			err := handshake(conn, role, c.Context)
			side.HandshakeErr, side.Handshake = err, Class(err)
			side.Name = conn.ConnectionState().ServerName
			if err != nil {
				return
			}
			side.ConnState = conn.ConnectionState()
			side.State = DescribeState(side.ConnState)
			talk := c.Talk
			if talk == nil {
				talk = Echo
			}
			side.Heard, side.TalkErr = talk(role, conn)
			side.Talk = Class(side.TalkErr)
		})
	}
	var onStall func()
	if c.OnStall != nil {
		onStall = func() { c.OnStall(client, server) }
	}
	o.Hung = !patiently(&wg, rawClient, rawServer, onStall)
	if c.Calls != nil {
		o.Client.Calls, o.Server.Calls = c.Calls.of(ClientRole), c.Calls.of(ServerRole)
	}
	log := o.ServerLog
	if log.String() == "" {
		log = o.ClientLog
	}
	o.Client.Alerts = alertText(o.Recording.Decipher(ClientRole, log))
	o.Server.Alerts = alertText(o.Recording.Decipher(ServerRole, log))
	return o
}

func config(make func() *tls.Config, byDefault func(...func(*tls.Config)) *tls.Config, shared bool, log *KeyLog) *tls.Config {
	if make == nil {
		make = func() *tls.Config { return byDefault() }
	}
	if shared {
		return make()
	}
	return WithKeyLog(make(), log)
}

func handshake(conn Conn, role Role, context func(Role) context.Context) error {
	if context == nil {
		return conn.Handshake()
	}
	return conn.HandshakeContext(context(role))
}

// patiently waits for both sides to finish. If they never will, it closes their transports and
// returns false.
func patiently(wg *sync.WaitGroup, client, server net.Conn, onStall func()) bool {
	done, stuck := make(chan struct{}), make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	if p, ok := client.(*PipeConn); ok {
		go func() {
			if !p.WaitStuck() {
				return
			}
			if onStall != nil {
				onStall()
				select {
				case <-done:
					return
				case <-time.After(Patience / 2): // for the effects of onStall to arrive
				}
				if !p.WaitStuck() {
					return
				}
			}
			close(stuck)
		}()
	}
	watchdog := time.NewTimer(Patience)
	defer watchdog.Stop()
	select {
	case <-done:
		return true
	case <-stuck:
	case <-watchdog.C:
	}
	client.Close()
	server.Close()
	<-done
	return false
}

// WithKeyLog returns c with its keys logged to log, in addition to its own KeyLogWriter.
func WithKeyLog(c *tls.Config, log *KeyLog) *tls.Config {
	c = c.Clone()
	if c.KeyLogWriter != nil {
		c.KeyLogWriter = io.MultiWriter(c.KeyLogWriter, log)
	} else {
		c.KeyLogWriter = log
	}
	return c
}

func alertText(records []Record) string {
	var text []string
	for _, a := range Alerts(records) {
		if a != (Alert{1, 0}) {
			text = append(text, a.String())
		}
	}
	return strings.Join(text, " ")
}

// Echo is the Talk of cases that have none: the client sends a line and reads it back,
// then both close.
func Echo(role Role, c Conn) (string, error) {
	const line = "hello over TLS"
	buf := make([]byte, len(line))
	if role == ServerRole {
		n, err := io.ReadFull(c, buf)
		if err != nil {
			return string(buf[:n]), err
		}
		if _, err := c.Write(buf); err != nil {
			return string(buf), err
		}
		rest, err := io.ReadAll(c)
		return string(buf) + string(rest), err
	}
	// A server that refused the client's certificate may be gone already: its alert matters, not
	// that writing failed.
	_, werr := c.Write([]byte(line))
	n, err := io.ReadFull(c, buf)
	if err == nil {
		err = werr
	}
	return string(buf[:n]), err
}

// DescribeState prints every exported field of a ConnectionState that is a function of the case.
func DescribeState(s tls.ConnectionState) string {
	var b strings.Builder
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		switch x := v.Field(i).Interface().(type) {
		case []*x509.Certificate:
			fmt.Fprintf(&b, "%s=%s ", f.Name, CertNames(x))
		case [][]*x509.Certificate:
			var chains []string
			for _, chain := range x {
				chains = append(chains, CertNames(chain))
			}
			slices.Sort(chains)
			fmt.Fprintf(&b, "%s=%v ", f.Name, chains)
		case []byte:
			if f.Name == "TLSUnique" { // differs from run to run
				fmt.Fprintf(&b, "%s=%d bytes ", f.Name, len(x))
			} else {
				fmt.Fprintf(&b, "%s=%x ", f.Name, x)
			}
		case tls.CurveID:
			fmt.Fprintf(&b, "%s=%d ", f.Name, x)
		default:
			fmt.Fprintf(&b, "%s=%v ", f.Name, x)
		}
	}
	return strings.TrimSpace(b.String())
}

// CertNames prints a chain.
func CertNames(certs []*x509.Certificate) string {
	var names []string
	for _, c := range certs {
		sum := sha256.Sum256(c.Raw)
		names = append(names, fmt.Sprintf("%s#%x", c.Subject.CommonName, sum[:4]))
	}
	return "[" + strings.Join(names, " < ") + "]"
}

// SameTLSUnique reports whether client and server have the same value for the tls-unique binding.
func (o *Outcome) SameTLSUnique() bool {
	return bytes.Equal(o.Client.ConnState.TLSUnique, o.Server.ConnState.TLSUnique)
}
