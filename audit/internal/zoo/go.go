package zoo

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"slices"
	"time"
)

// noIDs is a finding on every server that is crypto/tls.
var noIDs = Verdict{"resume-tls12-id", "crypto/tls has no session cache for TLS 1.2"}

// goVerdicts returns verdicts, with those on every server that is crypto/tls.
func goVerdicts(more ...Verdict) []Verdict {
	return append(more, noIDs, Verdict{"suite-order", "crypto/tls prefers AES-128, and of TLS 1.3 that can't be changed"})
}

// strong12 are the TLS 1.2 cipher suites that all policies allow.
var strong12 = []uint16{
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
}

// modernGroups are groups that all policies allow.
var modernGroups = []tls.CurveID{tls.X25519MLKEM768, tls.X25519, tls.CurveP256}

// goConfig returns the configuration of a server on crypto/tls that the policy has nothing against.
func goConfig(certificates ...tls.Certificate) *tls.Config {
	return &tls.Config{Certificates: certificates, CipherSuites: strong12, CurvePreferences: modernGroups}
}

// answerHTTP answers requests until the client closes the connection, or is silent for long.
func answerHTTP(conn net.Conn) {
	conn.SetDeadline(time.Now().Add(time.Minute))
	b := bufio.NewReader(conn)
	for {
		request, err := http.ReadRequest(b)
		if err != nil {
			break
		}
		io.Copy(io.Discard, request.Body)
		if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nServer: zoo\r\nContent-Length: 4\r\n"+
			"Strict-Transport-Security: max-age=31536000\r\n\r\nzoo\n"); err != nil {
			break
		}
	}
	conn.Close()
}

// without returns the verdicts except the given rules' verdicts.
func without(verdicts []Verdict, rules ...string) []Verdict {
	return slices.DeleteFunc(verdicts, func(v Verdict) bool { return slices.Contains(rules, v.Rule) })
}

// but removes verdicts of rules that can't apply to the server.
func (s *Server) but(rules ...string) *Server {
	s.Expect = without(s.Expect, rules...)
	return s
}

// goServer is a server on crypto/tls.
func goServer(name, about string, id func() *identity, edit func(*tls.Config), expect ...Verdict) *Server {
	return &Server{Name: name, About: about, Expect: goVerdicts(expect...), start: func(r *Running) error {
		config := goConfig(r.use(id()))
		edit(config)
		return r.listen("127.0.0.1", goTLS(config))
	}}
}

// goServers are crypto/tls in many configurations.
func goServers() []*Server {
	no13 := Verdict{"tls13-missing", "TLS 1.3 is off"}
	no13required := Verdict{"version-missing", "TLS 1.3 is off"}
	noPQ := Verdict{"group-postquantum", "no group of key exchange is post-quantum"}
	slow := Verdict{"key-slow", "an ECDSA signature takes a fraction of the time"}
	old := Verdict{"version-old", "TLS 1.0 and TLS 1.1 are offered"}
	return []*Server{
		goServer("go", "crypto/tls as it is, for HTTP", pki.ecdsa, func(c *tls.Config) {
			c.CipherSuites, c.CurvePreferences = nil, nil
		},
			Verdict{"suite-not-in-policy", "crypto/tls's defaults have CBC suites"},
			Verdict{"group-not-in-policy", "crypto/tls's defaults have secp521r1"}),
		goServer("go-1.3-only", "TLS 1.3 alone", pki.ecdsa, func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 }).
			but("resume-tls12-id"),
		goServer("go-1.2-only", "TLS 1.2 alone", pki.ecdsa, func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 },
			no13, no13required),
		goServer("go-1.0-only", "TLS 1.0 alone", pki.rsa2048, func(c *tls.Config) {
			c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS10
			c.CipherSuites = []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA, tls.TLS_RSA_WITH_AES_128_CBC_SHA}
		}, old, no13, no13required, slow, Verdict{"suite-not-in-policy", "CBC alone"}).but("suite-order"),
		goServer("go-1.0-up", "TLS 1.0 to 1.3", pki.ecdsa, func(c *tls.Config) {
			c.MinVersion = tls.VersionTLS10
			c.CipherSuites = append([]uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA}, strong12...)
		}, old, Verdict{"suite-not-in-policy", "TLS 1.0 needs CBC suites"}),
		goServer("go-3des", "triple DES and RSA key exchange in TLS 1.2", pki.rsa2048, func(c *tls.Config) {
			c.MaxVersion = tls.VersionTLS12
			c.CipherSuites = []uint16{tls.TLS_RSA_WITH_3DES_EDE_CBC_SHA, tls.TLS_RSA_WITH_AES_128_CBC_SHA}
		}, no13, no13required, slow, Verdict{"suite-weak", "triple DES"},
			Verdict{"suite-not-in-policy", "RSA key exchange"}).but("suite-order"),
		goServer("go-rc4", "RC4 in TLS 1.2", pki.rsa2048, func(c *tls.Config) {
			c.MaxVersion = tls.VersionTLS12
			c.CipherSuites = append([]uint16{tls.TLS_ECDHE_RSA_WITH_RC4_128_SHA}, strong12...)
		}, no13, no13required, slow, Verdict{"suite-weak", "RC4"}).but("suite-order"),
		goServer("go-rsa-2048", "an RSA key of 2048 bits", pki.rsa2048, func(*tls.Config) {},
			slow),
		goServer("go-rsa-4096", "an RSA key of 4096 bits", pki.rsa4096, func(*tls.Config) {},
			slow),
		goServer("go-two-keys", "an ECDSA and an RSA certificate", pki.ecdsa, func(c *tls.Config) {
			c.Certificates = append(c.Certificates, pki.rsa2048().tls())
		}),
		goServer("go-prime256v1", "prime256v1 is the only group", pki.ecdsa, func(c *tls.Config) {
			c.CurvePreferences = []tls.CurveID{tls.CurveP256}
		}, noPQ, Verdict{"group-retry", "clients with key shares of X25519 pay a HelloRetryRequest"}),
		goServer("go-no-postquantum", "X25519 and prime256v1", pki.ecdsa, func(c *tls.Config) {
			c.CurvePreferences = []tls.CurveID{tls.X25519, tls.CurveP256}
		}, noPQ),
		{
			Name: "go-https", About: "net/http with HTTP/2", Protocol: "https", Expect: goVerdicts(),
			start: func(r *Running) error {
				return r.http("h2", "http/1.1")
			},
		},
		{
			Name: "go-https-1.1", About: "net/http without HTTP/2", Protocol: "https",
			Expect: goVerdicts(Verdict{"alpn-h2", "HTTP/2 isn't offered"}),
			start: func(r *Running) error {
				return r.http("http/1.1")
			},
		},
		{
			Name: "go-https-guessed", About: "net/http on a port that isn't known for HTTPS",
			Expect: goVerdicts(Verdict{"alpn-h2", "HTTP/2 isn't offered"}),
			start: func(r *Running) error {
				return r.http("http/1.1")
			},
		},
	}
}

// http starts net/http's server.
func (r *Running) http(protos ...string) error {
	config := goConfig(r.use(pki.ecdsa()))
	config.NextProtos = protos
	l, err := r.listener("127.0.0.1")
	if err != nil {
		return err
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(protos[0] == "h2")
	server := &http.Server{
		TLSConfig: config, Protocols: protocols, ErrorLog: quiet, ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Strict-Transport-Security", "max-age=31536000")
			io.WriteString(w, "zoo\n")
		}),
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		server.ServeTLS(l, "", "")
	}()
	r.onClose(func() error {
		err := server.Close()
		<-ended
		return err
	})
	return nil
}
