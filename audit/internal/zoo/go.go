package zoo

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"time"
)

// noIDs is a finding on every server that is crypto/tls.
var noIDs = Verdict{"resume-tls12-id", "crypto/tls has no session cache for TLS 1.2"}

// strong12 are the cipher suites of TLS 1.2 that all policies allow.
var strong12 = []uint16{
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
}

// answerHTTP answers requests until the client ends the connection, or is silent for long.
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

// goServer is a server on crypto/tls.
func goServer(name, about string, id func() *identity, edit func(*tls.Config), expect ...Verdict) *Server {
	return &Server{Name: name, About: about, Expect: expect, start: func(r *Running) error {
		config := &tls.Config{Certificates: []tls.Certificate{r.use(id())}, CipherSuites: strong12}
		edit(config)
		return r.listen("127.0.0.1", goTLS(config))
	}}
}

// goServers are crypto/tls in many configurations.
func goServers() []*Server {
	no13 := Verdict{"tls13-missing", "TLS 1.3 is off"}
	no13required := Verdict{"version-missing", "TLS 1.3 is off"}
	noPQ := Verdict{"group-postquantum", "no group of key exchange is post-quantum"}
	old := Verdict{"version-old", "TLS 1.0 and TLS 1.1 are offered"}
	return []*Server{
		goServer("go", "crypto/tls as it is, for HTTP", pki.ecdsa, func(c *tls.Config) { c.CipherSuites = nil },
			noIDs, Verdict{"suite-not-in-policy", "crypto/tls's defaults have CBC suites"}),
		goServer("go-1.3-only", "TLS 1.3 alone", pki.ecdsa, func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 }),
		goServer("go-1.2-only", "TLS 1.2 alone", pki.ecdsa, func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 },
			noIDs, no13, no13required, noPQ),
		goServer("go-1.0-only", "TLS 1.0 alone", pki.rsa2048, func(c *tls.Config) {
			c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS10
			c.CipherSuites = []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA, tls.TLS_RSA_WITH_AES_128_CBC_SHA}
		}, old, no13, no13required),
		goServer("go-1.0-up", "TLS 1.0 to 1.3", pki.ecdsa, func(c *tls.Config) {
			c.MinVersion = tls.VersionTLS10
			c.CipherSuites = append([]uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA}, strong12...)
		}, noIDs, old, Verdict{"suite-not-in-policy", "TLS 1.0 needs CBC suites"}),
		goServer("go-3des", "triple DES and RSA key exchange in TLS 1.2", pki.rsa2048, func(c *tls.Config) {
			c.MaxVersion = tls.VersionTLS12
			c.CipherSuites = []uint16{tls.TLS_RSA_WITH_3DES_EDE_CBC_SHA, tls.TLS_RSA_WITH_AES_128_CBC_SHA}
		}, noIDs, no13, no13required, Verdict{"suite-weak", "triple DES; no forward secrecy"}),
		goServer("go-rc4", "RC4 in TLS 1.2", pki.rsa2048, func(c *tls.Config) {
			c.MaxVersion = tls.VersionTLS12
			c.CipherSuites = append([]uint16{tls.TLS_ECDHE_RSA_WITH_RC4_128_SHA}, strong12...)
		}, noIDs, no13, no13required, Verdict{"suite-weak", "RC4"}),
		goServer("go-rsa-2048", "an RSA key of 2048 bits", pki.rsa2048, func(*tls.Config) {}, noIDs,
			Verdict{"key-slow", "an ECDSA signature takes a fraction of the time"}),
		goServer("go-rsa-4096", "an RSA key of 4096 bits", pki.rsa4096, func(*tls.Config) {}, noIDs,
			Verdict{"key-slow", "an ECDSA signature takes a fraction of the time"}),
		goServer("go-two-keys", "an ECDSA and an RSA certificate", pki.ecdsa, func(c *tls.Config) {
			c.Certificates = append(c.Certificates, pki.rsa2048().tls())
		}, noIDs),
		goServer("go-prime256v1", "prime256v1 is the only group", pki.ecdsa, func(c *tls.Config) {
			c.CurvePreferences = []tls.CurveID{tls.CurveP256}
		}, noIDs, noPQ, Verdict{"group-retry", "clients with key shares of X25519 pay a HelloRetryRequest"}),
		goServer("go-no-postquantum", "X25519 and prime256v1", pki.ecdsa, func(c *tls.Config) {
			c.CurvePreferences = []tls.CurveID{tls.X25519, tls.CurveP256}
		}, noIDs, noPQ),
		{
			Name: "go-https", About: "net/http with HTTP/2", Protocol: "https", Expect: []Verdict{noIDs},
			start: func(r *Running) error {
				return r.http(&tls.Config{CipherSuites: strong12, NextProtos: []string{"h2", "http/1.1"}})
			},
		},
		{
			Name: "go-https-1.1", About: "net/http without HTTP/2", Protocol: "https",
			Expect: []Verdict{noIDs, {"alpn-h2", "HTTP/2 isn't offered"}},
			start: func(r *Running) error {
				return r.http(&tls.Config{CipherSuites: strong12, NextProtos: []string{"http/1.1"}})
			},
		},
	}
}

// http starts net/http's server.
func (r *Running) http(config *tls.Config) error {
	config.Certificates = []tls.Certificate{r.use(pki.ecdsa())}
	l, err := r.listener("127.0.0.1")
	if err != nil {
		return err
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(config.NextProtos[0] == "h2")
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
