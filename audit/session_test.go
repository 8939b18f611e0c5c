package audit

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/audit/internal/client"
	"github.com/ossl-go/ossl/audit/internal/testcert"
	"github.com/ossl-go/ossl/policy"
	"github.com/ossl-go/ossl/session"
)

func sessionCertificate() tls.Certificate { return testcert.Root(testcert.Template{}).TLS() }

// sessionServer serves one HTTP response on each connection.
func sessionServer(t *testing.T, config *tls.Config) string {
	return serve(t, func(conn net.Conn, _ int) { answerOnce(tls.Server(conn, config)) })
}

func answerOnce(conn net.Conn) {
	defer conn.Close()
	if n, _ := conn.Read(make([]byte, 1000)); n > 0 {
		io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n")
	}
}

func sessionRun(addresses ...string) *run {
	r := &run{target: Target{Host: "localhost", Protocol: "https"}, facts: new(Facts), address: addresses[0],
		options: Options{ServerName: "localhost", Timeout: 5 * time.Second, MaxConnections: 100}}
	for _, a := range addresses {
		r.facts.Addresses = append(r.facts.Addresses, AddressFacts{Address: a, Outcome: Outcome{State: Tested}})
	}
	return r
}

func probeSessions(t testing.TB, r *run, probes ...func(context.Context, *run) error) *ResumptionFacts {
	t.Helper()
	for _, p := range append([]func(context.Context, *run) error{probeResumption}, probes...) {
		if err := p(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	return &r.facts.Resumption
}

var sessionPolicy = &policy.Policy{Resumption: policy.Resumption{
	TLS13: policy.Setting{Value: "yes"}, ID: policy.Setting{Value: "yes"}, Tickets: policy.Setting{Value: "yes"},
	Lifetime: policy.Limit{Value: 8 * 24 * 3600}, Rotation: policy.Limit{Value: 3600}, Early: policy.Setting{Value: "no"},
}}

// broken returns the rules of sessionRules that have findings.
func broken(r *run) string {
	var ids []string
	for _, rule := range sessionRules {
		findings, outcome := rule.check(&judgement{facts: r.facts, policy: sessionPolicy, at: time.Now()})
		if len(findings) > 0 {
			ids = append(ids, rule.ID)
		}
		if outcome.State == "" || outcome.State != Tested && (outcome.Reason == "" || len(findings) > 0) {
			ids = append(ids, fmt.Sprintf("%s: bad outcome %+v", rule.ID, outcome))
		}
	}
	return strings.Join(ids, " ")
}

func expectBroken(t testing.TB, r *run, want string) {
	t.Helper()
	if early := &r.facts.EarlyData; early.State == "" {
		early.Outcome, early.Replay.Outcome = Outcome{NotTested, "no probe"}, Outcome{NotTested, "no probe"}
	}
	if got := broken(r); got != want {
		t.Errorf("rules %q, want %q\n%+v", got, want, r.facts.Resumption)
	}
}

func TestResumption(t *testing.T) {
	certificate := sessionCertificate()
	zero := func(c *tls.Config) { c.SetSessionTicketKeys([][32]byte{{}}) }
	tests := []struct {
		name        string
		change      func(*tls.Config)
		hits        [3]int // of kinds
		weak        string
		broken      string
		connections int
	}{
		{"crypto/tls", func(*tls.Config) {}, [3]int{2, 2, 0}, "", "resume-tls12-id", 7},
		{"off", func(c *tls.Config) { c.SessionTicketsDisabled = true }, [3]int{}, "", "resume-none", 3},
		{"TLS 1.3 off", func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }, [3]int{0, 2, 0}, "", "resume-tls12-id", 5},
		{"TLS 1.2 off", func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 }, [3]int{2, 0, 0}, "", "", 5},
		{"zero key", zero, [3]int{2, 2, 0}, "all zero, AES-128-CTR as in crypto/tls", "resume-tls12-id ticket-key-weak", 7},
		{"zero key, TLS 1.3", func(c *tls.Config) { zero(c); c.MinVersion = tls.VersionTLS13 }, [3]int{2, 0, 0},
			"all zero, AES-128-CTR as in crypto/tls", "ticket-key-weak", 5},
		{"HelloRetryRequest", func(c *tls.Config) { c.CurvePreferences = []tls.CurveID{tls.CurveP256} }, [3]int{2, 2, 0}, "",
			"resume-tls12-id", 7},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			config := &tls.Config{Certificates: []tls.Certificate{certificate}}
			test.change(config)
			r := sessionRun(sessionServer(t, config))
			f := probeSessions(t, r)
			for i, k := range kinds {
				if facts := k.facts(f); facts.Hits != test.hits[i] || facts.Hits > 0 && facts.Tries != facts.Hits || facts.State == Failed {
					t.Errorf("%s: %+v", k.name, *facts)
				}
			}
			if f.WeakKey.Key != test.weak {
				t.Errorf("weak key %q", f.WeakKey.Key)
			}
			if f.Ticket13.Hits > 0 && (f.Lifetime13 != 7*24*3600 || f.Tickets13 != 1) {
				t.Errorf("lifetime %d, tickets %d", f.Lifetime13, f.Tickets13)
			}
			if r.cost.Connections != test.connections || r.cost.Retried != 0 {
				t.Errorf("cost %+v", r.cost)
			}
			expectBroken(t, r, test.broken)
		})
	}
}

