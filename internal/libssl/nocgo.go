//go:build !cgo

package libssl

import (
	"crypto/tls"
)

// programFault returns the reason why this program can't load any library, with a remedy.
func programFault() string {
	return "this program was built without cgo, which is needed to load a C library: build it with CGO_ENABLED=1 and a C compiler"
}

func tryLoad(candidate) (*Library, error) { return nil, ErrUnavailable }

func isPrivileged() bool { return false }

func isLoaded(string) bool { return false }

func searchFolders() ([]string, bool) { return nil, false }

// UseSlim reports whether contexts live in the slim library context.
func UseSlim() bool { return false }

// Reason returns OpenSSL's text for a packed error code, or "".
func Reason(uint64) string { return "" }

// HeapInUse returns the number of bytes in use on the C heap, or 0 if the C library doesn't report
// it.
func HeapInUse() uint64 { return 0 }

// TryFIPS returns ErrUnavailable.
func TryFIPS() error { return ErrUnavailable }

// SetUpFIPS returns ErrUnavailable.
func SetUpFIPS(bool) error { return ErrUnavailable }

// FIPSByHost returns the reason why the host's OpenSSL is to be in FIPS mode.
func FIPSByHost() (string, error) { return "", ErrUnavailable }

// FIPSConfiguration returns the configuration that the module would get now.
func FIPSConfiguration() string { return "" }

// FIPSModuleInfo queries the module that FIPS mode uses.
func FIPSModuleInfo() (FIPSModule, bool) { return FIPSModule{}, false }

// FIPSProvider returns the name of the provider that FIPS mode uses or would use.
func FIPSProvider() string { return "" }

// FIPSUnlisted returns the names of providers that are not known as FIPS modules.
func FIPSUnlisted() []string { return nil }

func fipsHasSignature(string) bool { return false }

// FIPSRandom returns ErrUnavailable.
func FIPSRandom([]byte) error { return ErrUnavailable }

// Roots are certificates that libcrypto trusts. Without cgo there are none.
type Roots struct{}

// NewRoots returns ErrUnavailable.
func NewRoots(bool, [][]byte) (*Roots, error) { return nil, ErrUnavailable }

// Verify returns ErrUnavailable.
func (r *Roots) Verify([]byte, *VerifyQuery) ([]byte, error) { return nil, ErrUnavailable }

// PausesHoldThreads reports whether a handshake that has asked Go holds a thread.
func PausesHoldThreads() bool { return false }

func ask(_, _ []string, _ bool) ([]bool, error) { return nil, ErrUnavailable }

func errorKind(uint64) (kind, number int) { return errorOther, 0 }

// Config is the host's openssl.cnf. Without cgo there is none.
type Config struct{ File string }

// HostConfig returns an empty configuration.
func HostConfig() (*Config, *ConfigFault) { return new(Config), nil }

// Close does nothing.
func (c *Config) Close() {}

// Commands returns ErrUnavailable.
func (c *Config) Commands() ([]HostCommand, error) { return nil, ErrUnavailable }

// Dropped returns ErrUnavailable.
func (c *Config) Dropped() ([]string, error) { return nil, ErrUnavailable }

// ConfigFile returns the file that libcrypto reads its configuration from by default.
func ConfigFile() string { return "" }

// Context is an SSL_CTX. Without cgo there is none.
type Context struct{}

// Credential is a certificate chain with its key. Without cgo there is none.
type Credential struct{}

// Conn is one connection. Without cgo there is none: no constructor returns one, so its methods are
// never called.
type Conn struct{}

// ReadSide and WriteSide belong to a Conn.
type (
	ReadSide  struct{}
	WriteSide struct{}
)

func (s *ReadSide) Open(o *Opened, _, _ []byte)                         { o.Status = Fatal }
func (s *ReadSide) Update() bool                                        { return false }
func (s *ReadSide) Free()                                               {}
func (s *ReadSide) Skip(uint64) bool                                    { return false }
func (s *WriteSide) Seal(step *Step, _ uint8, _, _ []byte, _, _, _ int) { step.Status = Fatal }
func (s *WriteSide) Update() bool                                       { return false }
func (s *WriteSide) KernelKey(*KernelKey) bool                          { return false }
func (s *WriteSide) KernelSeals()                                       {}
func (s *WriteSide) Free(bool, []byte) Step                             { return Step{Status: Fatal} }
func (s *WriteSide) Skip(uint64) bool                                   { return false }

