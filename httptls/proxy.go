package httptls

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/idna"
	"golang.org/x/net/proxy"
)

// proxyPorts are the schemes of proxies, with their default ports.
var proxyPorts = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080", "": "80"}

func checkProxy(u *url.URL) error {
	if _, ok := proxyPorts[u.Scheme]; !ok {
		return fmt.Errorf("httptls: unsupported proxy scheme %q", u.Scheme)
	}
	if u.Hostname() == "" {
		return errors.New("httptls: proxy URL without a host")
	}
	return nil
}

// proxyAddr returns a proxy's host:port.
func proxyAddr(u *url.URL) string {
	host, port := u.Hostname(), u.Port()
	if ascii, err := idna.Lookup.ToASCII(host); err == nil {
		host = ascii
	}
	if port == "" {
		port = proxyPorts[u.Scheme]
	}
	return net.JoinHostPort(host, port)
}

// connectTimeout bounds a proxy's answer to CONNECT, as in net/http.
const connectTimeout = time.Minute

// proxyError is an error on the way to a proxy, in net/http's form.
func proxyError(err error) error { return &net.OpError{Op: "proxyconnect", Net: "tcp", Err: err} }

// connectByProxy makes a connection to addr through the route's proxy.
func (r *route) connectByProxy(ctx context.Context, addr string) (net.Conn, error) {
	var conn net.Conn
	if r.proxy.Scheme == "https" {
		secure, err := r.settings.dialProxyTLS(ctx, "tcp", proxyAddr(r.proxy))
		if err == nil {
			err = r.settings.tracedHandshake(ctx, secure)
		}
		if err != nil {
			return nil, proxyError(err)
		}
		conn = secure
	} else {
		var err error
		if conn, err = r.settings.dial(ctx, "tcp", proxyAddr(r.proxy)); err != nil {
			return nil, proxyError(err)
		}
	}
	var through net.Conn
	var err error
	if strings.HasPrefix(r.proxy.Scheme, "socks5") {
		through, err = r.socks(ctx, conn, addr)
	} else {
		through, err = r.tunnel(ctx, conn, addr)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return through, nil
}

// socks asks a SOCKS5 proxy at the other end of conn to connect to addr, whose name the proxy
// resolves.
func (r *route) socks(ctx context.Context, conn net.Conn, addr string) (net.Conn, error) {
	var auth *proxy.Auth
	if user := r.proxy.User; user != nil {
		auth = &proxy.Auth{User: user.Username()}
		auth.Password, _ = user.Password()
	}
	d, err := proxy.SOCKS5("tcp", proxyAddr(r.proxy), auth, dialed{conn})
	if err != nil {
		return nil, err
	}
	return d.(proxy.ContextDialer).DialContext(ctx, "tcp", addr)
}

// dialed is a dialer that returns an existing connection.
type dialed struct{ conn net.Conn }

func (d dialed) Dial(string, string) (net.Conn, error) { return d.conn, nil }

func (d dialed) DialContext(context.Context, string, string) (net.Conn, error) { return d.conn, nil }

// tunnel asks an HTTP proxy at the other end of conn to connect to addr.
func (r *route) tunnel(ctx context.Context, conn net.Conn, addr string) (net.Conn, error) {
	req, err := r.connectRequest(ctx, addr)
	if err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	stop := context.AfterFunc(bounded, func() { _ = conn.Close() })

	// The proxy's answer ends with its header. All bytes after the header belong to the tunnel.
	limited := &io.LimitedReader{R: conn, N: r.settings.maxHeaderBytes()}
	read := bufio.NewReader(limited)
	var resp *http.Response
	if err = req.Write(conn); err == nil {
		resp, err = http.ReadResponse(read, req)
	}
	if !stop() {
		return nil, bounded.Err()
	}
	if err != nil {
		return nil, err
	}
	if f := r.settings.base.OnProxyConnectResponse; f != nil {
		if err := f(ctx, r.proxy, req, resp); err != nil {
			return nil, err
		}
	}
	if resp.StatusCode != http.StatusOK {
		_, text, ok := strings.Cut(resp.Status, " ")
		if !ok {
			text = "unknown status code"
		}
		return nil, errors.New(text)
	}
	if n := read.Buffered(); n > 0 {
		early, _ := read.Peek(n)
		return &earlyConn{Conn: conn, early: early}, nil
	}
	return conn, nil
}

func (r *route) connectRequest(ctx context.Context, addr string) (*http.Request, error) {
	header := r.settings.base.ProxyConnectHeader
	if f := r.settings.base.GetProxyConnectHeader; f != nil {
		var err error
		if header, err = f(ctx, r.proxy, addr); err != nil {
			return nil, err
		}
	}
	header = header.Clone()
	if header == nil {
		header = make(http.Header)
	}
	if user := r.proxy.User; user != nil {
		password, _ := user.Password()
		credentials := base64.StdEncoding.EncodeToString([]byte(user.Username() + ":" + password))
		header.Set("Proxy-Authorization", "Basic "+credentials)
	}
	return &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: addr}, Host: addr, Header: header}, nil
}

// maxHeaderBytes is net/http's bound on a proxy's answer.
func (s *settings) maxHeaderBytes() int64 {
	if s.base.MaxResponseHeaderBytes > 0 {
		return s.base.MaxResponseHeaderBytes
	}
	return 10 << 20
}

// An earlyConn first returns the bytes that came together with a proxy's answer.
type earlyConn struct {
	net.Conn
	early []byte
}

func (c *earlyConn) Read(b []byte) (int, error) {
	if len(c.early) > 0 {
		n := copy(b, c.early)
		c.early = c.early[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}
