package zoo

import (
	"crypto"
	"crypto/md5"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"encoding/binary"
	"math/big"
	"net"
	"slices"
	"time"
)

// A script is a server of old versions, which no library has any more. It answers ClientHellos as
// far as ServerHelloDone, and refuses to go on from there.
type script struct {
	min, max    uint16
	suites      []uint16 // the most preferred first
	clientOrder bool
	compression byte
	prime       *big.Int // of Diffie-Hellman
	extensions  []byte
	ssl2        []byte   // ciphers of SSL 2, three bytes each
	chain       [][]byte // instead of a sound one
}

// Suites that only scripts have, by their IANA numbers.
const (
	rsaNullSHA       = 0x0002
	rsaExportRC4     = 0x0003
	rsaRC4MD5        = 0x0004
	rsaRC4SHA        = 0x0005
	rsaExportDES     = 0x0008
	rsaDES           = 0x0009
	rsa3DES          = 0x000a
	dheRSAExportDES  = 0x0014
	dheRSAAES128     = 0x0033
	anonAES128       = 0x0034
	rsaAES128        = 0x002f
	dheRSAAES128GCM  = 0x009e
	renegotiationInf = 0xff01
)

// Primes of Diffie-Hellman: the 1024 bits of RFC 2409, section 6.2, and 512 bits, which are not of
// a safe prime: nobody computes with them here.
var (
	prime1024, _ = new(big.Int).SetString("FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74"+
		"020BBEA63B139B22514A08798E3404DDEF9519B3CD3A431B302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6"+
		"F44C42E9A637ED6B0BFF5CB6F406B7EDEE386BFB5A899FA5AE9F24117C4B1FE649286651ECE65381FFFFFFFFFFFFFFFF", 16)
	prime512 = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 512), big.NewInt(569))
)

// choose returns the suite for a client, or 0.
func (s *script) choose(o *offer) uint16 {
	first, second := s.suites, o.suites
	if s.clientOrder {
		first, second = second, first
	}
	for _, suite := range first {
		if slices.Contains(second, suite) {
			return suite
		}
	}
	return 0
}

// answer plays the script for one connection, with a chain and its Certificate message.
func (s *script) answer(conn net.Conn, chain [][]byte, certificates []byte, key *rsa.PrivateKey) {
	conn.SetDeadline(time.Now().Add(serverPatience))
	o, err := readOffer(conn)
	if err != nil {
		return
	}
	if o.ssl2 != nil {
		if s.ssl2 != nil {
			conn.Write(s.hello2(chain))
		}
		return
	}
	version := min(o.version, s.max)
	if version < s.min {
		conn.Write(alert(s.min, 70)) // protocol_version
		return
	}
	suite := s.choose(o)
	if suite == 0 {
		conn.Write(alert(version, 40)) // handshake_failure
		return
	}
	method := s.compression
	if !slices.Contains(o.methods, method) {
		method = 0
	}
	flight := [][]byte{s.hello(version, suite, method)}
	if suite != anonAES128 {
		flight = append(flight, certificates)
	}
	if exchange := s.keyExchange(version, suite, key); exchange != nil {
		flight = append(flight, message(12, exchange...))
	}
	flight = append(flight, message(14))
	// A client may refuse a long message at its head: then the rest is neither built nor sent.
	for part := range slices.Chunk(slices.Concat(flight...), 1<<14) {
		if _, err := conn.Write(records(version, part)); err != nil {
			return
		}
	}
	// Any answer is refused.
	if n, err := conn.Read(make([]byte, 5)); n > 0 && err == nil {
		conn.Write(alert(version, 40))
	}
}

func (s *script) hello(version, suite uint16, method byte) []byte {
	body := binary.BigEndian.AppendUint16(nil, version)
	random := make([]byte, 32)
	rand.Read(random)
	body = append(body, random...)
	body = append(body, 0, byte(suite>>8), byte(suite), method)
	if len(s.extensions) > 0 {
		body = append(body, vector(2, s.extensions...)...)
	}
	return message(2, body...)
}

