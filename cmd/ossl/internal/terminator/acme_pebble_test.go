package terminator_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// A pebble is Let's Encrypt's authority for tests. It finds all names on this machine, and reaches the servers under
// test through forwarders, since it must know ports before the servers do.
type pebble struct {
	t          *testing.T
	directory  string
	management string
	client     *http.Client
	ca         string // the file of the authority of the directory's certificate
	stop       func()
	log        *logs

	tls, plain forwarder
}

// A forwarder passes connections on to its servers in turn. It waits until it has some.
type forwarder struct {
	listener net.Listener
	known    chan struct{}
	servers  []string
	network  string
	next     atomic.Uint64
}

func (f *forwarder) start(t *testing.T) int {
	f.listener, f.known = listen(t), make(chan struct{})
	go handle(f.listener, f.pass)
	return f.listener.Addr().(*net.TCPAddr).Port
}

func (f *forwarder) pass(conn net.Conn) {
	<-f.known
	if len(f.servers) == 0 {
		return
	}
	to, err := net.Dial(f.network, f.servers[f.next.Add(1)%uint64(len(f.servers))])
	if err != nil {
		return
	}
	defer to.Close()
	go func() {
		_, _ = io.Copy(to, conn)
		_ = to.(interface{ CloseWrite() error }).CloseWrite()
	}()
	_, _ = io.Copy(conn, to)
}

// to makes the forwarder pass connections on to servers, and close them if there are none.
func (f *forwarder) to(network string, servers ...string) {
	f.network, f.servers = network, servers
	close(f.known)
}

// startPebble starts the program, whose accounts are bound to others if it has a key for that.
func startPebble(t *testing.T, w *world, key string) *pebble {
	t.Helper()
	program := os.Getenv("OSSL_PEBBLE")
	if program == "" {
		t.Skip("OSSL_PEBBLE names no program: ci/acme runs it")
	}
	p := &pebble{t: t, log: newLogs(), ca: filepath.Join(w.dir, "ca", "ca.pem")}
	pair := w.pair(false, "localhost", "127.0.0.1")
	config := map[string]any{"certificate": pair.Cert, "privateKey": pair.Key,
		"tlsPort": p.tls.start(t), "httpPort": p.plain.start(t),
		"keyAlgorithm": "ecdsa", "retryAfter": map[string]int{"authz": 1, "order": 1}}
	var free [2]net.Listener // pebble doesn't report its port
	for i, name := range []string{"listenAddress", "managementListenAddress"} {
		free[i] = listen(t)
		config[name] = free[i].Addr().String()
	}
	p.directory, p.management = fmt.Sprintf("https://%s/dir", free[0].Addr()), fmt.Sprintf("https://%s", free[1].Addr())
	if key != "" {
		config["externalAccountBindingRequired"] = true
		config["externalAccountMACKeys"] = map[string]string{"kid-1": key}
	}
	text, err := json.Marshal(map[string]any{"pebble": config})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(w.dir, "pebble.json")
	w.write(file, string(text))
	for _, l := range free {
		_ = l.Close()
	}
	cmd := exec.Command(program, "-config", file, "-dnsserver", serveNames(t))
	cmd.Env = append(os.Environ(), "PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=20", "PEBBLE_AUTHZREUSE=0")
	cmd.Stdout, cmd.Stderr = p.log, p.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.stop = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Logf("pebble:\n%s", p.log)
		}
	})
	p.log.await(t, "ACME directory available")
	p.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: w.roots}}, Timeout: patience}
	t.Cleanup(p.client.CloseIdleConnections)
	return p
}

// serveNames is a server of DNS for which all names are this machine's.
func serveNames(t *testing.T) (address string) {
	l := listen(t)
	go handle(l, func(conn net.Conn) {
		for {
			var size [2]byte
			if _, err := io.ReadFull(conn, size[:]); err != nil {
				return
			}
			query := make([]byte, binary.BigEndian.Uint16(size[:]))
			var m dnsmessage.Message
			if _, err := io.ReadFull(conn, query); err != nil || m.Unpack(query) != nil || len(m.Questions) == 0 {
				return
			}
			m.Response, m.Additionals = true, nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}}}
			}
			answer, _ := m.Pack()
			_, _ = conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...))
		}
	})
	return l.Addr().String()
}

