package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// serverOperations are the parts of the help that "ossl serve" and "ossl proxy" share.
const serverOperations = `
With --config all settings but --log-format and --log-level come from a file in TOML, which may have
several sites, chosen by the name that a client asks for; docs/SERVE.md has its keys. They are named
as the options.

Signals:
  SIGHUP           read the configuration, certificates and keys again. New connections get the new
                   configuration; if it is wrong, the log says why, and the old one stays
  SIGUSR2          start the program again, with the same arguments, and hand the listening sockets
                   over; when the new one serves, connections move to it, except those of HTTP/2,
                   and the old process ends as at SIGTERM; it goes on if that fails
  SIGTERM, SIGINT  close the listeners, finish requests and connections under way for at most
                   --drain-timeout, then end; a second signal ends at once, and so does one
                   while the server starts
Certificates in files are also read when they change, once a second at most.

Exit status: 0 after a signal, if everything was finished; 1 if something failed or was cut off;
2 if the command line was wrong.`

func serveCommand() *cobra.Command {
	f := &serverFlags{config: terminator.Config{Limits: terminator.DefaultLimits()}}
	cmd := &cobra.Command{
		Use:   "serve [flags] [FOLDER]",
		Short: "Serve files over HTTPS",
		Long: `Serve serves the files in a folder over HTTP/1.1 and HTTP/2. Nothing outside of the folder is
served, by ".." or by a symbolic link; files and folders whose names begin with a dot aren't, except
.well-known. A folder is answered with its index.html. With --kernel-tls and --http1 files leave by
sendfile(2), if Linux has kernel TLS.
` + serverOperations,
		Example: `  ossl cert localhost 127.0.0.1
  ossl serve --cert localhost.pem --key localhost-key.pem --listen 127.0.0.1:8443 public
  ossl serve --acme example.org --acme-agree --listen :443 --redirect :80 public
  ossl serve --config /etc/ossl/sites.toml --log-format json`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case f.file == "" && len(args) != 1:
				return usageError("name one folder: ossl serve FOLDER, or --config")
			case f.file != "" && len(args) > 0:
				return usageError("the folders are in the file of --config")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				f.site.Root = args[0]
			}
			return f.run(cmd)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	f.register(cmd)
	flags.BoolVar(&f.site.List, "list", false, "list the files of folders that have no index.html")
	flags.StringVar(&f.site.DefaultType, "default-type", "",
		"the media `type` of files whose names tell none (default\napplication/octet-stream)")
	flags.BoolVar(&f.site.Precompressed, "precompressed", false,
		"send NAME.br, NAME.zst or NAME.gz in the place of NAME to clients\nthat accept it")
	flags.BoolVar(&f.config.HTTP1, "http1", false, "speak HTTP/1.1 alone")
	flags.IntVar(&f.config.Limits.FileCacheBytes, "file-cache-bytes", f.config.Limits.FileCacheBytes,
		"the `number` of bytes of small files that are kept in memory; 0\nfor none")
	return cmd
}

func proxyCommand() *cobra.Command {
	return proxyCommandOf(&serverFlags{config: terminator.Config{Limits: terminator.DefaultLimits()}})
}

