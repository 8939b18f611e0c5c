package ossl

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/negotiate"
	"github.com/ossl-go/ossl/session"
)

// FIPS mode. All cryptography of a Context in FIPS mode, the verification of certificates included,
// is done by the FIPS module of the host's OpenSSL: internal/libssl/fips.c. docs/FIPS.md describes
// the claims that this supports.

// ErrNotFIPS is wrapped by the errors that are returned if FIPS mode is not available. Their text
// has the reason and a remedy.
var ErrNotFIPS = errors.New("FIPS mode is not available")

// envFIPS names the environment variable that puts all Contexts of the process into FIPS mode if
// its value is "require".
const envFIPS = "OSSL_FIPS"

// WithFIPS puts the Context into FIPS mode. The FIPS module of the host's OpenSSL then does all its
// cryptography, in an OSSL_LIB_CTX of its own, so that no other provider can be used by mistake.
// The rest of the process does not change. [NewContext] returns an error that wraps [ErrNotFIPS] if
// the module is missing, is not configured, or fails its self-test.
//
// A connection uses the versions, suites, groups and signature algorithms that crypto/tls uses in
// its FIPS mode, as far as the module has them: TLS 1.2 (only with the extended master secret) and
// 1.3, AES-GCM, AES-CBC with SHA-256, P-256, P-384, P-521 and the hybrids of those and of X25519
// with ML-KEM. A configuration that names another one is refused.
//
// OpenSSL verifies chains with the certificates of RootCAs and ClientCAs, or of [WithRoots] and
// [WithClientRoots]. A pool with constraints is refused. The module also holds the private keys, so
// a key that is only a [crypto.Signer] is refused.
//
// If the host is in FIPS mode, so are all Contexts. The kernel (fips_enabled), the default
// properties of the host's OpenSSL, or the environment variable OSSL_FIPS=require put it into FIPS
// mode.
//
// OpenSSL 1.1.1 has FIPS mode only in some distributions' builds, and for the process as a whole.
// It is used if it is on; OSSL_FIPS=require turns it on, but WithFIPS alone does not.
func WithFIPS() Option {
	return func(o *options) error {
		o.fips = true
		return nil
	}
}

// A FIPSModule describes the module that does the cryptography of a Context or connection in FIPS
// mode. All fields come from the module itself.
type FIPSModule struct {
	Name    string // such as "OpenSSL FIPS Provider"
	Version string // such as "3.5.7", the version that a validation certificate names
	Build   string // its build information
	Path    string // the file that its code was loaded from

	// Provider is OpenSSL's name for the module: "fips" for OpenSSL's own, and "symcryptprovider"
	// or "libwolfprov" for the others that are known. It is "" on OpenSSL 1.1.1.
	Provider string
	// Library is the file of the validated module if that is another library, which the provider
	// calls, such as libsymcrypt.so.103.8.0. Else it is "".
	Library string

	Running bool // it has passed its self-tests, and no later test has failed
}

func (m *FIPSModule) String() string {
	status := "running"
	if !m.Running {
		status = "failed"
	}
	path := m.Path
	if m.Library != "" {
		path += " with " + m.Library
	}
	return fmt.Sprintf("%s %s (%s), %s", m.Name, m.Version, path, status)
}

// FIPS returns the current description of the FIPS module, or nil if the Context is not in FIPS
// mode.
func (c *Context) FIPS() *FIPSModule {
	if !c.fips {
		return nil
	}
	info, ok := libssl.FIPSModuleInfo()
	if !ok {
		return nil
	}
	m := FIPSModule(info)
	return &m
}

// FIPS returns the evidence that the connection is in FIPS mode: the current description of the
// module that has its keys. It returns nil if the connection is not in FIPS mode. The negotiated
// parameters are in [Conn.ConnectionState].
func (c *Conn) FIPS() *FIPSModule {
	ctx := c.context()
	if ctx == nil { // the configuration was refused
		return nil
	}
	return ctx.FIPS()
}

// A fipsError is the reason why FIPS mode is not available, with a remedy.
type fipsError struct {
	why    string // the reason why FIPS mode is required, or ""
	err    error
	remedy string
}

func (e *fipsError) Error() string {
	s := "ossl: " + ErrNotFIPS.Error()
	if e.why != "" {
		s += " (" + e.why + ")"
	}
	s += ": " + e.err.Error()
	if e.remedy != "" {
		s += "; " + e.remedy
	}
	return s
}