// roots returns the root of the certificates that were issued.
func (p *pebble) roots() *x509.CertPool {
	p.t.Helper()
	status, text := get(p.t, p.client, p.management+"/roots/0")
	roots := x509.NewCertPool()
	if status != http.StatusOK || !roots.AppendCertsFromPEM([]byte(text)) {
		p.t.Fatalf("%d: %s", status, text)
	}
	return roots
}

// renew makes the authority ask for the renewal of a certificate.
func (p *pebble) renew(cert *x509.Certificate) {
	p.t.Helper()
	window, _ := json.Marshal(map[string]any{"suggestedWindow": map[string]time.Time{
		"start": time.Now().Add(-2 * time.Hour), "end": time.Now().Add(-time.Hour)}})
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
	body, _ := json.Marshal(map[string]string{"certificate": string(text), "ariResponse": string(window)})
	resp, err := p.client.Post(p.management+"/set-renewal-info/", "application/json", bytes.NewReader(body))
	if err != nil || resp.StatusCode != http.StatusOK {
		p.t.Fatal(err, resp)
	}
	_ = resp.Body.Close()
}

// orders returns the number of orders that the authority has got.
func (p *pebble) orders() int { return strings.Count(p.log.String(), "Added order ") }

// config returns a configuration of one site with ACME.
func (p *pebble) config(w *world, engine string, site terminator.Site) *terminator.Config {
	site.ACME = true
	if len(site.Names) == 0 {
		site.Names = []string{"a.test", "b.test"}
	}
	c := w.config(engine, site)
	c.Sites[0].Pairs = nil
	c.ACME = terminator.ACME{Directory: p.directory, Roots: p.ca, Agree: true, Email: "admin@a.test",
		Storage: filepath.Join(w.dir, "acme")}
	return c
}

// obtained waits until a server has its certificate, and returns that.
func (p *pebble) obtained(r *running) *x509.Certificate {
	p.t.Helper()
	r.log.await(p.t, "certificate obtained")
	return p.served(r, nil)
}

// served waits until a server serves a certificate, and another one than some other.
func (p *pebble) served(r *running, other *x509.Certificate) *x509.Certificate {
	p.t.Helper()
	roots := p.roots()
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		conn, err := r.dial(func(c *tls.Config) { c.RootCAs, c.ServerName = roots, "b.test" })
		if err == nil {
			_ = conn.Close()
			if leaf := conn.ConnectionState().PeerCertificates[0]; other == nil || !leaf.Equal(other) {
				return leaf
			}
		}
		if time.Now().After(end) {
			p.t.Fatal(err)
		}
	}
}

// TestPebble: a server gets its certificate by either challenge, while its site demands certificates of clients, and
// keeps it in files that only it can read. Another one starts with it while the authority is down.
func TestPebble(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		for _, kind := range []string{"tls-alpn-01", "http-01", "TCP"} {
			t.Run(kind, func(t *testing.T) {
				w := newWorld(t)
				const key = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W"
				p := startPebble(t, w, key)
				site := terminator.Site{Root: w.folder(nil), ClientCA: []string{p.ca}, ClientOptional: true,
					ClientAllow: []string{"dns:nobody.test"}}
				if kind == "TCP" {
					site.Root, site.Backend.To = "", "127.0.0.1:1"
				}
				c := p.config(w, engine, site)
				c.ACME.EABID, c.ACME.EABKey = "kid-1", filepath.Join(w.dir, "eab")
				w.write(c.ACME.EABKey, key+"\n")
				socket := shortFolder(t) + "/s"
				if kind == "http-01" {
					c.Redirect = []string{"unix:" + socket}
				}
				r := w.start(c)
				if kind == "http-01" {
					p.tls.to("tcp")
					p.plain.to("unix", socket)
				} else {
					p.tls.to("tcp", r.addr)
					p.plain.to("unix")
				}
				cert := p.obtained(r)
				if strings.Join(cert.DNSNames, " ") != "a.test b.test" {
					t.Errorf("the certificate is for %q", cert.DNSNames)
				}
				checkStorage(t, c.ACME.Storage)
				p.stop()
				without := *c
				without.Redirect = nil
				again := w.start(&without)
				if _, err := again.dial(func(c *tls.Config) { c.InsecureSkipVerify = true; c.ServerName = "a.test" }); err != nil {
					t.Errorf("while the authority is down: %v", err)
				}
			})
		}
	})
}

