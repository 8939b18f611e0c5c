package zoo

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"time"

	"github.com/ossl-go/ossl/audit"
)

// raw is a server that answers a ClientHello with the bytes that answer returns, and then waits for
// the client to leave.
func raw(name, about string, answer func(o *offer) []byte, expect ...Verdict) *Server {
	return &Server{
		Name: name, About: about, Expect: expect, Slow: true,
		Failed: []string{"resume-none", "certificate-expired"},
		start: func(r *Running) error {
			r.use(pki.ecdsa())
			return r.listen("127.0.0.1", func(conn net.Conn) {
				conn.SetDeadline(time.Now().Add(serverPatience))
				for {
					o, err := readOffer(conn)
					if err != nil {
						return
					}
					if _, err := conn.Write(answer(o)); err != nil {
						return
					}
				}
			})
		},
	}
}

// hello13 returns a TLS 1.3 ServerHello that chooses a version, a suite, and a group with a key
// share of zeros.
func hello13(o *offer, version, suite, group uint16, retry bool) []byte {
	random := make([]byte, 32)
	rand.Read(random)
	share := binary.BigEndian.AppendUint16(nil, group)
	if retry {
		random = []byte("\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91" +
			"\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c")
	} else {
		share = append(share, vector(2, make([]byte, 32)...)...)
	}
	body := append([]byte{3, 3}, random...)
	body = append(body, vector(1, o.session...)...)
	body = append(body, byte(suite>>8), byte(suite), 0)
	extensions := append(extension(43, byte(version>>8), byte(version)), extension(51, share...)...)
	return records(0x0303, message(2, append(body, vector(2, extensions...)...)...))
}

// hurry sets a short timeout for an audit that is expected to time out. A busy machine answers within it.
func hurry(o *audit.Options) { o.Timeout = 3 * time.Second }

// serverPatience is a server's timeout. It is longer than any audit's.
const serverPatience = time.Minute

// lyingServers break the protocol's rules.
func lyingServers() []*Server {
	lies := func(why string) Verdict { return Verdict{"protocol-lies", why} }
	plain := (&script{extensions: append(extension(renegotiationInf, 0), extension(23)...)}).hello
	return []*Server{
		raw("lies-suite", "it chooses a suite that the client didn't offer", func(o *offer) []byte {
			return records(0x0303, plain(0x0303, 0x00ff, 0), message(14))
		}, lies("the suite of its hello was never offered")),
		raw("lies-version", "it chooses a version that doesn't exist", func(o *offer) []byte {
			return hello13(o, 0x0399, o.suite13(), 29, false)
		}, lies("the version of its hello was never offered")),
		raw("lies-group", "it asks for a group that the client didn't offer", func(o *offer) []byte {
			if !o.offers13() {
				return alert(0x0301, 70)
			}
			return hello13(o, 0x0304, o.suite13(), 0x4242, true)
		}, lies("the group of its HelloRetryRequest was never offered")),
		raw("retries-for-ever", "it answers every hello with a HelloRetryRequest", func(o *offer) []byte {
			if !o.offers13() {
				return alert(0x0301, 70)
			}
			if !slices.Contains(numbers(o.extensions[10]), 29) || !slices.Contains(o.suites, tls.TLS_AES_256_GCM_SHA384) {
				return alert(0x0303, 40)
			}
			return hello13(o, 0x0304, tls.TLS_AES_256_GCM_SHA384, 29, true)
		}, Verdict{"client-retry", "each client is asked again"}, Verdict{"group-postquantum", "the only group is X25519"}),
		raw("alerts", "it refuses every hello with internal_error", func(*offer) []byte { return alert(0x0303, 80) },
			Verdict{"version-missing", "no version is offered"}, Verdict{"tls13-missing", "no version is offered"},
			Verdict{"client-refused", "all are"}),
	}
}

