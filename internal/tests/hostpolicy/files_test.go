//go:build (cgo || ossl_nocgo) && linux

package hostpolicy

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestHostPolicyFile checks files that are wrong or unusual.
func TestHostPolicyFile(t *testing.T) {
	refused := func(what ...string) func(t *testing.T) {
		return func(t *testing.T) {
			refuses(t, "HostPolicy", plainClient())
			info, err := ossl.Library()
			if err != nil || info.HostPolicy.Err == nil {
				t.Fatalf("%+v, %v", info, err)
			}
			for _, s := range what {
				if !strings.Contains(info.HostPolicy.Err.Error(), s) {
					t.Errorf("%v does not name %q", info.HostPolicy.Err, s)
				}
			}
			if _, err := ossl.Dial("tcp", "127.0.0.1:0", plainClient()); !errors.As(err, new(*ossl.ConfigError)) {
				t.Errorf("Dial: %v", err)
			}
			meet(contextClient(t, asItIs, without), contextServer(t, asItIs, without)).works(t)
		}
	}
	const rest = "MinProtocol = TLSv1.3\n"
	for _, test := range []struct {
		name, conf string
		check      func(t *testing.T)
	}{
		// Before 3.2 libssl ignores a value that it doesn't accept and everything after it, without
		// an error.
		{"unknown command", ossltest.PolicyMain + "Colour = blue\n" + rest, refused("Colour = blue")},
		{"certificate", ossltest.PolicyMain + "Certificate = server.crt\n" + rest, refused("Certificate = server.crt")},
		{"unknown version", ossltest.PolicyMain + "MinProtocol = TLSv1.9\n", refused("MinProtocol = TLSv1.9")},
		{"unknown group", ossltest.PolicyMain + "Groups = P-999\n" + rest, refused("Groups = P-999")},
		{"no such cipher", ossltest.PolicyMain + "CipherString = none-such\n" + rest, refused("CipherString = none-such")},
		{"two that are wrong", ossltest.PolicyMain + "Groups = P-999\nColour = blue\n", refused("Groups = P-999", "Colour = blue")},
		{"no main section", "openssl_conf = main\n", refused("openssl_conf")},
		{"no section of ssl_conf", "openssl_conf = main\n[main]\nssl_conf = tls\n", refused("ssl_conf")},
		{"no section of system_default", "openssl_conf = main\n[main]\nssl_conf = tls\n[tls]\nsystem_default = system\n",
			refused("system_default")},
		{"not a configuration file", "[main\n" + ossltest.PolicyMain + rest, refused("can't be read")},

		{"names with dots", ossltest.PolicyMain + "TLS.MinProtocol = TLSv1.3\nDTLS.MinProtocol = DTLSv1.2\n", policyMinimum},
		{"letters of any case", ossltest.PolicyMain + "minprotocol = TLSv1.3\n", policyMinimum},
		{"modules with dots", "openssl_conf = main\n[main]\nssl_conf.1 = other\nssl_conf.2 = tls\n[other]\nsystem_default = old\n" +
			"[old]\nMinProtocol = TLSv1.2\n[tls]\nsystem_default = system\n[system]\n" + rest, policyMinimum},
		{"others' sections", ossltest.PolicyMain + rest + "[unused]\nssl_conf = x\n", policyMinimum},
		// OpenSSL does not reach ssl_conf.
		{"a module before it that fails", "openssl_conf = main\n[main]\nno_such_module = x\nssl_conf = tls\n" +
			"[tls]\nsystem_default = system\n[system]\n" + rest, policyMinimum},
		{"ssl_conf with a section that is missing", "openssl_conf = main\n[main]\nssl_conf = tls\n" +
			"[tls]\nsystem_default = system\nserver = none\n[system]\n" + rest, policyMinimum},
		{"for another program", "other = main\n[main]\nssl_conf = tls\n[tls]\nsystem_default = system\n[system]\n" + rest,
			policyChangesNothing},
		{"for another name", "openssl_conf = main\n[main]\nssl_conf = tls\n[tls]\nserver = system\n[system]\n" + rest,
			policyChangesNothing},
		{"include that is missing", ossltest.PolicyMain + ".include = /no/such/file\n", refused("/no/such/file", "missing")},
		{"empty policy", ossltest.PolicyMain, policyChangesNothing},
	} {
		t.Run(test.name, func(t *testing.T) { ossltest.UnderPolicy(t, test.conf, test.check) })
	}
	t.Run("no file", func(t *testing.T) {
		ossltest.UnderPolicy(t, "", policyNone, "OPENSSL_CONF="+filepath.Join(t.TempDir(), "none"))
	})
}

