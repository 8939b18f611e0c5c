package zoo

import (
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/session"
)

// quiet is the log of servers whose clients do strange things.
var quiet = log.New(io.Discard, "", 0)

func ticketKey() (key [32]byte) {
	rand.Read(key[:])
	return key
}

// fleet starts crypto/tls at two addresses; configure changes the configuration of each.
func fleet(configure func(r *Running, i int, c *tls.Config)) func(*Running) error {
	return func(r *Running) error {
		for i, host := range []string{"127.0.0.1", "127.0.0.2"} {
			config := goConfig(r.use(pki.ecdsa()))
			configure(r, i, config)
			if err := r.listen(host, goTLS(config)); err != nil {
				return err
			}
		}
		return nil
	}
}

// sessionServers differ in the sessions that they resume.
func sessionServers() []*Server {
	shared := ticketKey()
	return []*Server{
		goServer("no-resumption", "no session is resumed", pki.ecdsa, func(c *tls.Config) { c.SessionTicketsDisabled = true },
			Verdict{"resume-none", "no session is resumed in any way"}).but("resume-tls12-id"),
		goServer("zero-ticket-key", "tickets are sealed with a key of zeros", pki.ecdsa, func(c *tls.Config) {
			c.SetSessionTicketKeys([][32]byte{{}})
		}, Verdict{"ticket-key-weak", "everyone can open the tickets"}),
		{
			Name: "fleet-unshared", About: "two addresses with ticket keys of their own",
			Expect: goVerdicts(Verdict{"resume-fleet", "a session of one address isn't resumed by the other one"}),
			start:  fleet(func(_ *Running, _ int, c *tls.Config) { c.SetSessionTicketKeys([][32]byte{ticketKey()}) }),
		},
		{
			Name: "fleet-shared", About: "two addresses with the same ticket keys", Expect: goVerdicts(),
			start: fleet(func(_ *Running, _ int, c *tls.Config) { c.SetSessionTicketKeys([][32]byte{shared}) }),
		},
		{
			Name: "fleet-different", About: "two addresses, of which one has TLS 1.2 alone",
			Expect: goVerdicts(Verdict{"address-differs", "one address has no TLS 1.3"}),
			start: fleet(func(_ *Running, i int, c *tls.Config) {
				c.SetSessionTicketKeys([][32]byte{shared})
				if i == 1 {
					c.MaxVersion = tls.VersionTLS12
				}
			}),
		},
		{
			Name: "fleet-half-dead", About: "two addresses, of which one refuses connections",
			Expect: goVerdicts(Verdict{"address-unreachable", "nothing listens there"}),
			start: func(r *Running) error {
				config := goConfig(r.use(pki.ecdsa()))
				if err := r.listen("127.0.0.1", goTLS(config)); err != nil {
					return err
				}
				l, err := r.listener("127.0.0.2")
				if err != nil {
					return err
				}
				return l.Close()
			},
		},
		{
			Name: "ossl", About: "ossl with a session cache and tickets, without post-quantum groups",
			Expect: []Verdict{
				{"suite-order", "the order is crypto/tls's"}, {"group-postquantum", "no group of key exchange is post-quantum"},
			},
			start: osslServer(ossl.WithSessionCache(session.NewCache(100))),
		},
	}
}

// osslServer starts a server on OpenSSL, with the options.
func osslServer(options ...ossl.Option) func(*Running) error {
	return func(r *Running) error {
		config := goConfig(r.use(pki.ecdsa()))
		config.CurvePreferences = []tls.CurveID{tls.X25519, tls.CurveP256}
		ctx, err := ossl.NewContext(config, options...)
		if err != nil {
			return err
		}
		return r.listen("127.0.0.1", func(conn net.Conn) {
			server := ctx.Server(conn)
			if err := server.Handshake(); err == nil {
				answerHTTP(server)
			}
		})
	}
}

// Unavailable reports whether a server can't be started because this host lacks something.
func Unavailable(err error) bool { return errors.Is(err, ossl.ErrUnavailable) }