func TestFleet(t *testing.T) {
	certificate := sessionCertificate()
	server := func(key byte) string {
		config := &tls.Config{Certificates: []tls.Certificate{certificate}, MaxVersion: tls.VersionTLS13}
		config.SetSessionTicketKeys([][32]byte{{key}})
		return sessionServer(t, config)
	}
	tests := []struct {
		name       string
		keys       []byte
		hits, from int
		broken     string
	}{
		{"shared", []byte{7, 7}, 4, 4, "resume-tls12-id"},
		{"unshared", []byte{7, 8}, 0, 4, "resume-tls12-id resume-fleet"},
		{"one of three", []byte{7, 7, 8}, 4, 12, "resume-tls12-id resume-fleet"},
		{"ring", []byte{7, 7, 8, 8, 8}, 6, 10, "resume-tls12-id resume-fleet"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var addresses []string
			for _, key := range test.keys {
				addresses = append(addresses, server(key))
			}
			r := sessionRun(addresses...)
			before := 7
			f := probeSessions(t, r)
			hits, tries := 0, 0
			for _, cell := range f.Fleet {
				if cell.State != Tested {
					t.Errorf("%+v", cell)
				}
				hits, tries = hits+cell.Hits, tries+cell.Tries
			}
			if hits != test.hits || tries != test.from {
				t.Errorf("%d of %d: %+v", hits, tries, f.Fleet)
			}
			if r.cost.Connections-before > maxFleet {
				t.Errorf("%d connections", r.cost.Connections)
			}
			expectBroken(t, r, test.broken)
		})
	}
}

func TestWatch(t *testing.T) {
	for _, rotated := range []bool{false, true} {
		t.Run(fmt.Sprintf("rotated=%v", rotated), func(t *testing.T) {
			config := &tls.Config{Certificates: []tls.Certificate{sessionCertificate()}}
			config.SetSessionTicketKeys([][32]byte{{1}})
			r := sessionRun(sessionServer(t, config))
			r.options.Watch, r.options.WatchEvery = 100*time.Millisecond, 30*time.Millisecond
			r.options.Progress = func(string) {
				if rotated {
					config.SetSessionTicketKeys([][32]byte{{2}})
				}
			}
			w := probeSessions(t, r, probeWatch).Watch
			if len(w.Samples) != 4 || w.Samples[0].KeyName != "" {
				t.Fatalf("%+v", w)
			}
			changes := 0
			if rotated {
				changes = 1
			}
			if last := w.Samples[3]; last.Accepted == nil || *last.Accepted == rotated || len(w.Changes) != changes {
				t.Errorf("%+v", w)
			}
			_, outcome := checkRotation(&judgement{facts: r.facts, policy: sessionPolicy})
			if rotated != (outcome.State == Tested) || !rotated && !strings.HasPrefix(outcome.Reason, "not rotated since start") {
				t.Errorf("outcome %+v", outcome)
			}
			long := *w
			long.Since = long.Since.Add(-2 * time.Hour)
			r.facts.Resumption.Watch = &long
			if findings, _ := checkRotation(&judgement{facts: r.facts, policy: sessionPolicy}); len(findings) != 1 {
				t.Errorf("no finding after two hours with one key")
			}
		})
	}
}

