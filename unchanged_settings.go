//go:build ossl_unchanged

package ossl

import (
	"crypto"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/ossl-go/ossl/internal/unchanged"
	"github.com/ossl-go/ossl/internal/unchanged/settings"
	"github.com/ossl-go/ossl/session"
)

// processSettings are the settings of a process, with the options that they give to its connections.
type processSettings struct {
	settings.Loaded
	err     error                               // none of the settings can be honoured
	options map[string]func() (*options, error) // of the roles
	keys    func() ([]crypto.Signer, error)

	mu      sync.Mutex
	refused map[string]string // guarded by mu; the reasons, by key
}

// settingsInForce returns the settings. They are read once.
var settingsInForce = sync.OnceValue(readSettings)

func readSettings() *processSettings {
	s := &processSettings{refused: map[string]string{}, options: map[string]func() (*options, error){}}
	loaded, err := settings.Load(unchanged.BuiltSettings(), os.Getenv(settings.Env), privileged())
	if err != nil {
		s.err, s.File = err, new(settings.File)
		return s
	}
	s.Loaded = *loaded
	s.keys = sync.OnceValues(s.loadKeys)
	if counter, err := unchanged.Process(); err == nil && s.Note != "" {
		counter.Log(s.Note)
	}
	for _, role := range []string{settings.Servers, settings.Clients} {
		s.options[role] = sync.OnceValues(func() (*options, error) { return s.makeOptions(role) })
	}
	if reflect.ValueOf(s.Servers).IsZero() && reflect.ValueOf(s.Clients).IsZero() {
		s.options[settings.Clients] = s.options[settings.Servers] // one Context for both
	}
	return s
}

// roleName returns the name of a role in the settings.
func roleName(r unchanged.Role) string {
	if r == unchanged.Client {
		return settings.Clients
	}
	return settings.Servers
}

// mode returns the mode of a role's connections. It is Require if the settings ask for more than crypto/tls
// does.
func (s *processSettings) mode(role unchanged.Role) (unchanged.Mode, error) {
	if s.err != nil {
		return "", s.err
	}
	asked := os.Getenv(unchanged.EnvMode)
	fips, err := fipsReason(unchanged.Mode(asked) == unchanged.Off)
	if err != nil {
		return "", err
	}
	if fips == "" && s.FIPS {
		fips = "asked for by " + s.Source
	}
	if fips != "" {
		if err := s.checkFIPS(fips); err != nil {
			return "", err
		}
	}
	mode, err := unchanged.ModeOf(unchanged.Built().Mode, asked, fips)
	key := s.Role(roleName(role)).Strict()
	if err != nil || key == "" {
		return mode, err
	}
	if mode == unchanged.Off {
		return "", s.refuse(roleName(role)+"."+key,
			unchanged.EnvMode+"=off leaves the connections to crypto/tls, which doesn't honour it")
	}
	return unchanged.Require, nil
}

// fipsReason is like fipsRequired. Without OpenSSL, it asks at least the kernel: if OpenSSL can't be loaded, or
// in the mode off, whose operator may want to avoid it.
func fipsReason(off bool) (why string, err error) {
	if !off || os.Getenv(envFIPS) != "" {
		if why, err = fipsRequired(); why != "" || err != nil || hostFIPS.Load() != nil {
			return why, err
		}
	}
	return fipsByKernel(kernelFIPS)
}

func (s *processSettings) checkFIPS(why string) error {
	err := s.CheckFIPS(why)
	if e := (*settings.Error)(nil); errors.As(err, &e) {
		return s.refuse(e.Key, e.Reason)
	}
	return err
}

// engine returns a connection with the role's settings.
func (s *processSettings) engine(conn net.Conn, config *tls.Config, role unchanged.Role) *Conn {
	config = orDefault(config)
	e, err := s.context(config, role)
	if role == unchanged.Server {
		return serverOf(e, err, conn)
	}
	if err != nil {
		return &Conn{conn: conn, isClient: true, configErr: err}
	}
	return clientOf(e, conn, config.ServerName)
}

func (s *processSettings) context(config *tls.Config, role unchanged.Role) (*sharedContext, error) {
	opts, err := s.options[roleName(role)]()
	if err != nil {
		return nil, err
	}
	entry, err := entryWith(config, opts)
	if err != nil {
		return nil, err
	}
	return entry.context(config)
}

// makeOptions returns the options of a role.
func (s *processSettings) makeOptions(role string) (*options, error) {
	records, err := recordsOfEnvironment()
	if err != nil {
		return nil, err
	}
	r := s.Role(role)
	o := newOptions(records)
	o.fips, o.keyLog = s.FIPS, s.KeyLog
	o.kernelTLS, o.withoutHostPolicy = r.KernelTLS, r.HostPolicy == settings.Ignore
	o.allowTruncation = r.Truncation != settings.Fail
	o.handsOver = func() bool {
		mode, err := s.mode(unchanged.Server)
		return err == nil && mode == unchanged.Prefer
	}
	o.refused = func(err error) error { return s.explain(role, err) }
	var opts []Option
	if r.Policy != "" {
		config, options, err := policyOptions(r.Policy, role == settings.Clients)
		if err != nil {
			return nil, s.refuse(role+".policy", err.Error())
		}
		o.restrict, opts = restrictTo(config), options
	}
	if r.SecurityLevel != nil {
		opts = append(opts, WithSecurityLevel(*r.SecurityLevel))
	}
	if r.TLS13CipherSuites != nil {
		opts = append(opts, WithTLS13CipherSuites(r.Suites()...))
	}
	if r.RecordPath != "" {
		opts = append(opts, WithRecordPath(recordPaths[r.RecordPath]))
	}
	if r.SessionLifetime != "" {
		opts = append(opts, WithSessionLifetime(r.Lifetime()))
	}
	if r.Sessions != nil {
		opts = append(opts, WithSessionCache(session.NewCache(r.Sessions.ID)))
		if r.Sessions.TLS13 != settings.ID {
			opts = append(opts, WithTLS13Tickets())
		}
	}
	if r.TicketKeys != nil {
		ring, err := readRing(r.TicketKeys)
		if err != nil {
			return nil, s.refuse(role+".ticket_keys", strings.TrimPrefix(err.Error(), "session: "))
		}
		opts = append(opts, WithTicketKeys(ring))
	}
	for _, opt := range opts {
		if err := opt(o); err != nil {
			return nil, s.explain(role, err)
		}
	}
	return o, nil
}

