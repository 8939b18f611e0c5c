package doctor

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/cmd/ossl/internal/bench/rounds"
)

// A Speed is the speed at which a connection seals records of one size.
type Speed struct {
	Engine         string  `json:"engine"` // "OpenSSL" or "Go"
	Cipher         string  `json:"cipher"` // "AES-256-GCM" or "ChaCha20-Poly1305"
	Bytes          int     `json:"bytes"`  // in a record
	MBs            float64 `json:"mb_per_second"`
	NanosPerRecord float64 `json:"ns_per_record"`
}

// sizes are the sizes of the records that are sealed.
var sizes = []int{2, 31, 136, 1024, 8192, 16384}

// speedRounds of slice each are measured of everything by turns, so that a slow moment of the machine hits
// all alike. The median counts. Slices are shorter than the scheduler's, so that most of them are
// undisturbed on a busy machine.
const (
	speedRounds = 15
	slice       = 2 * time.Millisecond
)

// alike is the ratio of two speeds below which the difference doesn't matter.
const alike = 1.1

// speedCiphers are the ciphers that are compared, in TLS 1.2, where crypto/tls lets them be chosen.
var speedCiphers = []struct {
	name  string
	suite uint16
}{
	{"AES-256-GCM", tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384},
	{"ChaCha20-Poly1305", tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256},
}

// ciphers measures the ciphers by the size of records, as OpenSSL and as Go seal them.
func ciphers(ctx context.Context, options *Options, item *Item) {
	certificate, err := throwAway()
	if err != nil {
		item.find(err.Error())
		item.judge(Unknown, "nothing: no key could be made")
		return
	}
	type runner struct {
		engine, cipher string
		conn           io.Writer
		samples        [][]float64 // nanoseconds a record, by size and round
	}
	var runners []*runner
	for _, engine := range []string{"OpenSSL", "Go"} {
		for _, c := range speedCiphers {
			conn, err := sink(ctx, engine, c.suite, certificate)
			if err != nil {
				item.find(fmt.Sprintf("%s with %s can't be measured: %v", c.name, engine, err))
				item.judge(Unknown, "see what 'library' and 'fips' say")
				continue
			}
			defer conn.Close()
			runners = append(runners, &runner{engine, c.name, conn, make([][]float64, len(sizes))})
		}
	}
	data := make([]byte, slices.Max(sizes))
	for round := range speedRounds {
		for i, size := range sizes {
			for k := range runners {
				r := runners[(k+round)%len(runners)] // another one begins each round
				if ctx.Err() != nil {
					return
				}
				ns, err := perRecord(r.conn, data[:size])
				if err != nil {
					item.find(fmt.Sprintf("%s with %s: %v", r.cipher, r.engine, err))
					item.judge(Unknown, "try again")
					return
				}
				r.samples[i] = append(r.samples[i], ns)
			}
		}
	}
	full := len(sizes) - 1
	for i := 1; i < len(runners); i++ {
		if aes, chacha := runners[i-1], runners[i]; aes.engine == chacha.engine {
			item.Ratios = append(item.Ratios, ratioOf(aes.engine, aes.samples[full], chacha.samples[full]))
		}
	}
	for _, r := range runners {
		for i, size := range sizes {
			ns := rounds.Median(r.samples[i])
			item.Speed = append(item.Speed, Speed{r.engine, r.cipher, size, float64(size) * 1e3 / ns, ns})
		}
	}
	load := ""
	if average, err := os.ReadFile(options.path("proc/loadavg")); err == nil {
		minute, _, _ := strings.Cut(string(average), " ")
		load = fmt.Sprintf("; the load is %s on %d processors", minute, runtime.NumCPU())
	}
	item.advise(load)
}

// A Ratio is how much faster AES-256-GCM is than ChaCha20-Poly1305 in full records: the median of
// the rounds, each of which measured both, and the bounds of its confidence interval of at least
// 90 %.
type Ratio struct {
	Engine string  `json:"engine"`
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// ratioOf compares the nanoseconds of two ciphers, round by round.
func ratioOf(engine string, aes, chacha []float64) Ratio {
	r := rounds.Compare(chacha, aes)
	return Ratio{engine, r.Median, r.Low, r.High}
}

// advise sets the advice on the cipher to put first: the faster one in full records, with OpenSSL
// if it was measured.
func (item *Item) advise(load string) {
	if len(item.Ratios) == 0 {
		return
	}
	r := item.Ratios[0]
	const first = "put %s first: in full records it is %.1f times as fast as %s here (%.1f to %.1f)"
	switch {
	case r.Low >= alike:
		item.Do = fmt.Sprintf(first, "AES-GCM", r.Median, "ChaCha20-Poly1305", r.Low, r.High)
	case r.High <= 1/alike:
		item.judge(Advice, fmt.Sprintf(first, "ChaCha20-Poly1305", 1/r.Median, "AES-GCM", 1/r.High, 1/r.Low))
	case r.Low > 1/alike && r.High < alike:
		item.Do = "nothing: in full records AES-GCM and ChaCha20-Poly1305 are about as fast as each other here"
	default:
		item.judge(Unknown, fmt.Sprintf("measure again when the machine is idle: in full records AES-GCM is %.1f to %.1f times "+
			"as fast as ChaCha20-Poly1305, which can't tell the faster one%s", r.Low, r.High, load))
	}
}

// perRecord writes records to w for a while, and returns the nanoseconds that each took.
func perRecord(w io.Writer, data []byte) (float64, error) {
	n := 0
	began := time.Now()
	for batch := 1; ; batch = min(2*batch, 256) {
		for range batch {
			if _, err := w.Write(data); err != nil {
				return 0, err
			}
		}
		n += batch
		if took := time.Since(began); took >= slice {
			return float64(took.Nanoseconds()) / float64(n), nil
		}
	}
}

// A funnel is a connection that throws written data away once it is closed off.
type funnel struct {
	net.Conn
	off atomic.Bool
}

func (f *funnel) Write(b []byte) (int, error) {
	if f.off.Load() {
		return len(b), nil
	}
	return f.Conn.Write(b)
}

// handshakeTime bounds the handshake before a measurement.
const handshakeTime = 5 * time.Second

// sink returns a client's connection, after its handshake, whose records go nowhere: writes to it cost
// the sealing alone.
func sink(ctx context.Context, engine string, suite uint16, certificate tls.Certificate) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	clientSide, serverSide := net.Pipe()
	defer serverSide.Close()
	stop := context.AfterFunc(ctx, func() { clientSide.Close(); serverSide.Close() })
	defer stop()

	served := make(chan error, 1)
	go func() {
		server := tls.Server(serverSide, &tls.Config{Certificates: []tls.Certificate{certificate},
			MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite}})
		served <- server.Handshake()
	}()
	// The peer is in this process, and nothing is sent: there is nothing to verify.
	config := &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite},
		DynamicRecordSizingDisabled: true}
	out := &funnel{Conn: clientSide}
	var conn interface {
		net.Conn
		HandshakeContext(context.Context) error
	}
	if engine == "Go" {
		conn = tls.Client(out, config)
	} else {
		c, err := ossl.NewContext(config, ossl.WithoutHostPolicy())
		if err != nil {
			clientSide.Close()
			<-served
			return nil, err
		}
		conn = c.Client(out, "localhost")
	}
	err := conn.HandshakeContext(ctx)
	if err != nil {
		clientSide.Close()
	}
	if server := <-served; err == nil {
		err = server
	}
	if err != nil {
		clientSide.Close()
		return nil, err
	}
	out.off.Store(true)
	return conn, nil
}

// throwAway makes a certificate for the measurements.
func throwAway() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