// keyExchange returns the body of a ServerKeyExchange if the suite has one. Its signature is made
// with the key, and over parameters alone, so no client accepts it.
func (s *script) keyExchange(version, suite uint16, key *rsa.PrivateKey) (body []byte) {
	switch suite {
	case dheRSAExportDES, dheRSAAES128, dheRSAAES128GCM, anonAES128:
		prime := s.prime
		if suite == dheRSAExportDES {
			prime = prime512
		}
		size := (prime.BitLen() + 7) / 8
		public := make([]byte, size)
		rand.Read(public[1:])
		body = append(vector(2, prime.FillBytes(make([]byte, size))...), vector(2, 2)...)
		body = append(body, vector(2, public...)...)
	case rsaExportRC4, rsaExportDES:
		modulus := make([]byte, 64)
		rand.Read(modulus)
		modulus[0] |= 0x80
		body = append(vector(2, modulus...), vector(2, 1, 0, 1)...)
	}
	if body == nil || suite == anonAES128 {
		return body
	}
	if version >= 0x0303 {
		digest := sha1.Sum(body)
		signature, _ := rsa.SignPKCS1v15(nil, key, crypto.SHA1, digest[:])
		return append(append(body, 2, 1), vector(2, signature...)...)
	}
	one, two := md5.Sum(body), sha1.Sum(body)
	signature, _ := rsa.SignPKCS1v15(nil, key, crypto.MD5SHA1, append(one[:], two[:]...))
	return append(body, vector(2, signature...)...)
}

// hello2 returns a SERVER-HELLO of SSL 2.
func (s *script) hello2(chain [][]byte) []byte {
	body := []byte{4, 0, 1, 0, 2} // no session hit; X.509; version 2
	for _, n := range []int{len(chain[0]), len(s.ssl2), 16} {
		body = binary.BigEndian.AppendUint16(body, uint16(n))
	}
	body = append(append(append(body, chain[0]...), s.ssl2...), make([]byte, 16)...)
	head := vector(2, body...)
	head[0] |= 0x80
	return head
}

// scriptServer returns a server that follows a script.
func scriptServer(name, about string, s *script, expect ...Verdict) *Server {
	return &Server{
		Name: name, About: about, Expect: expect, Slow: len(s.chain) > 0,
		Failed: []string{"resume-none"}, // no handshake is ever completed
		start: func(r *Running) error {
			id := pki.rsa2048()
			chain := r.use(id).Certificate
			if s.chain != nil {
				chain = s.chain
			}
			certificates := certificateMessage(chain)
			return r.listen("127.0.0.1", func(conn net.Conn) {
				s.answer(conn, chain, certificates, id.leaf.Key.(*rsa.PrivateKey))
			})
		},
	}
}