func (e *fipsError) Unwrap() []error { return []error{ErrNotFIPS, e.err} }

// fipsRequired returns the reason, other than the program itself, why FIPS mode is required. It is
// "" if there is none. If that is unknown, the error is a *ConfigError.
func fipsRequired() (why string, err error) {
	switch value := os.Getenv(envFIPS); value {
	case "require":
		return "asked for by OSSL_FIPS=require", nil
	case "":
		return fipsByHost()
	default:
		return "", &ConfigError{Field: envFIPS, Reason: fmt.Sprintf("%q is not \"require\"", value)}
	}
}

// fipsByHost returns the reason why the host is in FIPS mode, or "" if it is not. The answer is
// remembered, once there is one: a kernel is booted in FIPS mode, and OpenSSL reads its
// configuration when it is loaded. Without a library there is no answer, and no Context can be made.
func fipsByHost() (why string, err error) {
	if why := hostFIPS.Load(); why != nil {
		return *why, nil
	}
	if _, err := libssl.Load(""); err != nil {
		return "", nil
	}
	if why, err = hostInFIPS(kernelFIPS); err != nil {
		return "", err
	}
	hostFIPS.Store(&why)
	return why, nil
}

// kernelFIPS is Linux's file with 1 if the kernel is in FIPS mode. Tests replace it.
var kernelFIPS = "/proc/sys/crypto/fips_enabled"

var hostFIPS atomic.Pointer[string] // nil until fipsByHost knows the answer

func hostInFIPS(kernel string) (why string, err error) {
	if why, err = fipsByKernel(kernel); why != "" || err != nil {
		return why, err
	}
	why, err = libssl.FIPSByHost()
	var fault *libssl.ConfigFault
	if errors.As(err, &fault) {
		err = configError(negotiate.RefuseFault(fault))
	}
	return why, err
}

// fipsByKernel is the part of hostInFIPS that needs no OpenSSL.
func fipsByKernel(kernel string) (why string, err error) {
	text, err := os.ReadFile(kernel)
	switch {
	case err == nil && strings.TrimSpace(string(text)) == "1":
		return "asked for by the kernel, " + kernel, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", &ConfigError{Field: negotiate.HostPolicyField, Reason: "it is unknown whether the kernel is in FIPS mode", Err: err}
	}
	return "", nil
}

// setUpFIPS reports whether a Context is in FIPS mode. If so, the module is ready, and the
// configuration has nothing that FIPS mode can't honour.
func (o *options) setUpFIPS(config *tls.Config, parent *Context) (fips bool, err error) {
	why, err := fipsRequired()
	if err != nil {
		return false, err
	}
	if why == "" && !o.fips && (parent == nil || !parent.fips) {
		if o.roots != nil {
			return false, &ConfigError{Field: "WithRoots", Reason: "is for FIPS mode only; otherwise use RootCAs"}
		}
		if o.clientRoots != nil {
			return false, &ConfigError{Field: "WithClientRoots", Reason: "is for FIPS mode only; otherwise use ClientCAs"}
		}
		return false, nil
	}
	if err := libssl.SetUpFIPS(os.Getenv(envFIPS) == "require"); err != nil {
		return false, &fipsError{why, err, remedy(err)}
	}
	if info, ok := libssl.FIPSModuleInfo(); !ok || !info.Running {
		return false, &fipsError{why, errors.New("the FIPS module has failed a test"), "restart the process"}
	}
	return true, checkFIPS(config, o, parent != nil)
}

