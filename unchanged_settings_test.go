//go:build ossl_unchanged && unix

package ossl_test

import (
	"crypto/rand"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
	_ "github.com/ossl-go/ossl/internal/unchanged/attach"
	"github.com/ossl-go/ossl/internal/unchanged/settings"
	"github.com/ossl-go/ossl/keys"
)

// set puts settings into force, as if the process began. "" stands for none.
func set(t *testing.T, text string) {
	t.Helper()
	name := ""
	if text != "" {
		name = filepath.Join(t.TempDir(), "settings.json")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(settings.Env, name)
	t.Setenv("OSSL_LOG", "off")
	ossl.ReadSettingsAgain(20 * time.Millisecond)
	t.Cleanup(func() { ossl.ReadSettingsAgain(time.Minute) })
}

func ofServers(s string) string { return `{"format": 1, "servers": {` + s + `}}` }

// An exchange is a connection between a client and an engine that serves.
type exchange struct {
	client       tls.ConnectionState
	server       *ossl.Conn
	clientErr    error
	serverErr    error
	clientSocket interface{ Close() error }
}

// serve runs a handshake of a server that "ossl go" has built, and sends a byte to the client, which is
// ossl's or crypto/tls's. crypto/tls's resumes nothing by ID.
func serve(t *testing.T, client, server *tls.Config, byOssl bool) *exchange {
	t.Helper()
	c, s := tlstest.Loopback()
	t.Cleanup(func() { c.Close(); s.Close() })
	e := &exchange{server: ossl.NewEngine(s, server, false), clientSocket: c}
	if e.server == nil {
		t.Fatal("the connection is left to crypto/tls")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, e.serverErr = e.server.Write([]byte{1})
		if e.serverErr != nil {
			s.Close()
		}
	}()
	var conn interface {
		io.Reader
		Handshake() error
		ConnectionState() tls.ConnectionState
	} = tls.Client(c, client)
	if byOssl {
		conn = ossl.Client(c, client)
	}
	if _, e.clientErr = conn.Read(make([]byte, 1)); e.clientErr == nil { // tickets come before the byte
		e.client = conn.ConnectionState()
	} else {
		c.Close()
	}
	<-done
	return e
}

func (e *exchange) check(t *testing.T) *exchange {
	t.Helper()
	if e.clientErr != nil || e.serverErr != nil {
		t.Fatalf("client: %v; server: %v", e.clientErr, e.serverErr)
	}
	return e
}

// firstSession is a ClientSessionCache that keeps the first session.
type firstSession struct{ tlstest.OneSlot }

func (s *firstSession) Put(key string, state *tls.ClientSessionState) {
	if s.State == nil {
		s.OneSlot.Put(key, state)
	}
}

// resumptions connects three times with the same session, and returns which connections resumed it.
func resumptions(t *testing.T, version uint16, tickets bool) (resumed [3]bool) {
	t.Helper()
	client, server := tlstest.ClientConfig(tlstest.Only(version)), tlstest.ServerConfig()
	client.ClientSessionCache, server.SessionTicketsDisabled = new(firstSession), !tickets
	for i := range resumed {
		resumed[i] = serve(t, client, server, true).check(t).client.DidResume
	}
	return resumed
}

func TestSettingsSessions(t *testing.T) {
	for _, test := range []struct {
		name     string
		settings string
		version  uint16
		tickets  bool // of the program
		want     [3]bool
	}{
		{"none, by ID", "", tls.VersionTLS12, false, [3]bool{}},
		{"none, ticket", "", tls.VersionTLS13, true, [3]bool{false, true, true}},
		{"TLS 1.2 by ID", ofServers(`"sessions": {"id": 100}`), tls.VersionTLS12, false, [3]bool{false, true, true}},
		{"TLS 1.3 without tickets", ofServers(`"sessions": {"id": 100}`), tls.VersionTLS13, false, [3]bool{false, true, false}},
		{"TLS 1.3 by ticket", ofServers(`"sessions": {"id": 100}`), tls.VersionTLS13, true, [3]bool{false, true, true}},
		{"TLS 1.3 by ID", ofServers(`"sessions": {"id": 100, "tls13": "id"}`), tls.VersionTLS13, true, [3]bool{false, true, false}},
		{"policy, by ID", ofServers(`"policy": "default"`), tls.VersionTLS12, false, [3]bool{false, true, true}},
		{"policy, ticket", ofServers(`"policy": "default"`), tls.VersionTLS13, true, [3]bool{false, true, true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			set(t, test.settings)
			if got := resumptions(t, test.version, test.tickets); got != test.want {
				t.Errorf("resumed are %v, want %v", got, test.want)
			}
		})
	}
}

// writeTicketKey writes a new key into a file, in one step.
func writeTicketKey(t *testing.T, name string) {
	t.Helper()
	key := make([]byte, 80)
	rand.Read(key)
	if err := os.WriteFile(name+".new", key, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
}

// TestSettingsTicketKeys: processes share tickets by the file, until it has another key.
func TestSettingsTicketKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	writeTicketKey(t, file)
	text := ofServers(fmt.Sprintf(`"ticket_keys": [%q]`, file))
	client := tlstest.ClientConfig()
	client.ClientSessionCache = new(firstSession)
	connect := func() bool {
		server := tlstest.ServerConfig()
		server.SessionTicketsDisabled = false
		return serve(t, client, server, false).check(t).client.DidResume
	}
	set(t, text)
	connect()
	set(t, text)
	if !connect() {
		t.Fatal("another process doesn't resume")
	}
	writeTicketKey(t, file)
	for deadline := time.Now().Add(time.Minute); connect(); {
		if time.Now().After(deadline) {
			t.Fatal("the file is not read again")
		}
	}
}

// TestSettingsLifetime: a session is resumed, and no longer when its second is over.
func TestSettingsLifetime(t *testing.T) {
	set(t, ofServers(`"session_lifetime": "1s"`))
	client, server := tlstest.ClientConfig(), tlstest.ServerConfig()
	client.ClientSessionCache, server.SessionTicketsDisabled = new(firstSession), false
	serve(t, client, server, true).check(t)
	for deadline := time.Now().Add(time.Minute); serve(t, client, server, true).check(t).client.DidResume; {
		if time.Now().After(deadline) {
			t.Fatal("the session lasts")
		}
	}
}

func TestSettingsOfConnections(t *testing.T) {
	const suite = tls.TLS_CHACHA20_POLY1305_SHA256
	for _, test := range []struct {
		name, settings string
		is             func(e *exchange) bool // with the settings, and not without
	}{
		{"TLS 1.3 suites", `"tls13_cipher_suites": ["TLS_CHACHA20_POLY1305_SHA256"]`,
			func(e *exchange) bool { return e.client.CipherSuite == suite }},
		{"record path", `"record_path": "libssl"`, func(e *exchange) bool { return e.server.RecordsByLibssl() }},
		{"host policy", `"host_policy": "ignore"`, func(e *exchange) bool { return !e.server.FollowsHost() }},
		{"truncation", `"truncation": "error"`, func(e *exchange) bool {
			e.clientSocket.Close()
			_, err := e.server.Read(make([]byte, 1))
			return err == io.ErrUnexpectedEOF
		}},
		{"policy", `"policy": "mozilla-modern-6.0"`, func(e *exchange) bool {
			c, s := tlstest.Loopback()
			defer c.Close()
			go func() {
				ossl.NewEngine(s, tlstest.ServerConfig(), false).Handshake()
				s.Close()
			}()
			return tls.Client(c, tlstest.ClientConfig(tlstest.Only(tls.VersionTLS12))).Handshake() != nil
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			set(t, "")
			if test.is(serve(t, tlstest.ClientConfig(), tlstest.ServerConfig(), false).check(t)) {
				t.Fatal("so it is without the setting")
			}
			set(t, ofServers(test.settings))
			if !test.is(serve(t, tlstest.ClientConfig(), tlstest.ServerConfig(), false).check(t)) {
				t.Error("the setting has no effect")
			}
			if list := ossl.InForce(); len(list) != 1 || list[0].Refused != "" {
				t.Errorf("in force are %+v", list)
			}
		})
	}
}

// TestSettingsKernelTLS: if the kernel can't seal, InForce has the reason.
func TestSettingsKernelTLS(t *testing.T) {
	set(t, ofServers(`"kernel_tls": true`))
	e := serve(t, tlstest.ClientConfig(), tlstest.ServerConfig(), false).check(t)
	can := slices.Contains(ossl.KernelTLS(), e.client.Version)
	if e.server.KernelTLS() != can {
		t.Errorf("Linux seals: %v, it can: %v", !can, can)
	}
	if list := ossl.InForce(); len(list) != 1 || (list[0].Refused == "") != (len(ossl.KernelTLS()) > 0) {
		t.Errorf("in force are %+v", list)
	}
}

// TestSettingsKeys: the key by URI takes the place of the file's, of crypto/tls's connections too.
func TestSettingsKeys(t *testing.T) {
	f := tlstest.WriteFiles(t)
	chain, err := os.ReadFile(f.ServerCert)
	if err != nil {
		t.Fatal(err)
	}
	set(t, "")
	if _, ok, err := ossl.KeyPair(chain); ok || err != nil {
		t.Fatalf("without settings: %v, %v", ok, err)
	}
	set(t, fmt.Sprintf(`{"format": 1, "keys": [%q]}`, f.ServerKey))
	other := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tlstest.CA().Cert.Raw})
	for _, bad := range []string{string(other), "", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"} {
		if _, ok, err := ossl.KeyPair([]byte(bad)); ok || err != nil {
			t.Errorf("for %q: %v, %v", bad, ok, err)
		}
	}
	cert, ok, err := ossl.KeyPair(chain)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	if _, ok := cert.PrivateKey.(*keys.Key); !ok {
		t.Errorf("the key is a %T", cert.PrivateKey)
	}
	serve(t, tlstest.ClientConfig(), tlstest.ServerConfig(tlstest.Certificates(cert)), false).check(t)
	if list := ossl.InForce(); len(list) != 1 || list[0].Refused != "" {
		t.Errorf("in force are %+v", list)
	}

	set(t, fmt.Sprintf(`{"format": 1, "keys": [%q, %q]}`, f.ServerKey, f.ServerKey+".missing"))
	_, ok, err = ossl.KeyPair(chain)
	var e *settings.Error
	if ok || !errors.As(err, &e) || e.Key != "keys" || ossl.InForce()[0].Refused == "" {
		t.Errorf("a key that is missing: %v, %v; in force are %+v", ok, err, ossl.InForce())
	}
}