// scriptedServers offer versions and suites that no library has any more.
func scriptedServers() []*Server {
	secure := extension(renegotiationInf, 0)
	old := func(why string) Verdict { return Verdict{"version-old", why} }
	weak := func(why string) Verdict { return Verdict{"suite-weak", why} }
	no13 := Verdict{"tls13-missing", "the script ends at TLS 1.2"}
	missing := Verdict{"version-missing", "the script ends at TLS 1.2"}
	noEMS := Verdict{"ems-missing", "the server's hello has no extended_master_secret"}
	slow := Verdict{"key-slow", "the key is RSA"}
	noFallback := Verdict{"fallback-missing", "the script doesn't know TLS_FALLBACK_SCSV"}
	refused := Verdict{"client-refused", "most clients offer none of the script's suites"}
	notIn := Verdict{"suite-not-in-policy", "no suite with forward secrecy and authenticated encryption"}
	return []*Server{
		scriptServer("ssl-2", "SSL 2 beside TLS 1.0 to 1.2", &script{
			min: 0x0301, max: 0x0303, suites: []uint16{rsaAES128}, extensions: secure, ssl2: []byte{1, 0, 0x80, 7, 0, 0xc0, 2, 0, 0x80},
		}, old("SSL 2 is answered"), notIn, no13, missing, noEMS, noFallback, slow, refused),
		scriptServer("ssl-3", "SSL 3 alone", &script{min: 0x0300, max: 0x0300, suites: []uint16{rsa3DES, rsaRC4SHA}},
			old("SSL 3 is answered"), weak("triple DES and RC4"),
			Verdict{"renegotiation-insecure", "the server's hello has no extensions"}, no13, missing, slow, refused),
		scriptServer("ssl-3-up", "SSL 3 to TLS 1.2", &script{min: 0x0300, max: 0x0303, suites: []uint16{rsaAES128, rsa3DES},
			extensions: secure},
			old("SSL 3 is answered"), weak("triple DES"), notIn, no13, missing, noEMS, noFallback, slow, refused),
		scriptServer("insecure-renegotiation", "TLS 1.2 without renegotiation_info",
			&script{min: 0x0303, max: 0x0303, suites: []uint16{rsaAES128}},
			Verdict{"renegotiation-insecure", "the server's hello has no renegotiation_info"}, notIn, no13, missing, noEMS, slow, refused),
		scriptServer("export", "export suites in TLS 1.0", &script{
			min: 0x0301, max: 0x0301, suites: []uint16{rsaExportRC4, rsaExportDES, dheRSAExportDES}, extensions: secure,
		}, old("TLS 1.0 alone"), weak("keys of 40 bits"), Verdict{"group-weak", "a prime and an RSA key of 512 bits"}, no13, missing,
			noEMS, slow, refused),
		scriptServer("rc4", "RC4 and single DES in TLS 1.2, in the client's order", &script{
			min: 0x0303, max: 0x0303, suites: []uint16{rsaRC4SHA, rsaRC4MD5, rsaDES}, clientOrder: true, extensions: secure,
		}, weak("RC4 and single DES"), Verdict{"suite-order", "the client's order decides"}, no13, missing, noEMS, slow, refused),
		scriptServer("null", "suites without encryption and without certificates", &script{
			min: 0x0303, max: 0x0303, suites: []uint16{rsaNullSHA, anonAES128}, prime: prime1024, extensions: secure,
		}, weak("no encryption; no authentication"), Verdict{"group-weak", "the prime has 1024 bits"}, no13, missing, noEMS, slow,
			refused),
		scriptServer("dh-1024", "Diffie-Hellman with the 1024 bits of RFC 2409, signed with SHA-1", &script{
			min: 0x0303, max: 0x0303, suites: []uint16{dheRSAAES128GCM}, prime: prime1024, extensions: secure,
		}, Verdict{"group-weak", "the prime has 1024 bits"}, Verdict{"signature-weak", "the script signs with SHA-1"}, notIn, no13,
			missing, noEMS, slow, refused),
		scriptServer("compression", "the server compresses, if the client offers it", &script{
			min: 0x0303, max: 0x0303, suites: []uint16{rsaAES128}, compression: 1, extensions: secure,
		}, Verdict{"compression-on", "DEFLATE is chosen"}, notIn, no13, missing, noEMS, slow, refused),
		scriptServer("certificate-empty", "its certificate has 0 bytes", &script{
			min: 0x0303, max: 0x0303, suites: []uint16{rsaAES128}, extensions: secure, chain: [][]byte{{}},
		}, Verdict{"certificate-untrusted", "there is nothing to trust"}, notIn, no13, missing, noEMS, refused),
		scriptServer("certificate-16-mb", "its certificate has 16 MB", &script{
			min: 0x0303, max: 0x0303, suites: []uint16{rsaAES128}, extensions: secure, chain: [][]byte{make([]byte, 1<<24-7)},
		}, notIn, no13, missing, noEMS, refused),
	}
}
