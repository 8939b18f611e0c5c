package main

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ossl-go/ossl/audit/confgen"
	"github.com/ossl-go/ossl/cmd/ossl/internal/wholefile"
)

type configFlags struct {
	policy, at             string
	binary                 string
	serverVersion, openssl string
	aes                    string
	names                  []string
	certificate, key, root string
	backend                string
	from, output           string
	try, snippet, force    bool
	rounds                 int
	keys                   []string
}

func configCommand() *cobra.Command {
	f := &configFlags{}
	cmd := &cobra.Command{
		Use:   "config [flags] SERVER",
		Short: "Write the TLS configuration of a server, for its version and its OpenSSL",
		Long: `Config writes a complete configuration that follows a policy. SERVER is one of
  ` + strings.Join(confgen.Servers, ", ") + `.

It asks the installed program for its version, and finds the OpenSSL that it runs with. It starts the
program for nothing else. Each directive has its reason, its source and the version that it needs.
The head of the file names its place, and the parts of the policy that the server doesn't have.

With --from it reads your configuration, without changing it, and explains each difference. With
--try it starts the installed server twice on the loopback address, without root's rights: with your
configuration (or the server's defaults) and with the new one. It uses throw-away keys, audits both,
measures both in turns, and prints the difference, or the directive that stops a server.`,
		Example: `  ossl config nginx
  ossl config apache --policy mozilla-intermediate --name example.com
  ossl config haproxy --server-version 3.0.11 --openssl-version 3.5.7 --output haproxy.cfg
  ossl config nginx --snippet --name example.com --output /etc/nginx/sites-available/example.com
  ossl config nginx --from /etc/nginx/nginx.conf --try`,
		Args:              exactServer,
		ValidArgs:         confgen.Servers,
		ValidArgsFunction: cobra.FixedCompletions(confgen.Servers, cobra.ShellCompDirectiveNoFileComp),
		RunE:              func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.policy, "policy", "fast-and-safe",
		"follow this policy: a `name` of 'ossl policy list', or a file that\nends in .json")
	flags.StringVar(&f.at, "at", "", "leave out what the policy allows only until this `date` (default today)")
	flags.StringVar(&f.binary, "binary", "", "ask this `program` instead of the installed one")
	flags.StringVar(&f.serverVersion, "server-version", "", "write for this `version` of the server, and ask no program")
	flags.StringVar(&f.openssl, "openssl-version", "", "write for this `version` of OpenSSL")
	flags.StringVar(&f.aes, "aes", "auto",
		"whether the server's processor has instructions for AES: auto, yes, no.\nWithout them ChaCha20 comes first")
	flags.StringSliceVar(&f.names, "name", nil, "the site's `name`; may be repeated")
	flags.StringVar(&f.certificate, "certificate", "",
		"the `file` of the certificate chain. If it can be read, stapling is\nconfigured if the certificate names a responder")
	flags.StringVar(&f.key, "key", "", "the `file` of the private key; it isn't read")
	flags.StringVar(&f.root, "root", "", "the `folder` of the site's files")
	flags.StringVar(&f.backend, "backend", "", "the application behind HAProxy: `host:port`")
	flags.BoolVar(&f.snippet, "snippet", false, "write only the site of nginx: a file for Debian's sites-available")
	flags.StringVar(&f.output, "output", "", "write to this `file`, which must not exist")
	flags.BoolVar(&f.force, "force", false, "replace the file of --output if it exists")
	flags.StringVar(&f.from, "from", "", "explain how this configuration `file` differs")
	flags.BoolVar(&f.try, "try", false, "start the installed server with both configurations, and compare")
	flags.IntVar(&f.rounds, "rounds", 10, "the number of alternating rounds of --try")
	flags.StringSliceVar(&f.keys, "key-kind", nil,
		"the `kind` of throw-away key for --try: ECDSA, \"ECDSA P-384\", \"RSA 2048\" …;\nmay be repeated (default ECDSA)")
	return cmd
}

func exactServer(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError("name one server: " + strings.Join(confgen.Servers, ", "))
	}
	for _, s := range confgen.Servers {
		if s == args[0] {
			return nil
		}
	}
	return usageError(fmt.Sprintf("unknown server %q: known are %s", args[0], strings.Join(confgen.Servers, ", ")))
}

func (f *configFlags) run(cmd *cobra.Command, kind string) error {
	options, err := f.options(cmd, kind)
	if err != nil {
		return err
	}
	config, err := confgen.Generate(options)
	if err != nil {
		return err
	}
	if f.try {
		return f.tryBoth(cmd, options)
	}
	if f.from != "" {
		return f.explain(cmd, config)
	}
	if f.output == "" {
		_, err = fmt.Fprint(cmd.OutOrStdout(), config.Text())
		return err
	}
	if f.force {
		return wholefile.Replace(f.output, func(w io.Writer) error {
			_, err := io.WriteString(w, config.Text())
			return err
		})
	}
	err = wholefile.Create(wholefile.File{Name: f.output, Mode: 0o644, Text: []byte(config.Text())})
	if errors.Is(err, fs.ErrExist) {
		err = fmt.Errorf("%w; --force replaces it", err)
	}
	return err
}

