package terminator_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// manySites returns a configuration of sites, all with one certificate. demands sets the demands on clients
// of the site with an index.
func manySites(w *world, engine string, number int, demand func(*terminator.Site, int)) *terminator.Config {
	var names []string
	for i := range number {
		names = append(names, fmt.Sprintf("s%d.test", i))
	}
	pair := w.pair(false, names...)
	config := w.config(engine, terminator.Site{Root: w.folder(map[string]string{"index.html": "x"})})
	site := config.Sites[0]
	config.Sites = nil
	for i, name := range names {
		site.Names, site.Pairs = []string{name}, []terminator.Pair{pair}
		if demand != nil {
			demand(&site, i)
		}
		config.Sites = append(config.Sites, site)
	}
	config.Limits.RatePerSource, config.Admin = 0, "127.0.0.1:0"
	return config
}

// TestManySites: sites with the same certificate and the same demands on clients share what is compiled,
// also after a reload. So a thousand sites cost little more than one.
func TestManySites(t *testing.T) {
	const number = 60
	w := newWorld(t)
	for _, c := range []struct {
		name               string
		demand             func(*terminator.Site, int)
		pairs, contexts    int
		refused, unrefused string // without a certificate
	}{
		{"equal", nil, 1, 1, "", "s7.test"},
		{"with and without authorities", func(s *terminator.Site, i int) {
			s.ClientCA = nil
			if i%2 == 1 {
				s.ClientCA = []string{w.authority.File}
			}
		}, 1, 2, "s7.test", "s8.test"},
		{"required and optional", func(s *terminator.Site, i int) {
			s.ClientCA, s.ClientOptional = []string{w.authority.File}, i%2 == 0
		}, 1, 2, "s7.test", "s8.test"},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := manySites(w, "ossl", number, c.demand)
			r := w.start(config)
			check := func() {
				t.Helper()
				if pairs, contexts := r.Compiled(); pairs != c.pairs || contexts != c.contexts {
					t.Errorf("%d pairs and %d Contexts, want %d and %d", pairs, contexts, c.pairs, c.contexts)
				}
			}
			check()
			for name, good := range map[string]bool{c.refused: false, c.unrefused: true} {
				if name == "" {
					continue
				}
				_, err := visit(r, name, nil)
				if (err == nil) != good {
					t.Errorf("%s: %v", name, err)
				}
			}
			again := *config
			if err := r.Reload(context.Background(), &again); err != nil {
				t.Fatal(err)
			}
			check()
			_, admin := r.Addrs()
			_, body := get(t, http.DefaultClient, "http://"+admin.String()+"/metrics")
			if n := strings.Count(body, "\nossl_serve_certificate_expiry_timestamp_seconds{"); n != number {
				t.Errorf("%d sites have the end of their certificate in the metrics", n)
			}
		})
	}
}

// TestManySitesResumption: sites that share a certificate share no sessions if their demands on clients
// differ.
func TestManySitesResumption(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		w := newWorld(t)
		client := w.certificates(w.pair(true, "client"))
		r := w.start(manySites(w, engine, 4, func(s *terminator.Site, i int) {
			s.ClientCA, s.ClientOptional = nil, i == 3
			if i >= 2 {
				s.ClientCA = []string{w.authority.File}
			}
		}))
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			for from := range 4 {
				for to := range 4 {
					var sessions oneSession
					change := func(config *tls.Config) {
						config.MaxVersion, config.ClientSessionCache = version, &sessions
						if from == 2 {
							config.Certificates = client
						}
					}
					if _, err := visit(r, fmt.Sprintf("s%d.test", from), change); err != nil {
						t.Fatal(err)
					}
					resumed, err := visit(r, fmt.Sprintf("s%d.test", to), func(config *tls.Config) {
						change(config)
						config.Certificates = nil
					})
					if to == 2 && from != 2 && err == nil {
						t.Errorf("%x, from %d to %d: a client without a certificate gets in", version, from, to)
					}
					if same := from < 2 && to < 2 || from == to; resumed && !same {
						t.Errorf("%x, from %d to %d: the session is resumed", version, from, to)
					}
					if from == to && !resumed && (engine == "ossl" || from < 2) { // crypto/tls issues no tickets at the others
						t.Errorf("%x, %d: the session isn't resumed, %v", version, from, err)
					}
				}
			}
		}
	})
}

// visit makes a request of a site, and reports whether its connection was resumed.
func visit(r *running, name string, change func(*tls.Config)) (resumed bool, err error) {
	conn, err := r.dial(func(config *tls.Config) {
		config.ServerName = name
		if change != nil {
			change(config)
		}
	})
	if err != nil {
		return false, err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.0\r\nHost: "+name+"\r\n\r\n"); err != nil {
		return false, err
	}
	text, err := io.ReadAll(conn)
	if err == nil && !strings.HasPrefix(string(text), "HTTP/1.0 200 ") {
		err = fmt.Errorf("%q", text)
	}
	return conn.ConnectionState().DidResume, err
}

// oneSession is a cache that gives a session to all servers.
type oneSession struct{ session *tls.ClientSessionState }

func (o *oneSession) Get(string) (*tls.ClientSessionState, bool) { return o.session, o.session != nil }

func (o *oneSession) Put(_ string, s *tls.ClientSessionState) {
	if o.session == nil {
		o.session = s
	}
}