// TestPebbleRenewal: a renewal, when the authority wants it, costs no connection.
func TestPebbleRenewal(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		w := newWorld(t)
		p := startPebble(t, w, "")
		c := p.config(w, engine, terminator.Site{Root: w.folder(map[string]string{"index.html": "x"})})
		c.Limits.RatePerSource = 0
		r := w.start(c)
		p.tls.to("tcp", r.addr)
		p.plain.to("tcp")
		before := p.obtained(r)
		roots := p.roots()
		kept := r.client(false, func(c *tls.Config) { c.RootCAs = roots })
		visit := func() { // a further connection, and one that is kept
			t.Helper()
			further := r.client(true, func(c *tls.Config) { c.RootCAs = roots })
			defer further.CloseIdleConnections()
			for _, client := range []*http.Client{kept, further} {
				if status, body := get(t, client, "https://a.test/"); status != http.StatusOK || body != "x" {
					t.Errorf("%d: %q", status, body)
				}
			}
		}
		visit()
		p.renew(before)
		r.LookAtACME()
		for served := before; served.Equal(before); {
			visit()
			conn := r.mustDial(func(c *tls.Config) { c.RootCAs, c.ServerName = roots, "a.test" })
			served = conn.ConnectionState().PeerCertificates[0]
			_ = conn.Close()
		}
		visit()
		if n := p.orders(); n != 2 {
			t.Errorf("%d orders", n)
		}
	})
}

// TestPebbleFleet: servers that share the storage order once, and each of them answers the challenges.
func TestPebbleFleet(t *testing.T) {
	w := newWorld(t)
	p := startPebble(t, w, "")
	site := terminator.Site{Root: w.folder(nil)}
	one, two := w.start(p.config(w, "ossl", site)), w.start(p.config(w, "go", site))
	p.tls.to("tcp", one.addr, two.addr)
	p.plain.to("tcp")
	first := p.served(one, nil)
	if second := p.served(two, nil); !first.Equal(second) {
		t.Error("the servers have different certificates")
	}
	if n := p.orders(); n != 1 {
		t.Errorf("%d orders", n)
	}
	p.renew(first)
	one.LookAtACME()
	two.LookAtACME()
	if renewed := p.served(one, first); !renewed.Equal(p.served(two, first)) {
		t.Error("the servers have different certificates after the renewal")
	}
	if n := p.orders(); n != 2 {
		t.Errorf("%d orders", n)
	}
}

// TestPebbleTerms: if the authority has terms and the configuration doesn't agree to them, there is
// no account, and the log and the metrics report it.
func TestPebbleTerms(t *testing.T) {
	w := newWorld(t)
	p := startPebble(t, w, "")
	c := p.config(w, "ossl", terminator.Site{Root: w.folder(nil)})
	c.ACME.Agree, c.Admin = false, "127.0.0.1:0"
	r := w.start(c)
	r.log.await(t, "acme: no certificate", "acme-agree is missing", "again in")
	_, admin := r.Addrs()
	_, text := get(t, http.DefaultClient, "http://"+admin.String()+"/metrics")
	if !strings.Contains(text, `ossl_serve_acme_orders_total{result="failed"} 1`) {
		t.Error("the failure isn't counted")
	}
}