func (f *configFlags) options(cmd *cobra.Command, kind string) (o confgen.Options, err error) {
	if f.rounds < 1 || f.rounds > 1000 {
		return o, usageError("--rounds is a number from 1 to 1000")
	}
	if f.try && f.serverVersion != "" {
		return o, usageError("--try starts the installed server: --server-version can't be given with it")
	}
	for _, explains := range []struct {
		name string
		set  bool
	}{{"--try", f.try}, {"--from", f.from != ""}} {
		if explains.set && (f.output != "" || f.snippet) {
			return o, usageError(explains.name + " writes no configuration: --output and --snippet can't be given with it")
		}
	}
	if f.force && f.output == "" {
		return o, usageError("--force goes with --output")
	}
	if f.snippet && kind != "nginx" {
		return o, usageError("--snippet is for nginx")
	}
	if f.from != "" && kind == "go" {
		return o, usageError("--from can't read Go programs")
	}
	if o.Policy, err = policyOrFile(cmd.Context(), f.policy); err != nil {
		return o, inputError("--policy", err)
	}
	if f.at != "" {
		if o.At, err = time.Parse(time.DateOnly, f.at); err != nil {
			return o, usageError(fmt.Sprintf("--at %q is not a date such as 2031-01-01", f.at))
		}
	}
	if o.Server, err = f.server(cmd, kind); err != nil {
		return o, err
	}
	switch f.aes {
	case "auto":
		o.NoAES = !hasAES()
	case "yes", "no":
		o.NoAES = f.aes == "no"
	default:
		return o, usageError("--aes is auto, yes or no")
	}
	o.Layout = confgen.Layout{Names: f.names, Root: f.root, Backend: f.backend, Snippet: f.snippet}
	for _, word := range append([]string{f.root, f.backend, f.certificate, f.key}, f.names...) {
		if strings.ContainsAny(word, "\"'\\{};#$` \t\r\n") {
			return o, usageError(fmt.Sprintf("%q has characters that would need quotes in a configuration", word))
		}
	}
	if (f.certificate == "") != (f.key == "") && kind != "haproxy" {
		return o, usageError("--certificate and --key go together")
	}
	if f.certificate != "" {
		o.Layout.Certificates = []confgen.Certificate{{Chain: f.certificate, Key: f.key}}
		o.OCSP = namesResponder(cmd.Context(), f.certificate)
	}
	return o, nil
}

func (f *configFlags) server(cmd *cobra.Command, kind string) (s confgen.Server, err error) {
	if f.serverVersion != "" {
		s.Kind = kind
		if s.Version, err = confgen.ParseVersion(f.serverVersion); err != nil {
			return s, usageError("--server-version: " + err.Error())
		}
		if f.openssl == "" && kind != "caddy" && kind != "go" {
			return s, usageError("--server-version needs --openssl-version too: groups and suites depend on it")
		}
	} else {
		program := f.binary
		if program == "" {
			if program, err = confgen.Find(kind); errors.Is(err, confgen.ErrNotInstalled) {
				return s, fmt.Errorf("%w here: give --server-version and --openssl-version, or --binary", err)
			} else if err != nil {
				return s, err
			}
		}
		s, err = confgen.Ask(cmd.Context(), kind, program)
		if err != nil && (s.Version == (confgen.Version{}) || f.openssl == "") {
			return s, err
		}
	}
	if f.openssl != "" {
		if s.OpenSSL, err = confgen.ParseVersion(f.openssl); err != nil {
			return s, usageError("--openssl-version: " + err.Error())
		}
	}
	return s, nil
}

// namesResponder reports whether the first certificate in a file names an OCSP responder. A file
// that can't be read names none.
func namesResponder(ctx context.Context, file string) bool {
	b, err := readInput(ctx, nil, file)
	if err != nil {
		return false
	}
	block, _ := pem.Decode(b)
	if block == nil {
		return false
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	return err == nil && len(cert.OCSPServer) > 0
}

// hasAES reports whether this machine's processor has instructions for AES, or can't be asked.
func hasAES() bool {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil || runtime.GOOS != "linux" {
		return true
	}
	for line := range strings.SplitSeq(string(b), "\n") {
		key, value, _ := strings.Cut(line, ":")
		if key = strings.TrimSpace(key); key == "flags" || key == "Features" {
			return strings.Contains(" "+value+" ", " aes ")
		}
	}
	return true
}