// remedy returns advice on a failure, or "".
func remedy(err error) string {
	var e *libssl.FIPSError
	if !errors.As(err, &e) {
		return ""
	}
	lib, loadErr := libssl.Load("")
	if loadErr != nil {
		return ""
	}
	var fault *libssl.ConfigFault
	if errors.As(err, &fault) {
		return "until then no checksum is known for the module's self-test; \"openssl fipsinstall\" writes the module's configuration"
	}
	config := libssl.ConfigFile()
	beside := filepath.Join(filepath.Dir(config), "fipsmodule.cnf")
	others := libssl.FIPSUnlisted()
	switch provider := libssl.FIPSProvider(); {
	case provider != "" && provider != "fips":
		return fmt.Sprintf("%s activates %s and names no other FIPS module: install that one as its maker describes, "+
			"or set OpenSSL's own up, \"fips\"", config, provider)
	case len(others) > 0 && e.Failure != libssl.FIPSLeaks:
		return fmt.Sprintf("%s activates %s, which ossl does not know as a FIPS module; it knows the providers fips, "+
			"symcryptprovider and libwolfprov: set one of them up there", config, strings.Join(others, ", "))
	case e.Failure == libssl.FIPSNotInLibrary:
		return "use OpenSSL 3.0 or later, or a distribution's 1.1.1 with a FIPS module, and turn that on for the machine"
	case strings.Contains(e.Text, "cut short"):
		return "reinstall the FIPS module"
	case e.Failure == libssl.FIPSNotConfigured && !strings.Contains(e.Text, "could not load"):
		return fmt.Sprintf("no checksum is configured for the module's self-test: run "+
			"\"openssl fipsinstall -out %s -module MODULE\", "+
			"with the path of the fips.so that belongs to OpenSSL %s", beside, lib.Version())
	case e.Failure == libssl.FIPSModuleFailed && !strings.Contains(e.Text, "could not load"):
		return fmt.Sprintf("the module has refused itself: it was changed, or %s or %s holds another one's checksum; "+
			"reinstall it and run "+
			"\"openssl fipsinstall\" again; or memory was short at its self-test: restart the process", config, beside)
	case e.Failure == libssl.FIPSModuleFailed || e.Failure == libssl.FIPSNotConfigured:
		return fmt.Sprintf("install the FIPS module (fips.so) of OpenSSL %s, such as Debian's package openssl-provider-fips, or name "+
			"its folder by OPENSSL_MODULES, and run \"openssl fipsinstall -out %s -module MODULE\"", lib.Version(), beside)
	}
	return ""
}

// checkFIPS returns an error for a field or option that FIPS mode can't honour. Versions, suites,
// groups and signature algorithms are left to negotiate.FIPS. chosen means that GetConfigForClient
// returned the configuration, whose pools replace the options' pools.
func checkFIPS(c *tls.Config, o *options, chosen bool) error {
	switch {
	case c.RootCAs != nil && o.roots != nil && !chosen:
		return &ConfigError{Field: "RootCAs", Reason: "WithRoots sets the certificates to trust too"}
	case c.ClientCAs != nil && o.clientRoots != nil && !chosen:
		return &ConfigError{Field: "ClientCAs", Reason: "WithClientRoots sets the certificates to trust too"}
	case o.securityLevel < negotiate.DefaultSecurityLevel:
		return &ConfigError{Field: "WithSecurityLevel", Reason: fmt.Sprintf(
			"FIPS mode requires 112 bits of security, which is level %d", negotiate.DefaultSecurityLevel)}
	case o.kernelTLS:
		return &ConfigError{Field: "WithKernelTLS", Reason: "in FIPS mode: the kernel's cryptography is not the FIPS module's"}
	case o.chainCacheSet && o.chainCache > 0:
		return &ConfigError{Field: "WithVerifiedChainCache", Reason: "in FIPS mode OpenSSL verifies every chain; it can only be 0"}
	}
	return nil
}

// fipsRing returns a ring of ticket keys that come from the module's random generator.
func fipsRing() (*session.Ring, error) {
	ring, err := session.NewRotatingRingFrom(fipsRandom{}, 0, 0)
	if err != nil {
		return nil, &fipsError{err: err}
	}
	return ring, nil
}

// fipsRandom reads the module's generator of secrets.
type fipsRandom struct{}

func (fipsRandom) Read(b []byte) (int, error) {
	if err := libssl.FIPSRandom(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// errNoExtendedMasterSecret has crypto/tls's text.
var errNoExtendedMasterSecret = errors.New("tls: FIPS 140-3 requires the use of Extended Master Secret")

// checkMasterSecret refuses a TLS 1.2 handshake whose keys would be derived in a way that is not
// approved: FIPS 140-3 IG D.Q.
func (h *handshake) checkMasterSecret() *refusal {
	if !h.c.context().fips || !h.negotiated || h.version >= tls.VersionTLS13 || h.extendedMasterSecret {
		return nil
	}
	return &refusal{errNoExtendedMasterSecret, alertHandshakeFailure}
}