// NewContext returns ErrUnavailable.
func NewContext(*ContextConfig) (*Context, error) { return nil, ErrUnavailable }

// NewCredential returns ErrUnavailable.
func NewCredential(bool, [][]byte, []byte, []tls.SignatureScheme, []byte, []byte) (*Credential, error) {
	return nil, ErrUnavailable
}

// The methods exist so that callers compile.

func (c *Context) Close()                            {}
func (c *Context) HasCipher(uint16) bool             { return false }
func (c *Context) SecurityLevel() int                { return 0 }
func (c *Context) CheckCredential(*Credential) error { return ErrUnavailable }
func (c *Context) NoTickets() bool                   { return false }

func (c *Context) SetTicketKeys([]TicketKey) bool { return false }
func (c *Context) Start(bool, bool, string, []byte, []byte, []byte) (*Conn, Step, error) {
	return nil, Step{}, ErrUnavailable
}
func (c *Context) OfSecrets(uint16, []byte, []byte) (*Conn, error) { return nil, ErrUnavailable }
func (c *Credential) AsksGo() bool                                 { return false }
func (c *Credential) SetIdentity([32]byte)                         {}
func (c *Credential) MayBlock() bool                               { return false }
func (c *Conn) Handshake([]byte, []byte, *Facts) Step              { return Step{Status: Fatal} }
func (c *Conn) Read([]byte, []byte) Step                           { return Step{Status: Fatal} }
func (c *Conn) Write([]byte, []byte, int, int) Step                { return Step{Status: Fatal} }
func (c *Conn) CloseNotify([]byte) Step                            { return Step{Status: Fatal} }
func (c *Conn) KeyUpdate(bool) Step                                { return Step{Status: Fatal} }
func (c *Conn) Free(bool, []byte) Step                             { return Step{Status: Fatal} }
func (c *Conn) Miss(bool, uint8)                                   {}
func (c *Conn) Sides() (*ReadSide, *WriteSide)                     { return nil, nil }
func (c *Conn) Export(string, []byte, bool, int) ([]byte, error)   { return nil, ErrUnavailable }
func (c *Conn) UseCredential(*Credential) error                    { return ErrUnavailable }
func (c *Conn) Message() []byte                                    { return nil }
func (c *Conn) Spill() []byte                                      { return nil }
func (c *Conn) Useless() bool                                      { return false }
func (c *Conn) KeyLog() []byte                                     { return nil }
func (c *Conn) Trace() []Message                                   { return nil }
func (c *Conn) Lookup() []byte                                     { return nil }
func (c *Conn) OfferSession([]byte)                                {}
func (c *Conn) Sessions() []Session                                { return nil }
func (c *Conn) SingleUse() bool                                    { return false }
func (c *Conn) Resumed() bool                                      { return false }
func (c *Conn) ExtendedMasterSecret() bool                         { return false }
func (c *Conn) Paused() bool                                       { return false }
func (c *Conn) Deferred() bool                                     { return false }
func (c *Conn) SetVerdict(Verdict)                                 {}
func (c *Conn) SetSocket(int)                                      {}
func (c *Conn) SetResume(bool)                                     {}
func (c *Conn) SignRequest() *SignRequest                          { return nil }
func (c *Conn) SetSignature([]byte)                                {}
func (c *Conn) ServerName() string                                 { return "" }
func (c *Conn) Refuse(Verdict, uint8)                              {}
func (c *Conn) RefuseRequest(uint8)                                {}
func (c *Conn) LongHello() int                                     { return 0 }
func (c *Conn) LeftOut() bool                                      { return false }
func (c *Conn) RefuseFlight(uint8, []byte) Step                    { return Step{Status: Fatal} }
func (c *Conn) RefuseHello(uint8)                                  {}
func (c *Conn) AlertIn() (level, description uint8, ok bool)       { return 0, 0, false }
func (c *Conn) AlertOut() (level, description uint8, ok bool)      { return 0, 0, false }
func (c *Conn) Version() uint16                                    { return 0 }
func (c *Conn) Calls() uint64                                      { return 0 }
func (c *Conn) Negotiated() bool                                   { return false }
func (c *Conn) Errors() []uint64                                   { return nil }
func (c *Conn) Hellos() Hellos                                     { return Hellos{} }
func (c *Conn) Facts() Facts                                       { return Facts{} }