// TestOsslSessions has a server of this project, which resumes in all ways, and in TLS 1.3 once.
func TestOsslSessions(t *testing.T) {
	for _, cache := range []bool{false, true} {
		t.Run(fmt.Sprintf("cache=%v", cache), func(t *testing.T) {
			var options []ossl.Option
			want := [3]int{2, 2, 0}
			if cache {
				options = append(options, ossl.WithSessionCache(session.NewCache(1000)))
				want[2] = 2
			}
			tlsContext, err := ossl.NewContext(&tls.Config{Certificates: []tls.Certificate{sessionCertificate()}}, options...)
			if errors.Is(err, ossl.ErrUnavailable) {
				t.Skipf("no OpenSSL: %v", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			r := sessionRun(serve(t, func(conn net.Conn, _ int) { answerOnce(tlsContext.Server(conn)) }))
			f := probeSessions(t, r)
			var hits [3]int
			for i, k := range kinds {
				hits[i] = k.facts(f).Hits
			}
			if hits != want || f.WeakKey.Key != "" {
				t.Errorf("hits %v: %+v", hits, f)
			}
			r.options.Watch, r.options.WatchEvery = 50*time.Millisecond, 20*time.Millisecond
			if err := probeWatch(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			_, outcome := checkRotation(&judgement{facts: r.facts, policy: sessionPolicy})
			if w := f.Watch; cache && (len(w.Samples) != 1 || outcome.State != Failed) ||
				!cache && (len(w.Samples) != 3 || w.Samples[2].KeyName == "" || !*w.Samples[2].Accepted || outcome.State != NotTested) ||
				len(w.Changes) != 0 {
				t.Errorf("%+v, %+v", w, outcome)
			}
		})
	}
}

// TestWeakTicketKey seals tickets as the servers do.
func TestWeakTicketKey(t *testing.T) {
	secret := bytes.Repeat([]byte{0x5a}, 48)
	plain := append(append(bytes.Repeat([]byte{0x30}, 32), secret...), bytes.Repeat([]byte{16}, 16)...)
	seal := func(key, macKey []byte, mac func() hash.Hash, length bool) []byte {
		block, err := aes.NewCipher(key)
		if err != nil {
			t.Fatal(err)
		}
		ticket := bytes.Repeat([]byte{0xaa}, 32) // the name and the IV
		sealed := make([]byte, len(plain))
		cipher.NewCBCEncrypter(block, ticket[16:]).CryptBlocks(sealed, plain)
		if length {
			ticket = append(ticket, 0, byte(len(sealed)))
		}
		ticket = append(ticket, sealed...)
		h := hmac.New(mac, macKey)
		h.Write(ticket)
		return h.Sum(ticket)
	}
	zero, random := make([]byte, 32), bytes.Repeat([]byte{0x17, 0x99}, 16)
	tests := map[string]struct {
		ticket []byte
		want   string
	}{
		"OpenSSL":         {seal(zero, zero, sha256.New, false), "all zero, AES-256-CBC as in OpenSSL, nginx and HAProxy"},
		"OpenSSL, cipher": {seal(zero, random, sha256.New, false), "all zero, AES-256-CBC as in OpenSSL, nginx and HAProxy"},
		"nginx, 48 bytes": {seal([]byte("0123456789abcdef"),
			[]byte("0123456789abcdef"), sha256.New, false),
			"\"0123456789abcdef\", AES-128-CBC as in nginx, Apache and HAProxy"},
		"GnuTLS":              {seal(zero, zero[:16], sha1.New, true), "all zero, AES-256-CBC as in GnuTLS"},
		"another key":         {seal(random, random, sha256.New, false), ""},
		"another key, GnuTLS": {seal(random, random[:16], sha1.New, true), ""},
		"empty":               {nil, ""},
		"short":               {make([]byte, 65), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := weakTicketKey(test.ticket, secret); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestSpell(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0 seconds", time.Second: "1 second", 10 * time.Minute: "10 minutes",
		7 * 24 * time.Hour: "7 days", 90 * time.Minute: "90 minutes", 25 * time.Hour: "25 hours", 61 * time.Second: "61 seconds",
		1000*time.Hour + time.Minute: "1000 hours", 3 * time.Millisecond: "0 seconds"} {
		if got := spell(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

func FuzzTicketKey(f *testing.F) {
	f.Add(make([]byte, 200), make([]byte, 48))
	f.Fuzz(func(t *testing.T, ticket, secret []byte) {
		weakKey([]*client.Session{{Ticket: ticket, Secret: secret}})
	})
}

// startNginx starts nginx with directives for its server, and returns its address.
func startNginx(t testing.TB, directives string) string {
	program, err := exec.LookPath("nginx")
	if err != nil {
		if program = "/usr/sbin/nginx"; !fileExists(program) {
			t.Skip("nginx is not installed")
		}
	}
	dir := t.TempDir()
	certificate := testcert.Root(testcert.Template{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	files := map[string][]byte{
		"key.pem":  certificate.KeyPEM(),
		"cert.pem": certificate.PEM(),
		"zero80":   make([]byte, 80),
		"zero48":   make([]byte, 48),
		"nginx.conf": fmt.Appendf(nil, `daemon off; master_process off; pid nginx.pid; error_log stderr; events {}
http { access_log off; client_body_temp_path t1; proxy_temp_path t2;
fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;
server { listen %s ssl; server_name localhost;
ssl_protocols TLSv1.2 TLSv1.3; ssl_certificate cert.pem; ssl_certificate_key key.pem;
%s
location / { return 200 ok; } } }`, address, directives),
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, "-p", dir, "-c", filepath.Join(dir, "nginx.conf"))
	var output bytes.Buffer
	cmd.Stderr = &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	t.Cleanup(func() { cancel(); <-ended })
	for range 500 {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			return address
		}
		select {
		case <-ended:
			t.Skipf("nginx doesn't start: %s", output.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Fatal("nginx doesn't listen")
	return ""
}

func fileExists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// TestTicketsUnknown: a probe that failed doesn't report that a server gives no tickets.
func TestTicketsUnknown(t *testing.T) {
	r := sessionRun("127.0.0.1:1")
	r.options.MaxConnections = 0
	f := probeSessions(t, r)
	j := &judgement{facts: r.facts, policy: &policy.Policy{}, at: time.Now()}
	for _, check := range []func(*judgement) ([]Finding, Outcome){checkWeakTicketKey, checkSessionLifetime} {
		if findings, outcome := check(j); outcome.State != Failed || findings != nil {
			t.Errorf("%+v, %+v, %+v", findings, outcome, f)
		}
	}
}

func TestInteropNginxSessions(t *testing.T) {
	tests := []struct {
		name, directives string
		hits             [3]int
		weak             string
		broken           string
	}{
		{"cache and tickets", "ssl_session_cache shared:tls:1m;", [3]int{2, 2, 2}, "", ""},
		{"default", "", [3]int{2, 2, 0}, "", "resume-tls12-id"},
		{"Mozilla's modern", "ssl_session_tickets off;", [3]int{}, "", "resume-none"},
		{"80 zeros", "ssl_session_cache shared:tls:1m; ssl_session_ticket_key zero80;", [3]int{2, 2, 2},
			"all zero, AES-256-CBC as in OpenSSL, nginx and HAProxy", "ticket-key-weak"},
		{"48 zeros", "ssl_session_cache shared:tls:1m; ssl_session_ticket_key zero48;", [3]int{2, 2, 2},
			"all zero, AES-128-CBC as in nginx, Apache and HAProxy", "ticket-key-weak"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := sessionRun(startNginx(t, test.directives))
			f := probeSessions(t, r)
			var hits [3]int
			for i, k := range kinds {
				hits[i] = k.facts(f).Hits
			}
			if hits != test.hits || f.WeakKey.Key != test.weak {
				t.Errorf("hits %v, weak key %q: %+v", hits, f.WeakKey.Key, f)
			}
			expectBroken(t, r, test.broken)
		})
	}
}

func TestInteropNginxWatch(t *testing.T) {
	r := sessionRun(startNginx(t, ""))
	r.options.Watch, r.options.WatchEvery = 50*time.Millisecond, 20*time.Millisecond
	w := probeSessions(t, r, probeWatch).Watch
	names := slices.CompactFunc(slices.Clone(w.Samples), func(a, b WatchSample) bool { return a.KeyName == b.KeyName })
	if len(w.Samples) != 3 || len(names) != 1 || len(names[0].KeyName) != 32 || len(w.Changes) != 0 {
		t.Errorf("%+v", w)
	}
}

func TestInteropNginxEarlyData(t *testing.T) {
	tests := []struct {
		name, directives   string
		accepted           bool
		executed, tooEarly int
		broken             string
	}{
		{"off", "", false, 0, 0, "resume-tls12-id"},
		{"on", "ssl_early_data on;", true, 3, 0, "resume-tls12-id early-data-on early-data-replay"},
		// OpenSSL's protection makes TLS 1.3 tickets single-use, and nginx 1.22 then resumes none.
		{"anti-replay", "ssl_early_data on; " +
			"ssl_session_cache shared:tls:1m; ssl_conf_command Options AntiReplay;", false, 0, 0, "resume-tls13"},
		{"425", "ssl_early_data on; if ($ssl_early_data) { return 425; }", true, 0, 3, "resume-tls12-id early-data-on"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			address := startNginx(t, test.directives)
			r := sessionRun(address)
			r.options.Replay = true
			probeSessions(t, r, probeEarly)
			f := r.facts.EarlyData
			sent := 0
			if test.accepted {
				sent = 3
			}
			if f.Accepted != test.accepted || f.Replay.Sent != sent ||
				f.Replay.Executed != test.executed || f.Replay.TooEarly != test.tooEarly {
				t.Errorf("%+v", f)
			}
			expectBroken(t, r, test.broken)
			r = sessionRun(address)
			probeSessions(t, r, probeEarly)
			if f := r.facts.EarlyData; f.Accepted != test.accepted || f.State != Tested || f.Replay.State != NotTested {
				t.Errorf("without replay: %+v", f)
			}
		})
	}
}