// TestHostPolicyIncludes includes a file in all ways that config(5) documents and some that it
// doesn't. The file contains a part of the policy, and activates a provider: OpenSSL must read it
// too, else the policy is refused.
func TestHostPolicyIncludes(t *testing.T) {
	const (
		head = "openssl_conf = main\n[prov]\ndefault = active\nnull = null_sect\n[active]\nactivate = 1\n" +
			"[tls]\nsystem_default = system\n"
		content  = "MinProtocol = TLSv1.3\n[null_sect]\nactivate = 1\n"
		rest     = "\n[main]\nssl_conf = tls\nproviders = prov\n"
		nested   = ".include DIR/last\n[null_sect]\nactivate = 1\n"
		noPragma = "OPENSSL_CONF_INCLUDE, pragma"
	)
	for _, test := range []struct{ name, lines, file, content, env string }{
		{"a blank", ".include DIR/part.cnf", "part.cnf", content, ""},
		{"an equal sign", ".include=DIR/part.cnf # a comment", "part.cnf", content, ""},
		{"blanks", "\t.include  =\t DIR/part.cnf  \r", "part.cnf", content, ""},
		{"no blank", ".include_ DIR/part.cnf", "part.cnf", content, ""},
		{"quotes", ".include \"DIR/a \"'part.cnf'", "a part.cnf", content, ""},
		{"an escape", `.include DIR/a\ part.cnf`, "a part.cnf", content, ""},
		{"a continuation", ".inc\\\nlude = DIR/\\\npart.cnf", "part.cnf", content, ""},
		{"a variable of the section", "[vars]\ndir = DIR\n.include $dir/part.cnf", "part.cnf", "[system]\n" + content, ""},
		{"a variable of another section", "[vars]\ndir = DIR\n[system]\n.include ${vars::dir}/part.cnf", "part.cnf", content, ""},
		{"a variable of the environment", ".include $ENV::OSSL_TEST_FOLDER/part.cnf", "part.cnf", content, "OSSL_TEST_FOLDER=DIR"},
		{"a section whose name has blanks", "[a b]\ndir = DIR\n.include $dir/part.cnf", "part.cnf", "[system]\n" + content, ""},
		{"another section's variable", "[vars]\ndir = DIR\n[system]\nvars::.include $dir/part.cnf", "part.cnf", content, ""},
		{"no line break", ".include DIR/part.cnf", "part.cnf", "[null_sect]\nactivate = 1\n[system]\nMinProtocol = TLSv1.3", ""},
		{"a continuation at the end", ".include DIR/part.cnf", "part.cnf",
			"[null_sect]\nactivate = 1\n[system]\nMinProtocol = TLSv1.3\\\n", ""},
		{"a folder", ".include DIR/more", "more/part.cnf", content, ""},
		{"a folder, .CONF", ".include DIR/more", "more/part.CONF", content, ""},
		{"a folder's file that includes another", ".include DIR/more", "more/part.cnf", nested, ""},
		{"a file that includes another", ".include DIR/part.cnf", "part.cnf", nested, ""},
		{"a pragma's folder", ".pragma includedir:DIR\n.include part.cnf", "part.cnf", content, noPragma},
		{"a pragma's folder, other form", ".pragma = includedir : DIR # a comment\n.include part.cnf", "part.cnf", content, noPragma},
		{"a folder of the environment", ".pragma includedir:/none\n.include part.cnf", "part.cnf", content, "OPENSSL_CONF_INCLUDE=DIR"},
		{"an absolute path", ".pragma abspath:on\n.include DIR/part.cnf", "part.cnf", content, noPragma},
		{"dollars in names", ".pragma dollarid:on\n.include DIR/a$part.cnf", "a$part.cnf", content, noPragma},
	} {
		t.Run(test.name, func(t *testing.T) {
			if strings.Contains(noPragma, strings.TrimSuffix(test.env, "=DIR")) && test.env != "" && libraryBefore(t, "3", "0") {
				t.Skip("OpenSSL 1.1.1 has no pragmas, and no such variable")
			}
			dir, err := os.MkdirTemp("", "ossl") // its path has no character that config(5) treats specially
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			in := func(s string) string { return strings.ReplaceAll(s, "DIR", dir) }
			file := filepath.Join(dir, test.file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(in(test.content)), 0o600),
				os.WriteFile(filepath.Join(dir, "last"), []byte("MinProtocol = TLSv1.3\n"), 0o600)); err != nil {
				t.Fatal(err)
			}
			env := []string{"OSSL_TEST_NONE="}
			if strings.HasSuffix(test.env, "=DIR") {
				env = []string{in(test.env)}
			}
			ossltest.UnderPolicy(t, head+"[system]\n"+in(test.lines)+rest, policyMinimum, env...)
		})
	}
}