func proxyCommandOf(f *serverFlags) *cobra.Command {
	backend := &f.site.Backend
	cmd := &cobra.Command{
		Use:   "proxy [flags]",
		Short: "Accept TLS, and pass connections or HTTP requests on to a backend",
		Long: `Proxy ends TLS, and passes what it gets on to a backend (--to):
  HOST:PORT           the bytes of each connection
  tls://HOST:PORT     the same, over TLS
  unix:PATH           the same, to a Unix socket
  http://HOST:PORT    HTTP requests, from HTTP/1.1 and HTTP/2
  https://HOST:PORT   the same, over TLS; the backend may speak HTTP/2
  http+unix:PATH      HTTP requests to a Unix socket

With --plain, as in stunnel's client mode, clients connect without TLS, and the
proxy speaks TLS to a backend of tls://HOST:PORT.

A connection whose client or backend ends one direction goes on in the other one. If one side is cut
off, so is the other one. Requests get X-Forwarded-For, -Host and -Proto; those that a client sends
are removed. A request whose host belongs to another site than its connection is refused with 421.
` + serverOperations,
		Example: `  ossl proxy --cert cert.pem --key key.pem --listen :443 --to http://127.0.0.1:8080
  ossl proxy --cert cert.pem --key key.pem --to http://10.0.0.1:8080 --to http://10.0.0.2:8080 --check /healthz
  ossl proxy --cert cert.pem --key pkcs11:object=tls --listen :5433 --to unix:/run/app --send-proxy v2
  ossl proxy --cert cert.pem --key key.pem --client-ca clients.pem --to tls://db:5433 --to-ca ca.pem
  ossl proxy --plain --listen unix:/run/db/.s.PGSQL.5432 --to tls://db:5433 --to-ca ca.pem`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.file == "" && len(f.to) == 0 {
				return usageError("name a backend: --to HOST:PORT, or --config")
			}
			return f.run(cmd)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringArrayVar(&f.to, "to", nil, "pass on to this `backend`; may be repeated, for several that do the\nsame")
	flags.BoolVar(&f.config.Plain, "plain", false,
		"accept connections without TLS, and speak TLS to the backend,\nwhich is tls://HOST:PORT")
	flags.BoolVar(&f.config.InsecureListen, "insecure-listen", false,
		"with --plain: also listen on addresses that other machines reach,\nwhose clients then use the backend as this server")
	flags.StringVar(&backend.Balance, "balance", "", "choose among several backends by `load`: least (the default), the one\n"+
		"with the least under way; or address, the same one for a client's\naddress")
	flags.StringVar(&backend.Check, "check", "", "check backends: of HTTP by requests for this `path`, which they must\n"+
		"answer with 2xx; of TCP by connecting, for the path connect")
	flags.TextVar(&backend.CheckInterval, "check-interval", terminator.DefaultCheckInterval,
		"the `time` between two checks, and for the answer")
	flags.StringVar(&backend.CA, "to-ca", "", "trust the certificates in this `file` for the backend (default the\nsystem's)")
	flags.StringArrayVar(&backend.CRLs, "to-crl", nil,
		"refuse backends by the revocation lists in this `file` or folder,\nas --crl does clients; may be repeated")
	flags.BoolVar(&backend.CRLSoftFail, "to-crl-soft-fail", false, "accept backends of which no list tells whether they are revoked")
	flags.StringVar(&backend.Name, "to-name", "", "the `name` in the backend's certificate (default the host of --to)")
	flags.StringVar(&backend.Cert, "to-cert", "", "the certificate `file` for backends that ask for one")
	flags.StringVar(&backend.Key, "to-key", "", "its key: a `file`, or a URI such as pkcs11:object=tls")
	flags.BoolVar(&backend.ClientCert, "client-cert-header", false,
		"send backends of HTTP the client's certificate in the header\nClient-Cert (RFC 9440); needs --client-ca")
	flags.BoolVar(&backend.UnderscoreHeaders, "underscore-headers", false,
		"leave backends of HTTP the headers whose names have underscores")
	flags.StringVar(&backend.SendProxy, "send-proxy", "", "begin each connection with a PROXY header of this `version`: v1 or v2")
	flags.StringArrayVar(&f.site.ALPN, "alpn", nil,
		"negotiate this `protocol`, such as postgresql, with clients of TCP;\n"+
			"refuse clients that offer only different ones; may be repeated")
	f.register(cmd)
	flags.BoolVar(&f.config.HTTP1, "http1", false, "speak HTTP/1.1 alone with clients of HTTP")
	return cmd
}

// serverFlags are the flags of servers.
type serverFlags struct {
	file        string
	config      terminator.Config
	site        terminator.Site
	certs, keys []string
	acme        []string // names
	to          []string
	passwords   []string // files
	logFormat   string
	logLevel    string
}

// alwaysFlags may be given together with --config.
var alwaysFlags = []string{"config", "log-format", "log-level"}

func (f *serverFlags) register(cmd *cobra.Command) {
	flags, c, l := cmd.Flags(), &f.config, &f.config.Limits
	flags.StringVar(&f.file, "config", "", "read all settings from this `file`, in TOML")
	flags.StringArrayVar(&c.Listen, "listen", []string{"127.0.0.1:8443"},
		"listen on this `address`: HOST:PORT, unix:PATH, or systemd for the\nsockets of a .socket unit; may be repeated")
	flags.StringArrayVar(&f.certs, "cert", nil,
		"the certificate, with its chain: a `file`, or a URI; may be\nrepeated, for keys of several kinds")
	flags.StringArrayVar(&f.keys, "key", nil, "its key: a `file`, or a URI such as pkcs11:object=tls")
	flags.StringArrayVar(&f.passwords, "key-password-file", nil,
		"the `file` of the password of an encrypted key, or of a token's\nPIN; for several keys repeated in their order")
	flags.StringArrayVar(&f.acme, "acme", nil,
		"instead of --cert: serve only this `name`, with a certificate that\nthe server gets and renews by ACME; may be repeated")
	flags.StringVar(&c.ACME.Directory, "acme-directory", "",
		"the `url` of the authority's directory (default\n"+terminator.DefaultACMEDirectory+")")
	flags.BoolVar(&c.ACME.Agree, "acme-agree", false, "agree to the authority's terms; most authorities require this")
	flags.StringVar(&c.ACME.Email, "acme-email", "", "the `address` at which the authority may reach you")
	flags.StringVar(&c.ACME.Storage, "acme-storage", "",
		"keep keys and certificates in this `folder`, which servers may\nshare (default ossl/acme in the user's state)")
	flags.StringVar(&c.ACME.Roots, "acme-roots", "",
		"trust the certificates in this `file` for the directory (default\nthe system's)")
	flags.StringVar(&c.ACME.EABID, "acme-eab-id", "",
		"bind the ACME account to the authority's existing account with this\n`identifier`")
	flags.StringVar(&c.ACME.EABKey, "acme-eab-key", "", "the `file` of the key that belongs to --acme-eab-id, in base64url")
	flags.StringArrayVar(&f.site.ClientCA, "client-ca", nil,
		"require certificates of clients, from the authorities in this\n`file`; may be repeated")
	flags.BoolVar(&f.site.ClientOptional, "client-optional", false, "accept clients without a certificate too")
	flags.StringArrayVar(&f.site.ClientAllow, "client-allow", nil,
		"admit only certificates of clients that fit a `rule`: dns:NAME,\nuri:URI, email:ADDRESS, cn:NAME, ou:NAME or "+
			"sha256:FINGERPRINT;\nmay be repeated")
	flags.StringArrayVar(&c.CRLs, "crl", nil,
		"refuse clients whose certificates are in the revocation lists in\nthis `file` or folder, or of which no list tells "+
			"whether they are\nrevoked; may be repeated")
	flags.BoolVar(&c.CRLSoftFail, "crl-soft-fail", false, "accept clients of which no list tells that")
	flags.StringVar(&c.Engine, "engine", "ossl", "the TLS in use: ossl, or go for crypto/tls")
	flags.StringVar(&c.Policy, "policy", terminator.DefaultPolicy,
		"follow this policy: a `name` of 'ossl policy list', or none for the\nlibrary's defaults")
	flags.BoolVar(&c.KernelTLS, "kernel-tls", false, "have Linux encrypt, if it can")
	flags.BoolVar(&c.FIPS, "fips", false, "use OpenSSL's FIPS module alone, or fail")
	flags.IntVar(&c.Sessions, "sessions", 0,
		"keep this `number` of sessions, for clients without tickets")
	flags.StringArrayVar(&c.TicketKeys, "ticket-key", nil,
		"seal tickets with the key in this `file`, of 48 or 80 bytes as\nnginx has it; further ones open tickets only; "+
			"or HAProxy's file,\nalone (default keys that change daily)")
	flags.StringVar(&c.Redis, "redis", "",
		"share sessions and ticket keys in the Redis or Valkey at this\n`address`: HOST:PORT, redis://HOST:PORT/DATABASE, "+
			"rediss:// for\nTLS, or a socket's path")
	flags.StringVar(&c.RedisSecret, "redis-secret", "", "the `file` of the 64 hexadecimal digits that seal them")
	flags.StringVar(&c.RedisUser, "redis-user", "", "the `name` of the user there (default the store's default user)")
	flags.StringVar(&c.RedisPassword, "redis-password-file", "", "the `file` of the password there")
	flags.StringVar(&c.RedisCA, "redis-ca", "", "trust the certificates in this `file` for the store (default the\nsystem's)")
	flags.StringVar(&c.RedisName, "redis-name", "", "the `name` in the store's certificate (default the host of --redis)")
	flags.StringVar(&c.RedisCert, "redis-cert", "", "the certificate `file` for a store that asks for one")
	flags.StringVar(&c.RedisKey, "redis-key", "", "its key: a `file`, or a URI such as pkcs11:object=tls")
	flags.StringArrayVar(&c.AcceptProxy, "accept-proxy", nil,
		"accept connections only from this `sender` of PROXY headers: an\naddress, a prefix such as 10.0.0.0/8, or unix; "+
			"may be repeated")
	flags.StringArrayVar(&c.Redirect, "redirect", nil,
		"redirect plain HTTP at this `address`, such as :80, to HTTPS; may\nbe repeated")
	flags.IntVar(&c.RedirectPort, "redirect-port", 0, "at this port `number` (default that of --listen)")
	flags.StringVar(&c.Admin, "admin", "", "answer /healthz and, on OpenSSL, /metrics at this `address`, over\nplain HTTP")
	flags.StringVar(&c.User, "user", "",
		"go on as this user, by `name`, when the server listens and has read\nits keys; it must be started by root")
	flags.StringVar(&c.Landlock, "landlock", terminator.DefaultLandlock,
		"have Linux deny the process all files and connections that it\ndoesn't need: on, off, or auto for on if the kernel can")
	flags.StringArrayVar(&c.LandlockRead, "landlock-read", nil,
		"leave the process this `folder` too, for reloads and restarts that\nname files in it; may be repeated")
	flags.StringArrayVar(&f.site.Headers, "header", nil,
		"set this `field`, 'Name: value', in the header of each response;\nmay be repeated")
	flags.StringArrayVar(&f.site.RemoveHeaders, "remove-header", nil,
		"remove the field with this `name` from each response; may be\nrepeated")
	flags.BoolVar(&c.LeaveConnections, "leave-connections", false,
		"at a restart, leave connections with the old process, which ends\nthem after --drain-timeout")
	flags.BoolVar(&c.AccessLog, "access-log", false, "log each request, or each connection of TCP")
	flags.StringVar(&f.logFormat, "log-format", "text", "log as text or json")
	flags.StringVar(&f.logLevel, "log-level", "info", "log from this `level`: debug, info, warn or error")
	flags.IntVar(&l.Connections, "connections", l.Connections, "the `number` of open connections; further clients wait")
	flags.IntVar(&l.PerAddress, "per-address", l.PerAddress,
		"the `number` of them from an IPv4 address, or an IPv6 /64; 0 for\nno bound")
	flags.IntVar(&l.Handshakes, "handshakes", l.Handshakes,
		"the `number` of clients' handshakes at a time; further ones wait\n(default one for each 400 KB of memory)")
	flags.Float64Var(&l.Rate, "rate", l.Rate,
		"the `number` of new connections a second; further clients wait\n(default no bound)")
	flags.Float64Var(&l.RatePerSource, "address-rate", l.RatePerSource,
		"the `number` of them from one address; further ones are closed;\n0 for no bound")
	flags.IntVar(&l.HeaderBytes, "header-bytes", l.HeaderBytes, "the `number` of bytes of a request's header")
	flags.IntVar(&l.BodyBytes, "body-bytes", l.BodyBytes, "the `number` of bytes of a request's body; 0 for no bound")
	flags.IntVar(&l.Streams, "streams", l.Streams, "the `number` of requests at a time on a connection")
	flags.IntVar(&l.BackendConns, "backend-conns", l.BackendConns, "the `number` of connections to a backend of HTTP")
	flags.IntVar(&l.RequestsPerSource, "address-requests", l.RequestsPerSource,
		"the `number` of requests of one address at a time at a backend of\nHTTP; further ones wait (default half of --backend-conns)")
	duration := func(t *terminator.Time, name, usage string) { flags.TextVar(t, name, *t, usage) }
	duration(&l.Header, "header-timeout", "the `time` for a handshake, for each header of a request, and for\na PROXY header")
	duration(&l.Idle, "idle-timeout", "the `time` without progress after which a connection ends, and\nfor 256 KB of a response")
	duration(&l.Backend, "backend-timeout", "the `time` for connecting to a backend, and for the header of\nits response")
	duration(&l.Drain, "drain-timeout", "the `time` for what is under way at the end")
	for name, values := range map[string][]string{
		"engine": {"ossl", "go"}, "landlock": {"auto", "on", "off"}, "log-format": {"text", "json"},
		"log-level": {"debug", "info", "warn", "error"},
	} {
		if err := cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err) // the flag isn't declared above
		}
	}
}