func TestSettingsKeyLog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	set(t, fmt.Sprintf(`{"format": 1, "key_log": %q}`, file))
	serve(t, tlstest.ClientConfig(), tlstest.ServerConfig(), false).check(t)
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "CLIENT_TRAFFIC_SECRET_0") {
		t.Errorf("%q, %v", text, err)
	}
}

// TestSettingsOfClients: a client that the policy restricts to TLS 1.3 is refused by a server without it.
func TestSettingsOfClients(t *testing.T) {
	dial := func(server *tls.Config) error {
		c, s := tlstest.Loopback()
		defer c.Close()
		go func() {
			tls.Server(s, server).Handshake()
			s.Close()
		}()
		return ossl.NewEngine(c, tlstest.ClientConfig(), true).Handshake()
	}
	old := tlstest.ServerConfig(tlstest.Only(tls.VersionTLS12))
	set(t, "")
	if err := dial(old); err != nil {
		t.Fatal(err)
	}
	set(t, `{"format": 1, "clients": {"policy": "mozilla-modern-6.0"}}`)
	if err := dial(old); err == nil {
		t.Error("the client speaks TLS 1.2")
	}
	if err := dial(tlstest.ServerConfig()); err != nil {
		t.Error(err)
	}
}

// TestSettingsRefused: what can't be honoured is an error of each connection, which is not left to
// crypto/tls although the mode is prefer, and InForce has it.
func TestSettingsRefused(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	ownKeys := tlstest.ServerConfig()
	ownKeys.SessionTicketsDisabled = false
	ownKeys.SetSessionTicketKeys([][32]byte{{1}})
	for _, test := range []struct {
		name, settings, key string
		server              *tls.Config
		env                 [2]string
	}{
		{name: "broken", settings: "{", server: tlstest.ServerConfig()},
		{name: "unknown key", settings: ofServers(`"curves": 1`), key: "servers.curves", server: tlstest.ServerConfig()},
		{name: "no ticket keys", settings: ofServers(fmt.Sprintf(`"ticket_keys": [%q]`, missing)), key: "servers.ticket_keys",
			server: tlstest.ServerConfig()},
		{name: "the program's ticket keys", settings: ofServers(fmt.Sprintf(`"ticket_keys": [%q]`, ticketKeyFile(t))),
			key: "servers.ticket_keys", server: ownKeys},
		{name: "policy without the program's versions", settings: ofServers(`"policy": "mozilla-modern-6.0"`), key: "servers.policy",
			server: tlstest.ServerConfig(tlstest.Only(tls.VersionTLS12))},
		{name: "policy without the program's groups", settings: ofServers(`"policy": "mozilla-modern-6.0"`), key: "servers.policy",
			server: tlstest.ServerConfig(tlstest.Curves(tls.CurveP521))},
		{name: "policy in mode off", settings: ofServers(`"policy": "default"`), key: "servers.policy",
			server: tlstest.ServerConfig(), env: [2]string{"OSSL_MODE", "off"}},
		{name: "key log that can't be written", settings: `{"format": 1, "key_log": "/nonexistent/keys"}`, key: "key_log",
			server: tlstest.ServerConfig()},
		{name: "key log in FIPS mode", settings: fmt.Sprintf(`{"format": 1, "key_log": %q}`, missing), key: "key_log",
			server: tlstest.ServerConfig(), env: [2]string{"OSSL_FIPS", "require"}},
		{name: "kernel TLS in FIPS mode", settings: ofServers(`"kernel_tls": true`), key: "servers.kernel_tls",
			server: tlstest.ServerConfig(), env: [2]string{"OSSL_FIPS", "require"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			set(t, test.settings)
			if test.env[0] != "" {
				t.Setenv(test.env[0], test.env[1])
			}
			err := engineError(t, test.server)
			var e *settings.Error
			if !errors.As(err, &e) || e.Key != test.key || !strings.HasPrefix(e.Source, settings.Env+"=/") {
				t.Errorf("the error is %v, want one for the key %q", err, test.key)
			}
			if !slices.ContainsFunc(ossl.InForce(), func(s settings.Setting) bool { return s.Name == test.key && s.Refused != "" }) {
				t.Errorf("in force are %+v", ossl.InForce())
			}
		})
	}
}