// TestHostPolicyDiagnostics: if the file asks for it, OpenSSL from 3.4 on fails with a policy that
// it can't execute.
func TestHostPolicyDiagnostics(t *testing.T) {
	ossltest.UnderPolicy(t, "config_diagnostics = 1\n"+ossltest.PolicyMain+"Colour = blue\n", func(t *testing.T) {
		for _, opts := range [][]ossl.Option{nil, {without}} {
			_, err := ossl.NewContext(plainClient(), opts...)
			var e *ossl.ConfigError
			if opts != nil && libraryBefore(t, "3", "4") {
				if err != nil {
					t.Error(err)
				}
			} else if !errors.As(err, &e) || e.Field != "HostPolicy" || !strings.Contains(err.Error(), os.Getenv("OPENSSL_CONF")) {
				t.Errorf("%d options: %v", len(opts), err)
			}
		}
	})
}

// TestHostPolicyReloaded looks for the FIPS module, which loads the configuration once more. Before
// 4.0, that frees the settings that SSL_CTX_new reads.
func TestHostPolicyReloaded(t *testing.T) {
	var slow strings.Builder
	for i := range 30 {
		fmt.Fprintf(&slow, "%d.CipherString = DEFAULT:@STRENGTH\n", i)
	}
	ossltest.UnderPolicy(t, ossltest.PolicyMain+slow.String()+"MinProtocol = TLSv1.3\n", func(t *testing.T) {
		hostPolicy(t)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 50 {
				libssl.TryFIPS()
			}
		}()
		for loading := true; loading; {
			mustContext(t, plainClient())
			select {
			case <-done:
				loading = false
			default:
			}
		}
		meet(contextClient(t, asItIs), goServer(tlstest.Only(tls.VersionTLS12))).fails(t, alertProtocolVersion)
	})
}

// TestHostPolicyExtendedMasterSecret: a policy does not take from TLS 1.2 the extension that
// crypto/tls always has.
func TestHostPolicyExtendedMasterSecret(t *testing.T) {
	ossltest.UnderPolicy(t, ossltest.PolicyMain+"Options = -ExtendedMasterSecret\n", func(t *testing.T) {
		if libraryBefore(t, "3", "0") { // it has no such option
			refuses(t, "HostPolicy", plainClient())
			return
		}
		policyWeakeningOptions(t)
	})
}