// readFirst is read for the process's first configuration.
func (f *serverFlags) readFirst(cmd *cobra.Command, inherited *terminator.Inherited) (*terminator.Config, error) {
	if f.file != "" {
		return inherited.ReadFile(f.file)
	}
	return f.read(cmd)
}

// read returns the configuration: of the file, which is read again each time, or of the flags.
func (f *serverFlags) read(cmd *cobra.Command) (*terminator.Config, error) {
	if f.file != "" {
		return terminator.ReadFile(f.file)
	}
	c, s := f.config, f.site
	if !cmd.Flags().Changed("policy") && (c.Engine == "go" || c.FIPS || c.Plain) || c.Policy == "none" {
		c.Policy = ""
	}
	if len(f.certs) != len(f.keys) {
		return nil, fmt.Errorf("--cert is given %d times, and --key %d times", len(f.certs), len(f.keys))
	}
	if len(f.passwords) > 0 && len(f.passwords) != len(f.keys) {
		return nil, fmt.Errorf("--key is given %d times, and --key-password-file %d times; an empty one stands for none",
			len(f.keys), len(f.passwords))
	}
	for i, cert := range f.certs {
		pair := terminator.Pair{Cert: cert, Key: f.keys[i]}
		if i < len(f.passwords) {
			pair.Password = f.passwords[i]
		}
		s.Pairs = append(s.Pairs, pair)
	}
	s.Names, s.ACME = slices.Clone(f.acme), len(f.acme) > 0
	if len(s.Pairs) == 0 && !s.ACME && !c.Plain {
		return nil, fmt.Errorf("--cert and --key are missing; 'ossl cert localhost' makes a pair for development")
	}
	if !cmd.Flags().Changed("check-interval") {
		s.Backend.CheckInterval = 0
	}
	s.Backend.SetTo(f.to)
	c.Sites = []terminator.Site{s}
	if err := c.Check(); err != nil {
		return nil, err
	}
	return &c, nil
}

// check refuses flags that contradict each other.
func (f *serverFlags) check(cmd *cobra.Command) error {
	if f.logFormat != "text" && f.logFormat != "json" {
		return usageError(fmt.Sprintf("--log-format %q is neither text nor json", f.logFormat))
	}
	if f.file == "" {
		return nil
	}
	var both []string
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		for _, name := range alwaysFlags {
			if flag.Name == name {
				return
			}
		}
		both = append(both, "--"+flag.Name)
	})
	if len(both) > 0 {
		return usageError(strings.Join(both, ", ") + " can't be given with --config: the file has all settings")
	}
	return nil
}