func ticketKeyFile(t *testing.T) string {
	name := filepath.Join(t.TempDir(), "key")
	writeTicketKey(t, name)
	return name
}

// engineError returns the error of a server's handshake, which is known before the client sends anything.
func engineError(t *testing.T, server *tls.Config) error {
	t.Helper()
	c, s := tlstest.Loopback()
	c.Close()
	defer s.Close()
	conn := ossl.NewEngine(s, server, false)
	if conn == nil {
		t.Fatal("the connection is left to crypto/tls")
	}
	return conn.Handshake()
}

// TestSettingsAreStrict: connections that ossl refuses are not left to crypto/tls if the settings ask for
// more than it does.
func TestSettingsAreStrict(t *testing.T) {
	old := tlstest.ServerConfig()
	old.Renegotiation = tls.RenegotiateOnceAsClient
	chosen := tlstest.ServerConfig()
	chosen.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return old, nil }
	for text, strict := range map[string]bool{
		"":                        false,
		`"kernel_tls": true`:      false,
		`"security_level": 1`:     false,
		`"security_level": 2`:     true,
		`"truncation": "error"`:   true,
		`"policy": "default"`:     true,
		`"truncation": "eof"`:     false,
		`"record_path": "auto"`:   false,
		`"host_policy": "ignore"`: false,
		`"tls13_cipher_suites": ["TLS_AES_128_GCM_SHA256"]`: true,
	} {
		t.Run(text, func(t *testing.T) {
			if text == "" {
				set(t, "")
			} else {
				set(t, ofServers(text))
			}
			c, s := tlstest.Loopback()
			defer c.Close()
			defer s.Close()
			if conn := ossl.NewEngine(s, old, false); (conn != nil) != strict {
				t.Errorf("the connection is left to crypto/tls: %v", conn == nil)
			}
			// The same refusal at the ClientHello, when crypto/tls could go on.
			conn := ossl.NewEngine(s, chosen, false)
			go tls.Client(c, tlstest.ClientConfig()).Handshake()
			before := ossl.CountOfServers()
			err := conn.Handshake()
			for range 2 { // goroutines
				if _, _, ok := conn.HandedOver(err); ok == strict {
					t.Errorf("the connection is handed over to crypto/tls: %v", ok)
				}
			}
			if n := before - ossl.CountOfServers(); (n == 1) == strict {
				t.Errorf("ossl has %d connections less", n)
			}
		})
	}
}