// slowServers stay silent, never end, or end too early.
func slowServers() []*Server {
	broken := func(name, about string, answer func(net.Conn), expect ...Verdict) *Server {
		return &Server{
			Name: name, About: about, Slow: true, Expect: expect,
			Failed: []string{"resume-none", "version-old", "version-missing", "tls13-missing", "suite-weak", "certificate-expired"},
			start: func(r *Running) error {
				return r.listen("127.0.0.1", func(conn net.Conn) {
					conn.SetDeadline(time.Now().Add(serverPatience))
					answer(conn)
				})
			},
		}
	}
	notTLS := Verdict{"protocol-lies", "the answer isn't TLS"}
	plain := broken("plain", "it speaks HTTP without TLS", func(conn net.Conn) {
		conn.Read(make([]byte, 16))
		io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	})
	plain.NoTLS = true
	silent := func(server *Server) *Server {
		server.Options = hurry
		return server
	}
	return []*Server{
		silent(broken("tarpit", "it accepts connections and never says anything", func(conn net.Conn) { io.Copy(io.Discard, conn) })),
		silent(broken("drip", "it sends one byte of a hello each 50 ms", func(conn net.Conn) {
			o, err := readOffer(conn)
			if err != nil || o.ssl2 != nil {
				return
			}
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			for _, b := range hello13(o, 0x0304, tls.TLS_AES_128_GCM_SHA256, 29, false) {
				<-tick.C
				if _, err := conn.Write([]byte{b}); err != nil {
					return
				}
			}
		})),
		broken("garbage", "it sends random bytes for ever", func(conn net.Conn) {
			b := make([]byte, 1<<14)
			for {
				rand.Read(b)
				if _, err := conn.Write(b); err != nil {
					return
				}
			}
		}, notTLS),
		broken("endless", "it sends records of handshake messages for ever", func(conn net.Conn) {
			part := records(0x0303, append([]byte{11, 0xff, 0xff, 0xff}, bytes.Repeat([]byte{0}, 1<<14-4)...))
			for {
				if _, err := conn.Write(part); err != nil {
					return
				}
			}
		}, notTLS),
		broken("half", "it ends each connection after the first half of its hello", func(conn net.Conn) {
			if o, err := readOffer(conn); err == nil && o.ssl2 == nil {
				b := hello13(o, 0x0304, tls.TLS_AES_128_GCM_SHA256, 29, false)
				conn.Write(b[:len(b)/2])
			}
		}),
		broken("closes", "it ends each connection at once", func(net.Conn) {}),
		plain,
		limited("rate-limit", "10 connections a second, further ones are closed", false),
		limited("rate-limit-reset", "10 connections a second, further ones are reset", true),
		wordless("closes-refusals", "it closes connections instead of sending alerts", false),
		wordless("resets-refusals", "it resets connections instead of sending alerts", true),
		oneSegment("drops-large-hellos", "it closes connections that begin with more than 1,200 bytes", func(net.Conn) {}),
		oneSegment("ignores-large-hellos", "it never answers connections that begin with more than 1,200 bytes", func(conn net.Conn) {
			io.Copy(io.Discard, conn)
		}),
	}
}

// wordless is the server go-no-postquantum, with TLS 1.1, behind a load balancer that closes or
// resets a connection instead of passing an alert on.
func wordless(name, about string, reset bool) *Server {
	return &Server{
		Name: name, About: about, Slow: true,
		Expect: goVerdicts(Verdict{"group-postquantum", "no group of key exchange is post-quantum"},
			Verdict{"version-old", "TLS 1.1 is offered"}, Verdict{"suite-not-in-policy", "TLS 1.1 needs CBC suites"}),
		start: func(r *Running) error {
			config := goConfig(r.use(pki.ecdsa()))
			config.CurvePreferences = []tls.CurveID{tls.X25519, tls.CurveP256}
			config.MinVersion = tls.VersionTLS11
			config.CipherSuites = append([]uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA}, strong12...)
			answer := goTLS(config)
			return r.listen("127.0.0.1", func(conn net.Conn) {
				if reset {
					conn.(*net.TCPConn).SetLinger(0)
				}
				answer(&alertless{Conn: conn})
			})
		},
	}
}

// oneSegment is the server go, behind a load balancer that calls drop for hellos of more than 1,200 bytes.
func oneSegment(name, about string, drop func(net.Conn)) *Server {
	return &Server{
		Name: name, About: about, Slow: true,
		Expect: goVerdicts(Verdict{"hello-large", "hellos of 1,600 bytes are dropped"},
			Verdict{"client-refused", "the hellos of browsers have more than 1,200 bytes"}),
		Options: hurry,
		start: func(r *Running) error {
			answer := goTLS(goConfig(r.use(pki.ecdsa())))
			return r.listen("127.0.0.1", func(conn net.Conn) {
				in := bufio.NewReader(conn)
				head, err := in.Peek(5)
				if err == nil && binary.BigEndian.Uint16(head[3:]) > 1200 {
					drop(conn)
				} else if err == nil {
					answer(&buffered{conn, in})
				}
			})
		},
	}
}

// buffered is a connection whose first bytes were read into a buffer.
type buffered struct {
	net.Conn
	in *bufio.Reader
}

func (c *buffered) Read(b []byte) (int, error) { return c.in.Read(b) }

// alertless is a connection that closes instead of sending an alert as the first answer.
type alertless struct {
	net.Conn
	answered bool
}

func (c *alertless) Write(b []byte) (int, error) {
	if !c.answered && b[0] == 21 {
		c.Close()
		return 0, net.ErrClosed
	}
	c.answered = true
	return c.Conn.Write(b)
}

// limited is the server go-no-postquantum behind a limit of 10 connections a second.
func limited(name, about string, reset bool) *Server {
	return &Server{
		Name: name, About: about, Slow: true,
		Expect: goVerdicts(Verdict{"group-postquantum", "no group of key exchange is post-quantum"}),
		start: func(r *Running) error {
			config := goConfig(r.use(pki.ecdsa()))
			config.CurvePreferences = []tls.CurveID{tls.X25519, tls.CurveP256}
			answer := goTLS(config)
			allow := limiter(10)
			return r.listen("127.0.0.1", func(conn net.Conn) {
				if allow() {
					answer(conn)
				} else if reset {
					conn.(*net.TCPConn).SetLinger(0)
				}
			})
		},
	}
}
