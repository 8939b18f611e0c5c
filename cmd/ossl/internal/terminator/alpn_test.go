package terminator_test

import (
	"crypto/tls"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestALPN: a TCP site with protocols refuses clients that offer only others, so that no client of
// another protocol is taken in (ALPACA).
func TestALPN(t *testing.T) {
	engines(t, func(t *testing.T, engine string) {
		w, l := newWorld(t), listen(t)
		mail, database, any := tcp(l.Addr().String()), tcp(l.Addr().String()), tcp(l.Addr().String())
		mail.Names, mail.ALPN = []string{"mail.test"}, []string{"smtp", "imap"}
		database.Names, database.ALPN = []string{"db.test"}, []string{"postgresql"}
		any.Names = []string{"*"}
		config := w.config(engine, mail)
		for _, s := range []*terminator.Site{&mail, &database, &any} {
			s.Pairs = []terminator.Pair{w.pair(false, "mail.test", "db.test", "other.test")}
		}
		config.Sites = []terminator.Site{mail, database, any}
		r := w.start(config)
		for _, c := range []struct {
			name    string
			offered []string
			want    string // "-" for a refusal
		}{
			{"mail.test", []string{"imap", "smtp"}, "smtp"},
			{"mail.test", []string{"h2", "imap"}, "imap"},
			{"mail.test", []string{"h2", "http/1.1"}, "-"},
			{"mail.test", nil, ""},
			{"db.test", []string{"postgresql"}, "postgresql"},
			{"db.test", []string{"smtp"}, "-"},
			{"other.test", []string{"h2"}, ""},
		} {
			for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
				conn, err := r.dial(func(config *tls.Config) {
					config.ServerName, config.NextProtos, config.MaxVersion = c.name, c.offered, version
				})
				switch {
				case c.want == "-" && (err == nil || !strings.Contains(err.Error(), "no application protocol")):
					t.Errorf("%+v: error %v", c, err)
				case c.want != "-" && err != nil:
					t.Errorf("%+v: %v", c, err)
				case c.want != "-":
					write(t, conn, "x")
					read(t, accept(t, l), 1)
					if got := conn.ConnectionState().NegotiatedProtocol; got != c.want {
						t.Errorf("%+v: agreed on %q", c, got)
					}
				}
			}
		}
	})
}

// TestALPNSettings refuses protocols by name.
func TestALPNSettings(t *testing.T) {
	w := newWorld(t)
	for want, site := range map[string]terminator.Site{
		"alpn is for sites of TCP":                          {Root: t.TempDir(), ALPN: []string{"h2"}},
		`alpn "": a protocol has 1 to 255 bytes`:            {Backend: tcp("localhost:1").Backend, ALPN: []string{""}},
		`alpn "acme-tls/1" is for challenges of ACME alone`: {Backend: tcp("localhost:1").Backend, ALPN: []string{"acme-tls/1"}},
		`alpn "smtp" is given twice`:                        {Backend: tcp("localhost:1").Backend, ALPN: []string{"smtp", "smtp"}},
	} {
		if err := w.config("ossl", site).Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
