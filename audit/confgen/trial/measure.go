package trial

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// timeout bounds one connection.
const timeout = 30 * time.Second

// measure makes one round: a full handshake and the first byte of a response, a resumed handshake,
// and a large response.
func (s *Side) measure(ctx context.Context, address string, roots *x509.CertPool, postgres bool) error {
	config := &tls.Config{RootCAs: roots, ServerName: "localhost", ClientSessionCache: tls.NewLRUClientSessionCache(4)}
	first, err := connect(ctx, address, config, postgres)
	if err != nil {
		return err
	}
	s.Full = append(s.Full, first.handshake)
	state := first.conn.ConnectionState()
	s.Version, s.Group = tls.VersionName(state.Version), state.CurveID.String()
	if postgres {
		// PostgreSQL gives no tickets, so there is nothing to offer.
		s.Offered++
		return first.conn.Close()
	}
	if err := first.get("/", io.Discard); err != nil {
		return err
	}
	s.FirstByte = append(s.FirstByte, first.firstByte)
	second, err := connect(ctx, address, config, false)
	if err != nil {
		return err
	}
	s.Offered++
	if second.conn.ConnectionState().DidResume {
		s.Hits++
		s.Resumed = append(s.Resumed, second.handshake)
	}
	start := time.Now()
	count := &counter{}
	if err := second.get("/bulk", count); err != nil {
		return err
	}
	if count.n != bulkBytes {
		return fmt.Errorf("the server sent %d of %d bytes", count.n, bulkBytes)
	}
	s.Bulk = append(s.Bulk, bulkBytes/1e6/time.Since(start).Seconds())
	return nil
}

type counter struct{ n int }

func (c *counter) Write(p []byte) (int, error) {
	c.n += len(p)
	return len(p), nil
}

// A visit is one connection.
type visit struct {
	conn                 *tls.Conn
	start                time.Time
	handshake, firstByte float64 // milliseconds
	stop                 func() bool
}

func connect(ctx context.Context, address string, config *tls.Config, postgres bool) (*visit, error) {
	dialer := net.Dialer{Timeout: timeout}
	v := &visit{start: time.Now()}
	raw, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	raw.SetDeadline(time.Now().Add(timeout))
	v.stop = context.AfterFunc(ctx, func() { raw.SetDeadline(time.Now()) })
	if postgres {
		// SSLRequest, and its answer 'S'.
		b := []byte{0, 0, 0, 8, 4, 210, 22, 47}
		_, err := raw.Write(b)
		if err == nil {
			_, err = io.ReadFull(raw, b[:1])
		}
		if err == nil && b[0] != 'S' {
			err = errors.New("the server has no TLS")
		}
		if err != nil {
			return nil, errors.Join(err, raw.Close())
		}
	}
	v.conn = tls.Client(raw, config)
	begin := time.Now()
	if err := v.conn.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	v.handshake = millis(begin)
	return v, nil
}

// get asks for a file, reads it, and closes the connection.
func (v *visit) get(path string, w io.Writer) error {
	defer v.stop()
	defer v.conn.Close()
	if _, err := fmt.Fprintf(v.conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path); err != nil {
		return err
	}
	r := bufio.NewReaderSize(v.conn, 1<<16)
	if _, err := r.Peek(1); err != nil {
		return err
	}
	v.firstByte = millis(v.start)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", path, resp.Status)
	}
	_, err = io.Copy(w, resp.Body)
	return err
}

func millis(since time.Time) float64 { return time.Since(since).Seconds() * 1e3 }