// TestSettingsUnknownMode: connections aren't left to crypto/tls if it is unknown which mode the environment
// asks for, or whether FIPS mode is required.
func TestSettingsUnknownMode(t *testing.T) {
	for _, env := range [][2]string{{"OSSL_MODE", "Require"}, {"OSSL_FIPS", "yes"}} {
		t.Run(env[0], func(t *testing.T) {
			set(t, "")
			t.Setenv(env[0], env[1])
			if err := engineError(t, tlstest.ServerConfig()); err == nil || !strings.Contains(err.Error(), env[0]) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// envKernel makes this program connect once, with this file in place of the kernel's. The exit status is 0 if
// the connection is left to crypto/tls.
const envKernel = "OSSL_TEST_KERNEL_FILE"

func init() {
	if name := os.Getenv(envKernel); name != "" {
		ossl.SetKernelFile(name)
		_, s := tlstest.Loopback()
		if ossl.NewEngine(s, tlstest.ServerConfig(), false) != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// TestSettingsKernelFIPS: if the kernel is in FIPS mode, connections aren't left to crypto/tls because OpenSSL
// isn't there, or must not be loaded.
func TestSettingsKernelFIPS(t *testing.T) {
	for kernel, left := range map[string]bool{"0\n": true, "1\n": false} {
		name := filepath.Join(t.TempDir(), "fips_enabled")
		if err := os.WriteFile(name, []byte(kernel), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, env := range []string{"OSSL_LIBRARY=/nonexistent", "OSSL_MODE=off"} {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), envKernel+"="+name, "OSSL_FIPS=", env)
			if err := cmd.Run(); (err == nil) != left || err != nil && cmd.ProcessState.ExitCode() != 1 {
				t.Errorf("%s, fips_enabled is %q: %v", env, kernel, err)
			}
		}
	}
}

// TestSettingsOfLesserUser: the user who starts a program with more rights can't change its settings.
func TestSettingsOfLesserUser(t *testing.T) {
	defer ossl.SetPrivileged()()
	set(t, ofServers(`"host_policy": "ignore"`))
	e := serve(t, tlstest.ClientConfig(), tlstest.ServerConfig(), false).check(t)
	if !e.server.FollowsHost() || len(ossl.InForce()) > 0 {
		t.Errorf("the settings are in force: %+v", ossl.InForce())
	}
}

// TestSettingsFIPS: FIPS mode is in force, or refused because the host has no module.
func TestSettingsFIPS(t *testing.T) {
	set(t, `{"format": 1, "fips": true}`)
	_, err := ossl.NewContext(nil, ossl.WithFIPS())
	c, s := tlstest.Loopback()
	defer c.Close()
	defer s.Close()
	conn := ossl.NewEngine(s, tlstest.ServerConfig(tlstest.Curves(tls.CurveP256)), false)
	if conn == nil {
		t.Fatal("the connection is left to crypto/tls")
	}
	if err == nil {
		if conn.FIPS() == nil {
			t.Error("the connection is not in FIPS mode")
		}
		return
	}
	var e *settings.Error
	if err := conn.Handshake(); !errors.As(err, &e) || e.Key != "fips" {
		t.Errorf("the error is %v", err)
	}
	if list := ossl.InForce(); len(list) != 1 || list[0].Refused == "" {
		t.Errorf("in force are %+v", list)
	}
}
