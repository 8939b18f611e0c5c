package terminator_test

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestFile: a mistake in a file is refused, and the error names its line or its site.
func TestFile(t *testing.T) {
	const head = "listen = [\":443\"]\n"
	const site = "[[site]]\ncert = \"c\"\nkey = \"k\"\n"
	for _, c := range []struct {
		name, text string
		want       string // the beginning of the error; "" if the file is good
	}{
		{"good", head + site + "root = \"/srv\"\n", ""},
		{"everything", `listen = [":443", "unix:/run/s"]
admin = "127.0.0.1:9000"
engine = "ossl"
policy = "bsi"
http1 = true
ticket-keys = ["a", "b"]
crl = ["a", "b"]
crl-soft-fail = true
sessions = 100
accept-proxy = ["10.0.0.0/8", "::1", "unix"]
access-log = true
landlock-read = ["/srv", "/etc/letsencrypt"]
[limits]
connections = 1
per-address = 2
handshakes = 7
rate = 3.5
address-rate = 4
header-bytes = 8192
streams = 5
backend-conns = 6
address-requests = 3
file-cache-bytes = 0
header-timeout = "1s"
idle-timeout = "2m"
backend-timeout = "3s"
drain-timeout = "1h"
[[site]]
names = ["a.test", "*.a.test"]
cert = "c"
key = "pkcs11:object=x"
root = "/srv"
list = true
client-ca = ["ca"]
client-optional = true
[[site.pair]]
cert = "d"
key = "e"
[[site]]
names = ["*"]
cert = "c"
key = "k"
to = "https://h:1"
to-ca = "x"
to-crl = ["l"]
to-crl-soft-fail = true
to-name = "n"
to-cert = "c"
to-key = "k"
client-ca = ["ca"]
client-cert-header = true
`, ""},
		{"Redis", head + `redis = "rediss://h:1/2"
redis-secret = "s"
redis-user = "u"
redis-password-file = "p"
redis-ca = "a"
redis-name = "n"
redis-cert = "c"
redis-key = "k"
` + site + "root = \"/srv\"\n", ""},
		{"several backends", head + site + `to = ["http://a", "http://b:1"]
balance = "address"
check = "/health"
check-interval = "1s"
`, ""},
		{"no backend", head + site + "to = []\n", " site.to: a text is needed, or a list of texts"},
		{"number for a backend", head + site + "to = [1]\n", " site.to: a text is needed, or a list of texts"},
		{"interval without a unit", head + site + "to = \"h:1\"\ncheck = \"connect\"\ncheck-interval = 5\n",
			` site.check-interval: 5 has no unit: write a text such as "5s"`},
		{"key in upper case", head + "Engine = \"ossl\"\n" + site, ` unknown key "Engine": keys are in lower case`},
		{"key of a site in upper case", head + site + "Root = \"/srv\"\n", ` unknown key "Root": keys are in lower case`},
		{"unknown key", head + "colour = 1\n" + site, `2: unknown key "colour"`},
		{"unknown key of a site", head + site + "rot = \"/srv\"\n", `5: unknown key "site.rot"`},
		{"unknown limit", head + "[limits]\nsize = 1\n" + site, `3: unknown key "limits.size"`},
		{"not TOML", head + "engine = = 1\n", "2: "},
		{"text for a number", head + "sessions = \"many\"\n", "2: sessions: a TOML string, where a whole number is needed"},
		{"text for a list", "listen = \"a:1\"\n", `1: listen: a TOML string, where a list of texts, such as ["a", "b"] is needed`},
		{"number in a list", "listen = [1]\n", "1: listen: a TOML integer, where a text is needed"},
		{"number for a text", head + "policy = 1\n", "2: policy: a TOML integer, where a text is needed"},
		{"text for a switch", head + "[[site]]\nlist = \"yes\"\n", "3: site.list: a TOML string, where true or false is needed"},
		{"number for a table", head + "limits = 1\n", "2: limits: a TOML integer, where a table is needed"},
		{"fraction for a time", head + "[limits]\nidle-timeout = 1.5\n", ` limits.idle-timeout: write a text such as "5s"`},
		{"wrong time", head + "[limits]\nidle-timeout = \"soon\"\n", "3: "},
		{"time without a unit", head + "[limits]\nidle-timeout = 5\n" + site,
			` limits.idle-timeout: 5 has no unit: write a text such as "5s"`},
		{"key twice", head + head, "2: "},
		{"no end of a text", head + "admin = \"x\n", "2: "},
		{"empty", "", " no address to listen on"},
		{"no site", head, " no site"},
		{"no certificate", head + "[[site]]\nroot = \"/srv\"\n", " no certificate"},
		{"no key", head + "[[site]]\ncert = \"c\"\nroot = \"/srv\"\n", " a certificate and its key go together"},
		{"folder and backend", head + site + "root = \"/srv\"\nto = \"h:1\"\n", " a site has either"},
		{"neither", head + site, " neither a folder (root) nor a backend (to)"},
		{"no names", head + site + "root = \"/srv\"\n" + site + "root = \"/srv\"\n", " site 1 (): no names"},
		{"same name", head + site + "root = \"/\"\nnames = [\"a\"]\n" + site + "root = \"/\"\nnames = [\"A\"]\n",
			` site 2 (a): the name "a" belongs to another site`},
		{"name twice", head + site + "root = \"/\"\nnames = [\"a\", \"A\"]\n", ` the name "A" is given twice`},
		{"bad name", head + site + "root = \"/\"\nnames = [\"a.*.b\"]\n", ` "a.*.b" is not a DNS name`},
		{"address as name", head + site + "root = \"/\"\nnames = [\"10.0.0.1\"]\n", ` "10.0.0.1" is an address`},
		{"name not in ASCII", head + site + "root = \"/\"\nnames = [\"*.é.test\"]\n", ` "*.é.test" is not in ASCII`},
		{"engine go without a policy", head + "engine = \"go\"\npolicy = \"none\"\n" + site + "root = \"/srv\"\n", ""},
		{"mixed", head + site + "names = [\"a\"]\nroot = \"/\"\n" + site + "names = [\"b\"]\nto = \"h:1\"\n",
			" site 2 (b): sites of HTTP and of TCP can't be mixed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := terminator.ParseFile([]byte(c.text))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// TestCheck: settings that contradict each other, or that the engine doesn't have, are refused by
// name, by a start too.
func TestCheck(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for _, c := range []struct {
		want   string
		change func(*terminator.Config)
	}{
		{"policy: the engine go", func(c *terminator.Config) { c.Engine, c.Policy = "go", "bsi" }},
		{"kernel-tls: the engine go", func(c *terminator.Config) { c.Engine, c.KernelTLS = "go", true }},
		{"fips: the engine go", func(c *terminator.Config) { c.Engine, c.FIPS = "go", true }},
		{"ticket-key: the engine go", func(c *terminator.Config) { c.Engine, c.TicketKeys = "go", []string{"k"} }},
		{"sessions: the engine go", func(c *terminator.Config) { c.Engine, c.Sessions = "go", 1 }},
		{"redis: the engine go", func(c *terminator.Config) { c.Engine, c.Redis = "go", "h:1" }},
		{`engine "nss"`, func(c *terminator.Config) { c.Engine = "nss" }},
		{"kernel-tls and fips", func(c *terminator.Config) { c.KernelTLS, c.FIPS = true, true }},
		{"sessions is -1", func(c *terminator.Config) { c.Sessions = -1 }},
		{"redis and redis-secret", func(c *terminator.Config) { c.Redis = "h:1" }},
		{"redis keeps", func(c *terminator.Config) { c.Redis, c.RedisSecret, c.Sessions = "h:1", "f", 1 }},
		{"listen: ", func(c *terminator.Config) { c.Listen = []string{"443"} }},
		{"listen: ", func(c *terminator.Config) { c.Listen = []string{"unix:"} }},
		{"admin: ", func(c *terminator.Config) { c.Admin = "x" }},
		{"accept-proxy: ", func(c *terminator.Config) { c.AcceptProxy = []string{"host"} }},
		{"accept-proxy: write", func(c *terminator.Config) { c.AcceptProxy = []string{"::ffff:10.0.0.0/104"} }},
		{"accept-proxy: write", func(c *terminator.Config) { c.AcceptProxy = []string{"::ffff:10.0.0.1"} }},
		{"client-optional needs", func(c *terminator.Config) { c.Sites[0].ClientOptional = true }},
		{"crl needs client-ca", func(c *terminator.Config) { c.CRLs = []string{"f"} }},
		{"crl-soft-fail needs crl", func(c *terminator.Config) { c.CRLSoftFail, c.Sites[0].ClientCA = true, []string{"ca"} }},
		{"crl: the engine go", func(c *terminator.Config) {
			c.Engine, c.CRLs, c.Sites[0].ClientCA = "go", []string{"f"}, []string{"ca"}
		}},
		{"to-crl: the engine go", func(c *terminator.Config) {
			c.Engine, c.Sites[0] = "go", tcpSite("tls://h:1")
			c.Sites[0].Backend.CRLs = []string{"f"}
		}},
		{"to-crl is for backends with TLS", func(c *terminator.Config) {
			c.Sites[0] = tcpSite("h:1")
			c.Sites[0].Backend.CRLs = []string{"f"}
		}},
		{"to-crl-soft-fail needs to-crl", func(c *terminator.Config) {
			c.Sites[0] = tcpSite("h:1")
			c.Sites[0].Backend.CRLSoftFail = true
		}},
		{"client-cert-header needs", func(c *terminator.Config) {
			c.Sites[0] = tcpSite("http://h")
			c.Sites[0].Backend.ClientCert = true
		}},
		{"client-cert-header is for", func(c *terminator.Config) {
			c.Sites[0] = tcpSite("h:1")
			c.Sites[0].Backend.ClientCert, c.Sites[0].ClientCA = true, []string{"ca"}
		}},
		{`policy: no policy "nonsense"`, func(c *terminator.Config) { c.Policy = "nonsense" }},
		{`landlock "yes"`, func(c *terminator.Config) { c.Landlock = "yes" }},
		{"landlock-read: landlock is off", func(c *terminator.Config) { c.LandlockRead = []string{"/srv"} }},
		{"landlock can't be on: keys of scheme pkcs11 need an OpenSSL provider", func(c *terminator.Config) {
			c.Landlock, c.Sites[0].Pairs[0].Key = "on", "pkcs11:object=tls;pin-value=1234"
		}},
		{"list is for folders", func(c *terminator.Config) { c.Sites[0] = tcpSite("h:1"); c.Sites[0].List = true }},
		{"http1 is for", func(c *terminator.Config) { c.Sites[0] = tcpSite("h:1"); c.HTTP1 = true }},
		{"to-ca is for backends with TLS", func(c *terminator.Config) { c.Sites[0] = tcpSite("h:1"); c.Sites[0].Backend.CA = "f" }},
		{"to-name is for backends with TLS", func(c *terminator.Config) {
			c.Sites[0] = tcpSite("http://h")
			c.Sites[0].Backend.Name = "n"
		}},
		{"to-cert and to-key", func(c *terminator.Config) { c.Sites[0] = tcpSite("tls://h:1"); c.Sites[0].Backend.Cert = "f" }},
		{`send-proxy "v3"`, func(c *terminator.Config) { c.Sites[0] = tcpSite("h:1"); c.Sites[0].Backend.SendProxy = "v3" }},
		{"send-proxy is for", func(c *terminator.Config) { c.Sites[0] = tcpSite("http://h"); c.Sites[0].Backend.SendProxy = "v1" }},
		{"the backends h:1 and http://h are of different kinds", func(c *terminator.Config) {
			c.Sites[0] = tcpSite("h:1", "http://h")
		}},
		{"the backends h:1 and tls://h:2 are of different kinds", func(c *terminator.Config) {
			c.Sites[0] = tcpSite("h:1", "tls://h:2")
		}},
		{"the backend h:2 is given twice", func(c *terminator.Config) { c.Sites[0] = tcpSite("h:1", "h:2", "h:2") }},
		{`"h" is not a backend`, func(c *terminator.Config) { c.Sites[0] = tcpSite("h:1", "h") }},
		{"balance is for several", func(c *terminator.Config) {
			c.Sites[0] = tcpSite("h:1")
			c.Sites[0].Backend.Balance = "least"
		}},
		{`balance "best"`, func(c *terminator.Config) {
			c.Sites[0] = tcpSite("h:1", "h:2")
			c.Sites[0].Backend.Balance = "best"
		}},
		{`check "/x": the only check`, func(c *terminator.Config) { c.Sites[0] = tcpSite("h:1"); c.Sites[0].Backend.Check = "/x" }},
		{`check "x" is not a path`, func(c *terminator.Config) {
			c.Sites[0] = tcpSite("http://h")
			c.Sites[0].Backend.Check = "x"
		}},
		{`check "/ x" is not a path`, func(c *terminator.Config) {
			c.Sites[0] = tcpSite("http://h")
			c.Sites[0].Backend.Check = "/ x"
		}},
		{"check-interval needs check", func(c *terminator.Config) {
			c.Sites[0] = tcpSite("http://h")
			c.Sites[0].Backend.CheckInterval = terminator.DefaultCheckInterval
		}},
		{"check-interval is 1ms", func(c *terminator.Config) {
			c.Sites[0] = tcpSite("http://h")
			c.Sites[0].Backend.Check, c.Sites[0].Backend.CheckInterval = "/", terminator.Time(1e6)
		}},
		{"connections is 0", func(c *terminator.Config) { c.Limits.Connections = 0 }},
		{"per-address is -1", func(c *terminator.Config) { c.Limits.PerAddress = -1 }},
		{"handshakes is for clients with TLS", func(c *terminator.Config) {
			c.Plain, c.Limits.Handshakes = true, 1
			c.Sites[0] = terminator.Site{Backend: terminator.Backend{To: "tls://h:1"}}
		}},
		{"handshakes is -1", func(c *terminator.Config) { c.Limits.Handshakes = -1 }},
		{"handshakes: the engine go", func(c *terminator.Config) { c.Engine, c.Limits.Handshakes = "go", 1 }},
		{"rate is -1", func(c *terminator.Config) { c.Limits.Rate = -1 }},
		{"address-rate is -1", func(c *terminator.Config) { c.Limits.RatePerSource = -1 }},
		{"header-bytes is 1", func(c *terminator.Config) { c.Limits.HeaderBytes = 1 }},
		{"streams is 0", func(c *terminator.Config) { c.Limits.Streams = 0 }},
		{"backend-conns is 0", func(c *terminator.Config) { c.Limits.BackendConns = 0 }},
		{"address-requests is -1", func(c *terminator.Config) { c.Limits.RequestsPerSource = -1 }},
		{"header-timeout is 0s", func(c *terminator.Config) { c.Limits.Header = 0 }},
		{"idle-timeout is 0s", func(c *terminator.Config) { c.Limits.Idle = 0 }},
		{"backend-timeout is 0s", func(c *terminator.Config) { c.Limits.Backend = 0 }},
		{"drain-timeout is -1ns", func(c *terminator.Config) { c.Limits.Drain = -1 }},
	} {
		t.Run(c.want, func(t *testing.T) {
			config := &terminator.Config{Listen: []string{":443"}, Engine: "ossl", Limits: terminator.DefaultLimits(),
				Sites: []terminator.Site{{Root: "/srv", Pairs: []terminator.Pair{{Cert: "c", Key: "k"}}}}}
			if err := config.Check(); err != nil {
				t.Fatal(err)
			}
			c.change(config)
			err := config.Check()
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Fatalf("error %v, want %q", err, c.want)
			}
			if _, started := terminator.Start(t.Context(), config, log, log); started == nil || started.Error() != err.Error() {
				t.Errorf("a start: error %v, want %v", started, err)
			}
		})
	}
}

func tcpSite(to string, others ...string) terminator.Site {
	site := tcp(to)
	site.Backend.Others = others
	site.Pairs = []terminator.Pair{{Cert: "c", Key: "k"}}
	return site
}

func TestTargets(t *testing.T) {
	for _, good := range []string{"h:1", "tcp://h:1", "tls://h:1", "unix:/s", "http://h", "http://h:1/", "https://[::1]",
		"https://[::1]:1", "http+unix:/s"} {
		if err := terminator.ParseTarget(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", "h", ":1", "h:", "unix:", "http+unix:", "ftp://h:1", "tls://h", "http://h:1/path",
		"http://u@h:1", "http://h:1?q", "http://"} {
		if err := terminator.ParseTarget(bad); err == nil || !strings.Contains(err.Error(), "is not a backend") {
			t.Errorf("%q: error %v", bad, err)
		}
	}
}

// FuzzProxyHeader: a header is read to its end and not further, and a bounded number of bytes; the
// address that it names can be written and read again.
func FuzzProxyHeader(f *testing.F) {
	for _, seed := range []string{"PROXY TCP4 192.0.2.7 192.0.2.1 4660 443\r\nrest", "PROXY UNKNOWN\r\n",
		"PROXY TCP6 ::1 ::1 1 2\r\n",
		"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x09\x7f\x00\x00\x01\x12\x34\x01\xbbrest",
		"\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00", ""} {
		f.Add([]byte(seed))
	}
	peer := netip.MustParseAddrPort("192.0.2.99:1")
	f.Fuzz(func(t *testing.T, in []byte) {
		r := bytes.NewReader(in)
		client, err := terminator.ParseProxyHeader(r, peer)
		read := len(in) - r.Len()
		if read > 16+4096 {
			t.Errorf("%d bytes were read", read)
		}
		if err != nil {
			if client != peer {
				t.Errorf("%v with the error %v", client, err)
			}
			return
		}
		if !client.IsValid() {
			t.Fatal("no address")
		}
		again, err := terminator.ParseProxyHeader(bytes.NewReader(in[:read]), peer)
		if err != nil || again != client {
			t.Errorf("without the bytes after it: %v, %v", again, err)
		}
	})
}