// policyOptions returns the configuration and the options of a named policy for clients or servers.
var policyOptions func(name string, client bool) (*tls.Config, []Option, error)

// RegisterPolicies sets the function that returns the configuration and the options of a named policy.
// Package policy/apply, which has it, imports this one.
func RegisterPolicies(f func(name string, client bool) (*tls.Config, []Option, error)) {
	policyOptions = f
}

// restrictTo returns a function that restricts a program's configuration to a policy's.
func restrictTo(p *tls.Config) func(*tls.Config) error {
	none := func(what string) error {
		return &ConfigError{Field: "policy", Reason: "allows none of the program's " + what}
	}
	return func(c *tls.Config) error {
		c.MinVersion = max(c.MinVersion, p.MinVersion)
		if c.MaxVersion == 0 || c.MaxVersion > p.MaxVersion {
			c.MaxVersion = p.MaxVersion
		}
		if c.MinVersion > c.MaxVersion {
			return none("versions")
		}
		c.SessionTicketsDisabled = c.SessionTicketsDisabled || p.SessionTicketsDisabled
		var ok bool
		if c.CipherSuites, ok = both(p.CipherSuites, c.CipherSuites); !ok && c.MinVersion < tls.VersionTLS13 {
			return none("CipherSuites")
		}
		if c.CurvePreferences, ok = both(p.CurvePreferences, c.CurvePreferences); !ok {
			return none("CurvePreferences")
		}
		return nil
	}
}

// both returns the elements of a that are in b, or the other list if one is empty. If no element is in
// both lists, the result is a, and ok is false.
func both[E comparable](a, b []E) (list []E, ok bool) {
	switch {
	case len(a) == 0:
		return b, true
	case len(b) == 0:
		return a, true
	}
	for _, e := range a {
		if slices.Contains(b, e) {
			list = append(list, e)
		}
	}
	if list == nil {
		return a, false
	}
	return list, true
}

// settingOf has the keys that set an option.
var settingOf = map[string]string{
	"policy": "policy", "WithSignatureAlgorithms": "policy", "WithCipherSuiteOrder": "policy",
	"WithSecurityLevel":     "security_level",
	"WithTLS13CipherSuites": "tls13_cipher_suites",
	"WithRecordPath":        "record_path",
	"WithKernelTLS":         "kernel_tls",
	"WithSessionCache":      "sessions", "WithTLS13Tickets": "sessions",
	"WithTicketKeys":      "ticket_keys",
	"WithSessionLifetime": "session_lifetime",
}

// explain returns an error that names the setting if err means that a setting can't be honoured. Then the
// connection is not left to crypto/tls.
func (s *processSettings) explain(role string, err error) error {
	if errors.Is(err, ErrNotFIPS) && s.FIPS {
		return s.refuse("fips", err.Error())
	}
	var e *ConfigError
	if !errors.As(err, &e) {
		return err
	}
	if e.Field == "key_log" {
		return s.refuse("key_log", reasonOf(e))
	}
	key := role + "." + settingOf[e.Field]
	switch {
	case settingOf[e.Field] == "":
		return err
	case s.isSet(key):
		return s.refuse(key, reasonOf(e))
	case s.Role(role).Policy != "": // which sets several options
		return s.refuse(role+".policy", strings.TrimPrefix(err.Error(), "ossl: "))
	}
	return err
}

func reasonOf(e *ConfigError) string { return strings.TrimPrefix(e.Error(), "ossl: "+e.Field+": ") }

func (s *processSettings) isSet(key string) bool {
	return slices.ContainsFunc(s.List(), func(set settings.Setting) bool {
		return set.Name == key || strings.HasPrefix(set.Name, key+".")
	})
}

// refuse records that a setting can't be honoured, and returns the error.
func (s *processSettings) refuse(key, reason string) error {
	reason = strings.TrimPrefix(reason, "ossl: ")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused[key] = reason
	return &settings.Error{Source: s.Source, Key: key, Reason: reason}
}

// InForce returns the settings of this process, without secrets. A setting is refused once a connection
// could not be made with it.
func InForce() []settings.Setting {
	s := settingsInForce()
	if s.err != nil {
		e := &settings.Error{Reason: s.err.Error()}
		errors.As(s.err, &e)
		return []settings.Setting{{Name: e.Key, Refused: s.err.Error()}}
	}
	list := s.List()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range list {
		for key, reason := range s.refused {
			if list[i].Name == key || strings.HasPrefix(list[i].Name, key+".") {
				list[i].Refused = reason
			}
		}
		if strings.HasSuffix(list[i].Name, ".kernel_tls") && list[i].Refused == "" && len(KernelTLS()) == 0 {
			list[i].Refused = "this kernel can't seal records: load its module tls"
		}
	}
	return list
}