// fedora has the commands of Fedora's and Red Hat's openssl.cnf and their crypto policy DEFAULT, with
// names of groups that 1.1.1 knows too. Only their libcrypto knows rh-allow-sha1-signatures.
const (
	fedora = `openssl_conf = openssl_init
[openssl_init]
providers = provider_sect
ssl_conf = ssl_module
alg_section = evp_properties
[evp_properties]
[provider_sect]
default = default_sect
[default_sect]
activate = 1
.include DIR/openssl.d
[ssl_module]
system_default = crypto_policy
[crypto_policy]
.include = DIR/opensslcnf.config
`
	fedoraDefault = `CipherString = @SECLEVEL=2:kEECDH:kRSA:kEDH:kPSK:kDHEPSK:kECDHEPSK:kRSAPSK:-aDSS:-3DES:!DES:!RC4:!RC2:!IDEA:` +
		`-SEED:!eNULL:!aNULL:!MD5:-SHA384:-CAMELLIA:-ARIA:-AESCCM8
Ciphersuites = TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256:TLS_AES_128_CCM_SHA256
TLS.MinProtocol = TLSv1.2
TLS.MaxProtocol = TLSv1.3
DTLS.MinProtocol = DTLSv1.2
DTLS.MaxProtocol = DTLSv1.2
SignatureAlgorithms = ECDSA+SHA256:ECDSA+SHA384:ECDSA+SHA512:ed25519:ed448:rsa_pss_pss_sha256:rsa_pss_pss_sha384:` +
		`rsa_pss_pss_sha512:rsa_pss_rsae_sha256:rsa_pss_rsae_sha384:rsa_pss_rsae_sha512:RSA+SHA256:RSA+SHA384:RSA+SHA512:` +
		`ECDSA+SHA224:RSA+SHA224
Groups = X25519:P-256:X448:P-521:P-384

[openssl_init]
alg_section = evp_properties

[evp_properties]
rh-allow-sha1-signatures = no
`
)

// TestHostPolicyFedora is a whole configuration, with a policy in a file that is included.
func TestHostPolicyFedora(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "openssl.d"), 0o755),
		os.WriteFile(filepath.Join(dir, "opensslcnf.config"), []byte(fedoraDefault), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name  string
		check func(t *testing.T)
	}{
		{"DEFAULT", func(t *testing.T) {
			p := hostPolicy(t)
			if len(p.Commands) != 8 || len(p.Groups) != 4 || len(p.TLS13CipherSuites) != 4 || p.SecurityLevel != 2 {
				t.Errorf("%+v", p)
			}
			hello, _ := offer(t, contextClient(t, asItIs))
			if want := []tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP384, tls.CurveP521}; !slices.Equal(hello.SupportedCurves, want) {
				t.Errorf("offers %v", hello.SupportedCurves) // in crypto/tls's order
			}
			for _, version := range tlstest.Versions {
				meet(contextClient(t, tlstest.Only(version)), contextServer(t, tlstest.Only(version))).works(t)
				meet(goClient(tlstest.Only(version)), contextServer(t, asItIs)).works(t)
				meet(contextClient(t, asItIs), goServer(tlstest.Only(version))).works(t)
			}
			refuses(t, "WithSignatureAlgorithms", plainClient(), ossl.WithSignatureAlgorithms(tls.PKCS1WithSHA1))
			lines := strings.Split(p.String(), "\n")
			for _, line := range lines {
				if len(line) > 100 {
					t.Errorf("%d bytes: %s", len(line), line)
				}
			}
			if want := "groups          X25519 P-256 P-521 P-384"; !slices.Contains(lines, want) {
				t.Errorf("%s\nlacks %s", p, want)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) { ossltest.UnderPolicy(t, strings.ReplaceAll(fedora, "DIR", dir), test.check) })
	}
}

// TestInteropHostPolicy compares ossl with openssl's own programs under the same policy: a client
// offers nothing that s_client doesn't, and if the policy leaves a single choice, a server makes
// the same choice as s_server.
func TestInteropHostPolicy(t *testing.T) {
	path := tlstest.Tool(t, "openssl")
	info, err := ossl.Library()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "version")
	cmd.Env = tlstest.HostEnv()
	if out, err := cmd.Output(); err != nil || !strings.HasPrefix(string(out), "OpenSSL "+info.Version+" ") {
		t.Skipf("openssl is not version %s: %s%v", info.Version, out, err)
	}
	for _, test := range []struct{ name, commands string }{
		{"minimum", "MinProtocol = TLSv1.3\nCiphersuites = TLS_AES_256_GCM_SHA384\nGroups = P-384\n"},
		{"maximum", "MaxProtocol = TLSv1.2\nCipherString = ECDHE-ECDSA-AES256-GCM-SHA384\nGroups = P-256\n"},
		{"level", "MaxProtocol = TLSv1.3\nCipherString = DEFAULT:@SECLEVEL=3\nCiphersuites = TLS_AES_256_GCM_SHA384\nGroups = P-384\n"},
		{"Suite B", "MaxProtocol = TLSv1.2\nCipherString = SUITEB128ONLY\n"},
		{"signatures", "SignatureAlgorithms = ECDSA+SHA256:rsa_pss_rsae_sha512\nCiphersuites = TLS_CHACHA20_POLY1305_SHA256\n" +
			"Groups = P-521\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			ossltest.UnderPolicy(t, ossltest.PolicyMain+test.commands, func(t *testing.T) {
				f, conf := tlstest.WriteFiles(t), "OPENSSL_CONF="+os.Getenv("OPENSSL_CONF")
				ours, _ := offer(t, contextClient(t, asItIs))
				theirs := helloOf(t, func(addr string) {
					cmd := tlstest.Child(t, path, "s_client", "-connect", addr)
					cmd.Env = append(cmd.Env, conf)
					_ = cmd.Run() // it is not let in
				})
				for name, same := range map[string]bool{
					"suites":     contains(theirs.CipherSuites, ours.CipherSuites),
					"groups":     contains(theirs.SupportedCurves, ours.SupportedCurves),
					"signatures": contains(theirs.SignatureSchemes, ours.SignatureSchemes),
					"versions":   contains(theirs.SupportedVersions, ours.SupportedVersions),
				} {
					if !same {
						t.Errorf("%s: ossl %+v\nopenssl %+v", name, ours, theirs)
					}
				}

				server := tlstest.Child(t, path, "s_server", "-accept", "127.0.0.1:0", "-cert", f.ServerCert, "-key", f.ServerKey)
				server.Env = append(server.Env, conf)
				conn, err := tls.Dial("tcp", tlstest.ServeTool(t, server, "ACCEPT "), plainClient())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				want := conn.ConnectionState()
				got := meet(goClient(), contextServer(t, asItIs)).works(t).client
				if got.Version != want.Version || got.CipherSuite != want.CipherSuite || got.CurveID != want.CurveID {
					t.Errorf("ossl %s\nopenssl %s", tlstest.DescribeState(got), tlstest.DescribeState(want))
				}
			})
		})
	}
}

// helloOf returns the hello of a program that connects to a server.
func helloOf(t *testing.T, connect func(addr string)) (hello *tls.ClientHelloInfo) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_ = tls.Server(conn, plainServer(func(c *tls.Config) {
			c.GetConfigForClient = func(info *tls.ClientHelloInfo) (*tls.Config, error) {
				hello = info
				return nil, errors.New("enough")
			}
		})).Handshake()
	}()
	connect(l.Addr().String())
	l.Close()
	if <-done; hello == nil {
		t.Fatal("no hello")
	}
	return hello
}

func contains[E comparable](all, some []E) bool {
	return !slices.ContainsFunc(some, func(e E) bool { return !slices.Contains(all, e) })
}
